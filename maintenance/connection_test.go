package maintenance_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"testing"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

// A database that cannot be opened may be one that is moving, and a person has
// mistyped it more often: the command ends after a few tries and says what to look
// at. It is not the worker's patience, which has no end.
func TestWrongDatabaseIsSaidSoon(t *testing.T) {
	defer maintenance.SetOpenPause(time.Millisecond)()
	b := newEngine(t, emulator.Config{})
	dsn, err := url.Parse(b.server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	q := dsn.Query()
	q.Set("database", "shpo")
	dsn.RawQuery = q.Encode()
	db, err := sqlserver.Open(dsn.String(), sqlserver.Options{LongStatements: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	target := maintenance.Target{DB: db, Names: b.names}
	for name, ask := range map[string]func() error{
		"status": func() error { _, err := maintenance.ReadStatus(t.Context(), target); return err },
		"failed list": func() error {
			_, err := maintenance.ListFailed(t.Context(), target, maintenance.FailedFilter{}, 1)
			return err
		},
		"purge": func() error {
			_, err := maintenance.Purge{Target: target, Retention: 24 * time.Hour}.Run(t.Context())
			return err
		},
	} {
		err := ask()
		var e *sqlserver.Error
		if !errors.As(err, &e) || e.Number != 4060 || !contains(err.Error(), `"shpo"`, "asked 4 times", "database=") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Ctrl-C at a server that accepts and never says a word ends a command at once: on
// the way to the database nothing is in hand that would need its time.
func TestInterruptAtAServerThatSaysNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	db, err := sqlserver.Open("sqlserver://u:p@"+listener.Addr().String()+"?database=d", sqlserver.Options{LongStatements: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	target := maintenance.Target{DB: db}
	for name, ask := range map[string]func(context.Context) error{
		"status": func(ctx context.Context) error { _, err := maintenance.ReadStatus(ctx, target); return err },
		"purge": func(ctx context.Context) error {
			_, err := maintenance.Purge{Target: target, Retention: 24 * time.Hour}.Run(ctx)
			return err
		},
	} {
		ctx, interrupt := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- ask(ctx) }()
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil { // the login is under way
			t.Fatal(err)
		}
		stop := errors.New("interrupted")
		interrupt(stop)
		select {
		case err := <-ended:
			if !errors.Is(err, stop) {
				t.Errorf("%s: %v, want what interrupted it", name, err)
			}
		case <-time.After(maintenance.StopGrace):
			t.Errorf("%s goes on after it was interrupted, as if a statement were in hand", name)
			<-ended
		}
		_ = conn.Close()
	}
}
