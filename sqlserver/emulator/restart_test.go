package emulator

import "testing"

// A pool finds its connections dead after a restart, what it had committed in
// place, and a hole in the sequence.
func TestRestartSeenByAClient(t *testing.T) {
	s, db := start(t, Config{})
	ctx := t.Context()
	if _, err := db.ExecContext(ctx, `CREATE SEQUENCE dbo.s AS BIGINT START WITH 1 CACHE 100; CREATE TABLE dbo.t (id BIGINT PRIMARY KEY); INSERT dbo.t SELECT NEXT VALUE FOR dbo.s`); err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, `INSERT dbo.t SELECT NEXT VALUE FOR dbo.s`); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err == nil {
		t.Error("a transaction outlived the restart")
	}
	var rows, next int64
	if err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM dbo.t`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows, %v; want the committed one", rows, err)
	}
	if err := db.QueryRowContext(ctx, `SELECT NEXT VALUE FOR dbo.s`).Scan(&next); err != nil || next != 101 {
		t.Errorf("the sequence goes on with %d, %v; want 101", next, err)
	}
}
