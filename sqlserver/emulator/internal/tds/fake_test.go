package tds

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"sync"
	"testing"

	_ "github.com/microsoft/go-mssqldb"
	"go.uber.org/goleak"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is one request as the fake backend saw it.
type call struct {
	session *fakeSession
	sql     string
	proc    string
	params  []Param
	columns []Column
	rows    [][]sqltype.Value
}

type handler func(ctx context.Context, c call, w ResultWriter) error

// fakeBackend answers a batch, or the text of an sp_executesql, by the handler
// of that name.
type fakeBackend struct {
	handlers map[string]handler

	mu     sync.Mutex
	logins []Login
	calls  []call
	resets int
	open   int
}

func (b *fakeBackend) Login(_ context.Context, l Login) (Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logins = append(b.logins, l)
	if l.Password != "secret Ä" {
		return nil, &Error{Number: 18456, State: 1, Class: 14, Message: "Login failed for user '" + l.User + "'."}
	}
	b.open++
	return &fakeSession{backend: b}, nil
}

func (b *fakeBackend) seen(f func(b *fakeBackend)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b)
}

type fakeSession struct {
	backend *fakeBackend
	tran    uint64
}

func (s *fakeSession) run(ctx context.Context, c call, w ResultWriter) error {
	c.session = s
	s.backend.seen(func(b *fakeBackend) { b.calls = append(b.calls, c) })
	h, ok := s.backend.handlers[c.sql]
	if !ok {
		return w.Error(&Error{Number: 102, State: 1, Class: 15, Message: "unknown: " + c.sql, Line: 7})
	}
	return h(ctx, c, w)
}

func (s *fakeSession) Batch(ctx context.Context, text string, w ResultWriter) error {
	return s.run(ctx, call{sql: text}, w)
}

func (s *fakeSession) RPC(ctx context.Context, proc string, params []Param, w ResultWriter) error {
	c := call{sql: proc, proc: proc, params: params}
	if proc == "sp_executesql" {
		c.sql, c.params = params[0].Value.S, params[min(2, len(params)):]
	}
	return s.run(ctx, c, w)
}

func (s *fakeSession) Begin(_ context.Context, isolation uint8, _ string, w ResultWriter) error {
	s.tran = 0x1122334455667788 + uint64(isolation)
	return w.TransactionBegan(s.tran)
}

func (s *fakeSession) Commit(_ context.Context, _ string, w ResultWriter) error {
	return s.end(w.TransactionCommitted)
}

func (s *fakeSession) Rollback(_ context.Context, _ string, w ResultWriter) error {
	return s.end(w.TransactionRolledBack)
}

func (s *fakeSession) end(tell func(uint64) error) error {
	id := s.tran
	s.tran = 0
	return tell(id)
}

func (s *fakeSession) Bulk(ctx context.Context, columns []Column, next func() ([]sqltype.Value, bool, error), w ResultWriter) error {
	c := call{sql: "bulk rows", columns: columns}
	for {
		row, ok, err := next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		c.rows = append(c.rows, append([]sqltype.Value(nil), row...))
	}
	if err := w.Done(int64(len(c.rows)), true); err != nil {
		return err
	}
	s.backend.seen(func(b *fakeBackend) { b.calls = append(b.calls, c) })
	return ctx.Err()
}

func (s *fakeSession) Reset(context.Context) {
	s.tran = 0
	s.backend.seen(func(b *fakeBackend) { b.resets++ })
}

func (s *fakeSession) Close() { s.backend.seen(func(b *fakeBackend) { b.open-- }) }

// start serves backend on a port of its own until the test ends.
func start(t testing.TB, config Config) (addr string, server *Server) {
	t.Helper()
	server, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String(), server
}

// openDB connects the real driver.
func openDB(t testing.TB, addr, options string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlserver", fmt.Sprintf(
		"sqlserver://app:secret%%20%%C3%%84@%s?database=orders&app+name=tests&trustservercertificate=true&%s", addr, options))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// echo sends the parameters back as one row, each under its own type.
func echo(_ context.Context, c call, w ResultWriter) error {
	cols := make([]Column, len(c.params))
	row := make([]sqltype.Value, len(c.params))
	for i, p := range c.params {
		cols[i] = Column{Name: fmt.Sprint("c", i), Type: p.Type, Nullable: true}
		row[i] = p.Value
	}
	if err := w.Columns(cols); err != nil {
		return err
	}
	if err := w.Row(row); err != nil {
		return err
	}
	return w.Done(1, true)
}
