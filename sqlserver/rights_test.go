package sqlserver_test

import (
	"errors"
	"strings"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
	"azsqloutbox/worker"
)

// What 090_grants.sql gives the worker's role is all that the store needs, and it
// needs each of it.
func TestGrantsSuffice(t *testing.T) {
	if err := useEverything(t, -1); err != nil {
		t.Errorf("with all of them: %v", err)
	}
	for without := range 4 {
		var failed *sqlserver.Error
		if err := useEverything(t, without); !errors.As(err, &failed) || failed.Class != sqlserver.Permanent {
			t.Errorf("without grant %d: %v", without, err)
		}
	}
}

// useEverything calls what a worker calls, as a user with the role of the script
// alone, less the grant of that number.
func useEverything(t *testing.T, without int) error {
	t.Helper()
	server, err := emulator.Start(emulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	b := newOutboxOn(t, server.DSN(), scripts.Options{})
	b.exec(`CREATE USER [outbox-worker] WITH PASSWORD = 'Correct-Horse-1'`)
	script, err := scripts.Grants(b.options)
	if err != nil {
		t.Fatal(err)
	}
	grants := 0
	for _, batch := range scripts.Batches(script) {
		if strings.Contains(batch, "GRANT SELECT") {
			grants++
			if grants == without+1 {
				continue
			}
		}
		b.exec(batch)
	}
	if grants != 4 {
		t.Fatalf("the script has %d grants; this test knows of 4", grants)
	}
	var role string
	if err := b.db.QueryRowContext(testContext(t), `SELECT name FROM sys.database_principals WHERE type = 'R' AND is_fixed_role = 0 AND name <> 'public'`).Scan(&role); err != nil {
		t.Fatal(err)
	}
	b.exec("ALTER ROLE " + mssql.TSQLQuoter{}.ID(role) + " ADD MEMBER [outbox-worker]")
	b.add("a", 3)
	db, err := sqlserver.Open(server.DSNFor("outbox-worker", "Correct-Horse-1"), sqlserver.Options{AppName: "outbox-test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s := b.store(func(c *sqlserver.Config) { c.DB = db })
	ctx := testContext(t)
	if err := s.Check(ctx); err != nil {
		return err
	}
	if _, err := s.Heartbeat(ctx, worker.Heartbeat{}); err != nil {
		return err
	}
	if _, err := s.Pending(ctx, []string{"a"}); err != nil {
		return err
	}
	if _, _, err := s.DiscoverPending(ctx, nil, 5); err != nil {
		return err
	}
	if _, err := s.Backlog(ctx, []string{"a"}); err != nil {
		return err
	}
	c, err := s.Claim(ctx, worker.ClaimRequest{EventType: "a", Batch: 2})
	if err != nil {
		return err
	}
	if _, err := s.SettleSent(ctx, []worker.Receipt{c.Receipt}); err != nil {
		return err
	}
	if _, err := s.Claim(ctx, worker.ClaimRequest{EventType: "a", Batch: 2}); err != nil {
		return err
	}
	b.expire()
	if _, err := s.Reap(ctx); err != nil {
		return err
	}
	if _, err = s.RetryDue(ctx); err != nil {
		return err
	}
	return s.Leave(ctx)
}

// INSERT on the table and UPDATE on the sequence are a writer's rights; the
// catalog shows it the columns for them.
func TestWriterNeedsTwoRights(t *testing.T) {
	server, err := emulator.Start(emulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	b := newOutboxOn(t, server.DSN(), scripts.Options{})
	b.exec(`CREATE USER [app] WITH PASSWORD = 'Correct-Horse-1'; GRANT INSERT ON {events} TO [app]; GRANT UPDATE ON {sequence} TO [app]`)
	db, err := sqlserver.Open(server.DSNFor("app", "Correct-Horse-1"), sqlserver.Options{AppName: "outbox-test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	tx, err := db.BeginTx(testContext(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.writer().Enqueue(testContext(t), tx, event("a")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := b.number("SELECT COUNT(*) FROM {events}"); n != 1 {
		t.Errorf("%d events were written", n)
	}
}
