package maintenance_test

import (
	"errors"
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
