package emulator_test

import (
	"database/sql"
	"errors"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/sqlserver/emulator"
)

// A contained user connects with its own password and does what it was granted,
// a reset of its connection included.
func TestContainedUserConnects(t *testing.T) {
	s, err := emulator.Start(emulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	admin, err := sql.Open("sqlserver", s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if _, err := admin.ExecContext(t.Context(), `CREATE TABLE t (id INT NOT NULL); CREATE USER worker WITH PASSWORD = 'Correct-Horse-1'; GRANT INSERT ON t TO worker`); err != nil {
		t.Fatal(err)
	}
	worker, err := sql.Open("sqlserver", s.DSNFor("worker", "Correct-Horse-1"))
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	for range 2 {
		if _, err := worker.ExecContext(t.Context(), `INSERT t (id) VALUES (1)`); err != nil {
			t.Fatal(err)
		}
		_, err = worker.ExecContext(t.Context(), `DELETE t`)
		wantNumber(t, err, 229)
	}
	wrong, err := sql.Open("sqlserver", s.DSNFor("worker", "wrong"))
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	wantNumber(t, wrong.PingContext(t.Context()), 18456)
}

func wantNumber(t *testing.T, err error, number int32) {
	t.Helper()
	var e mssql.Error
	if !errors.As(err, &e) || e.Number != number {
		t.Fatalf("got %v, want error %d", err, number)
	}
}
