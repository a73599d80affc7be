package sqlserver

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"azsqloutbox/worker"
)

// Config says which outbox a Store works on, and in whose name.
type Config struct {
	// DB is the database, from Open, for this Store alone: it keeps the connections
	// that it has opened for a few minutes. Calls above the size of the pool, as it
	// is when the Store is made, wait for their turn; ConnectionsFor says what a
	// worker needs.
	DB *sql.DB
	Names

	// Owner names this process in receipts and heartbeats; at most 100
	// characters, and no other living process may use it.
	Owner string
	// Version and Source are for the heartbeat: the program's version (default
	// "dev", 50 characters) and the first part of its message ids (128).
	Version string
	Source  string
	// Destinations are the queues and topics that its routes lead to, for the
	// heartbeat too.
	Destinations []string

	// Lease is how long a claim is its owner's; default worker.DefaultLease.
	Lease time.Duration
	// MaxEventBytes is how much payload and headers of one event, in the columns'
	// bytes, may leave the database; default 1 MiB. A larger event is claimed
	// without them.
	MaxEventBytes int64
	// MaxBatchBytes bounds the payloads, headers and aggregates of one claim, in
	// bytes of UTF-8; default 16 MiB. One event always fits.
	MaxBatchBytes int64
	// MaxAttempts is how many attempts an event has before a reap parks it;
	// default worker.DefaultMaxAttempts. To be that of the worker.Config.
	MaxAttempts int
	// LockTimeout is how long a statement waits for a lock; default 5 s, whole
	// milliseconds.
	LockTimeout time.Duration

	// Logger defaults to none.
	Logger *zap.Logger
}

func (c Config) withDefaults() Config {
	c.Names = c.Names.WithDefaults()
	c.Version = cmp.Or(c.Version, "dev")
	c.Lease = cmp.Or(c.Lease, worker.DefaultLease)
	c.MaxEventBytes = cmp.Or(c.MaxEventBytes, 1<<20)
	c.MaxBatchBytes = cmp.Or(c.MaxBatchBytes, 16<<20)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, worker.DefaultMaxAttempts)
	c.LockTimeout = cmp.Or(c.LockTimeout, 5*time.Second)
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate names the field that cannot be.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.DB == nil:
		return errors.New("DB is nil")
	case c.Owner == "" || len(c.Owner) > 100:
		return fmt.Errorf("field Owner has %d bytes, must have 1 to 100", len(c.Owner))
	case len(c.Version) > 50:
		return fmt.Errorf("field Version has %d bytes, at most 50 fit", len(c.Version))
	case len(c.Source) > 128:
		return fmt.Errorf("field Source has %d bytes, at most 128 fit", len(c.Source))
	case c.Lease < time.Second || c.Lease > 24*time.Hour:
		return fmt.Errorf("field Lease is %s, must be 1s to 24h", c.Lease)
	case c.MaxEventBytes < 1:
		return fmt.Errorf("field MaxEventBytes is %d, must be positive", c.MaxEventBytes)
	case c.MaxBatchBytes < 1:
		return fmt.Errorf("field MaxBatchBytes is %d, must be positive", c.MaxBatchBytes)
	case c.MaxAttempts < 1:
		return fmt.Errorf("field MaxAttempts is %d, must be positive", c.MaxAttempts)
	case c.LockTimeout < time.Millisecond || c.LockTimeout > time.Hour:
		return fmt.Errorf("field LockTimeout is %s, must be 1ms to 1h", c.LockTimeout)
	}
	return c.Names.Validate()
}

// Store is one outbox table. It implements worker.Store; all its methods may
// be called at once, and each call has a connection of its own. Errors are
// *Error, with the class that says whether waiting can help.
type Store struct {
	cfg      Config
	names    Names
	log      *zap.Logger
	sessions *sessions
	// ready holds the statements for the table as it was last looked at; nil
	// before the first call and after a sign that the table has changed.
	ready atomic.Pointer[statements]
	// lastClaim is the size of the last claim, the first guess for the next
	// one's buffer.
	lastClaim atomic.Int64
	// flipWaited is when a flip last waited in vain for a lock; nil for never.
	flipWaited atomic.Pointer[time.Time]
	// unreadable holds the ids of receipts that were complained about.
	unreadable sync.Map
	// beaten is true after the first heartbeat of this process, start tells the
	// process from others of the same owner, and shared is the one warning of them.
	beaten atomic.Bool
	start  string
	shared sync.Once
	// unaskable holds the event types that were.
	unaskable sync.Map
}

var _ worker.Store = (*Store)(nil)

// New makes a Store; it does not touch the database. Close it.
func New(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("sqlserver config: %w", err)
	}
	cfg = cfg.withDefaults()
	return &Store{
		cfg:      cfg,
		names:    cfg.Names,
		start:    uuid.NewString(),
		log:      cfg.Logger.With(zap.Stringer("table", cfg.Names)),
		sessions: newSessions(cfg.DB, cfg.DB.Stats().MaxOpenConnections, cfg.LockTimeout),
	}, nil
}

// Close gives the Store's idle connections back. The DB stays open.
func (s *Store) Close() { s.sessions.closeIdle() }

// statements are the rendered texts for one state of the table.
type statements struct {
	table *table

	claimEvents, claimUnlocked string
	flipClaim, findClaim       string
	settleSent, settle         string
	overdueClaims, reapClaim   string
	retryDue                   string
	pending, discoverPending   string
	backlogTotal, backlogTypes string
	backlogFailed              string
	openReceipts               string
	heartbeat, leave           string
	equalKeys, lostKeys        string
}

func render(names Names, t *table) *statements {
	r := names.renderer(t)
	return &statements{
		table:           t,
		claimEvents:     r.Replace(claimEventsSQL),
		claimUnlocked:   r.Replace(claimUnlockedSQL),
		flipClaim:       r.Replace(flipClaimSQL),
		findClaim:       r.Replace(findClaimSQL),
		settleSent:      r.Replace(settleSentSQL),
		settle:          r.Replace(settleSQL),
		overdueClaims:   r.Replace(overdueClaimsSQL),
		reapClaim:       r.Replace(reapClaimSQL),
		retryDue:        r.Replace(retryDueSQL),
		pending:         r.Replace(pendingSQL),
		discoverPending: r.Replace(discoverPendingSQL),
		backlogTotal:    r.Replace(backlogTotalSQL),
		backlogTypes:    r.Replace(backlogTypesSQL),
		backlogFailed:   r.Replace(backlogFailedSQL),
		openReceipts:    r.Replace(openReceiptsSQL),
		heartbeat:       r.Replace(heartbeatSQL),
		leave:           r.Replace(leaveSQL),
		equalKeys:       r.Replace(equalKeysSQL),
		lostKeys:        r.Replace(lostKeysSQL),
	}
}

// statementsOn returns the statements, and looks at the table first where that
// has not been done.
func (s *Store) statementsOn(ctx context.Context, conn *sql.Conn) (*statements, error) {
	if st := s.ready.Load(); st != nil {
		return st, nil
	}
	t, err := readTable(ctx, conn, s.names)
	if err != nil {
		return nil, err
	}
	if err := t.readReceiptType(ctx, conn, s.names); err != nil {
		return nil, err
	}
	st := render(s.names, t)
	s.ready.Store(st)
	return st, nil
}

// session runs fn, one request of its own transaction, on a connection.
func (s *Store) session(ctx context.Context, fn func(context.Context, *sql.Conn, *statements) error) error {
	return s.sessions.use(ctx, func(conn *sql.Conn) error {
		st, err := s.statementsOn(ctx, conn)
		if err != nil {
			return err
		}
		return fn(ctx, conn, st)
	})
}

// transact runs fn in a transaction and commits it where fn returns nil. It begins
// under ctx and may go on for finishGrace after it, commit included: fn is handed
// the context that lasts so long. A stop would otherwise throw work away, or leave a
// commit without its answer. errCommitUnknown means that the commit was sent and
// not answered.
func (s *Store) transact(ctx context.Context, fn func(context.Context, *sql.Tx, *statements) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	whole, cancel := outlive(ctx, finishGrace)
	defer cancel()
	return s.sessions.useUntil(ctx, whole, func(conn *sql.Conn) error {
		st, err := s.statementsOn(ctx, conn)
		if err != nil {
			return err
		}
		// The level is asked for every time: READPAST is error 650 under another
		// one, and a connection may bring one along.
		tx, err := conn.BeginTx(whole, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		if err := fn(whole, tx, st); err != nil {
			if rollback := tx.Rollback(); rollback != nil && isAnswer(err) {
				return fmt.Errorf("roll back: %w", rollback)
			}
			return err
		}
		return commit(tx)
	})
}

// commit tells an answer of the server from no answer.
func commit(tx *sql.Tx) error {
	err := tx.Commit()
	switch {
	case err == nil:
		return nil
	case isServerError(err):
		return fmt.Errorf("commit: %w", err)
	default:
		return fmt.Errorf("%w: %w", errCommitUnknown, err)
	}
}

// contentionTries bounds how often a deadlock's victim tries again at once.
const contentionTries = 5

// retrying runs fn, tries again at once what lost a deadlock or a lock wait,
// and classifies the error that is left.
func (s *Store) retrying(ctx context.Context, op string, fn func(context.Context) error) error {
	for try := 1; ; try++ {
		err := fn(ctx)
		if err == nil || isAnswer(err) {
			return err
		}
		if errors.Is(err, sql.ErrNoRows) {
			err = errNoMarker // every statement that is asked for a row has one
		}
		err = Classify(op, err)
		if looksChanged(err) {
			s.ready.Store(nil)
		}
		if !contended(err) || try == contentionTries {
			return err
		}
		// Two that met once would meet again in step.
		pause := time.NewTimer(time.Duration(rand.Int64N(int64(20*time.Millisecond) * int64(try))))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}

// looksChanged says whether the table may not be what the statements were made
// for any more, as in the middle of a migration.
func looksChanged(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return errors.Is(err, errColumnChanged) || e.Class == IndexUnusable || e.Number == 207 || e.Number == 208
}
