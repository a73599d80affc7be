package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// session is one connection: tds.Session.
type session struct {
	engine *Engine
	store  *storage.Session
	login  tds.Login
	opened time.Time
	// id is the storage session's at login: @@SPID outlives a reset.
	id     int64
	closed chan struct{}
	// shown is what other sessions see of this one.
	shown atomic.Pointer[sessionState]

	// users are the login's user and, above it, those of EXECUTE AS.
	users []int32

	set    settings
	tran   *transaction
	temp   *tempTables
	loads  *bulkLoad
	handle preparedHandles

	// requested is when the request in hand came, in nanoseconds since 1970; 0
	// when there is none.
	requested atomic.Int64
	// ended is when the last request was over, as requested.
	ended atomic.Int64
	// input is what the client sent last.
	input atomic.Pointer[input]
	// running is the statement in hand, for sys.dm_exec_requests.
	running atomic.Pointer[measured]
	// rowsTouched counts the rows and base rows that scans have read, and the
	// entries that they passed by.
	rowsTouched int64

	lastError      int32
	rowCountVar    int64
	scopeIdentity  sqltype.Value
	globalIdentity sqltype.Value
	nesting        int
	// identityInsert is the one table with SET IDENTITY_INSERT ON.
	identityInsert string
}

func newSession(e *Engine, l tds.Login) *session {
	store := e.db.NewSession()
	s := &session{
		users: []int32{e.userOf(l)}, engine: e, store: store, id: store.ID(), login: l, opened: time.Now().UTC(),
		set: newSettings(l.ODBC), temp: newTempTables(), closed: make(chan struct{}),
	}
	s.publish()
	return s
}

// Batch runs a text.
func (s *session) Batch(ctx context.Context, text string, w tds.ResultWriter) error {
	s.input.Store(&input{at: time.Now().UTC(), event: "Language Event", text: text})
	return s.request(ctx, w, func(x *exec) error {
		m, err := s.newModule(text, "", false)
		if err != nil {
			return x.fail(err)
		}
		x.enter(m)
		return x.runModule()
	})
}

// request is the frame of everything a client sends: what is left of an error
// once it has been reported, and the end of a doomed transaction.
func (s *session) request(ctx context.Context, w tds.ResultWriter, f func(x *exec) error) error {
	s.requested.Store(time.Now().UnixNano())
	defer func() {
		s.ended.Store(time.Now().UnixNano())
		s.requested.Store(0)
	}()
	defer s.publish()
	x := &exec{s: s, ctx: ctx, w: w}
	err := f(x)
	if se, ok := err.(*sqlError); ok {
		err = x.fail(se)
	}
	switch {
	case err == nil, errors.Is(err, errAborted):
	case ctx.Err() != nil:
		// An attention, or the client is gone: XACT_ABORT decides (sql-docs,
		// "SET XACT_ABORT"); without it the transaction stays open.
		if s.set.xactAbort && s.tran != nil {
			return s.rollback(w)
		}
		return nil
	default:
		s.engine.log.Error("request failed", zap.Error(err))
		return err
	}
	return s.endDoomed(x)
}

// endDoomed rolls back what a CATCH block left uncommittable.
func (s *session) endDoomed(x *exec) error {
	if s.tran == nil || !s.tran.doomed {
		return nil
	}
	if err := x.w.Error(raise(3998, 16, 1, "Uncommittable transaction is detected at the end of the batch. The transaction is rolled back.").wire(s)); err != nil {
		return err
	}
	if err := x.w.Done(0, false); err != nil {
		return err
	}
	return s.rollback(x.w)
}

// enter prepares a module's variables.
func (x *exec) enter(m *module) {
	x.mod = m
	m.cached.uses.Add(1)
	x.vars = make([]sqltype.Value, len(m.vars.scalars))
	x.tables = make([]*memTable, len(m.vars.tables))
	for i := range m.vars.tables {
		if def := m.vars.tables[i].def; def != nil {
			x.tables[i] = newMemTable(def)
		}
	}
}

func (x *exec) runModule() error {
	if err := x.mod.bindAll(x); err != nil {
		if se, ok := err.(*sqlError); ok {
			se.compile = true
		}
		return moduleEnd(x.fail(err))
	}
	_, err := x.runList(x.mod.body)
	return moduleEnd(err)
}

// errModuleEnded: something in a procedure or in dynamic SQL did not compile. That
// is over, and its caller goes on.
var errModuleEnded = errors.New("the module is ended")

func moduleEnd(err error) error {
	if errors.Is(err, errModuleEnded) {
		return nil
	}
	return err
}

// Begin, Commit and Rollback are the transaction manager requests.
func (s *session) Begin(ctx context.Context, isolation uint8, name string, w tds.ResultWriter) error {
	return s.request(ctx, w, func(x *exec) error {
		// MS-TDS 2.2.7.17: 0 keeps the level, 1 to 5 name one.
		switch isolation {
		case 1:
			s.set.isolation = storage.ReadUncommitted
		case 2:
			s.set.isolation = storage.ReadCommitted
		case 3:
			s.set.isolation = storage.RepeatableRead
		case 4:
			s.set.isolation = storage.Serializable
		case 5:
			s.set.isolation = storage.Snapshot
		}
		return s.begin(w)
	})
}

// Commit commits.
func (s *session) Commit(ctx context.Context, name string, w tds.ResultWriter) error {
	return s.request(ctx, w, func(x *exec) error { return s.commit(w) })
}

// Rollback rolls back.
func (s *session) Rollback(ctx context.Context, name string, w tds.ResultWriter) error {
	return s.request(ctx, w, func(x *exec) error {
		if name != "" && s.tran != nil {
			if _, ok := s.tran.saved[name]; ok {
				return s.rollbackTo(name)
			}
		}
		return s.rollback(w)
	})
}

// Reset is sp_reset_connection: everything of the session goes, the
// connection stays. On Azure SQL Database the isolation level goes too.
func (s *session) Reset(ctx context.Context) {
	if s.tran != nil {
		_ = s.rollback(nil)
	}
	s.store.Close()
	s.store = s.engine.db.NewSession()
	s.engine.spids.Store(s.store.ID(), s.spid())
	s.temp.drop()
	s.temp = newTempTables()
	s.set = newSettings(s.login.ODBC)
	s.users = s.users[:1]
	s.loads, s.handle = nil, preparedHandles{}
	s.lastError, s.rowCountVar = 0, 0
	s.scopeIdentity, s.globalIdentity = sqltype.Value{}, sqltype.Value{}
	s.publish()
}

// Close rolls back and releases.
func (s *session) Close() {
	if s.tran != nil {
		_ = s.rollback(nil)
	}
	s.store.Close()
	s.engine.forget(s)
	close(s.closed)
}
