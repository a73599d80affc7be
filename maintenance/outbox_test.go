package maintenance_test

import (
	"database/sql"
	"strings"
	"testing"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

// table is an outbox on an embedded engine of its own.
type table struct {
	t      *testing.T
	server *emulator.Server
	db     *sql.DB
	names  sqlserver.Names
}

// newTable starts an engine and runs the script on it.
func newTable(t *testing.T, c emulator.Config, o scripts.Options) *table {
	t.Helper()
	b := newEngine(t, c)
	b.names = sqlserver.Names{Schema: o.Schema, Table: o.Table, ClaimIndex: o.ClaimIndex, RetryIndex: o.RetryIndex}
	if o.Schema != "" {
		b.exec("CREATE SCHEMA {schema}")
	}
	script, err := scripts.Outbox(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range scripts.Batches(script) {
		b.exec(batch)
	}
	return b
}

// newEngine starts an engine with nothing on it.
func newEngine(t *testing.T, c emulator.Config) *table {
	t.Helper()
	server, err := emulator.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	db, err := sqlserver.Open(server.DSN(), sqlserver.Options{AppName: "maintenance-test", LongStatements: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &table{t: t, server: server, db: db}
}

func (b *table) target() maintenance.Target { return maintenance.Target{DB: b.db, Names: b.names} }

// exec runs a batch; {events} and the other names are filled in.
func (b *table) exec(batch string) {
	b.t.Helper()
	if _, err := b.server.Exec(b.t.Context(), b.names.Replacer().Replace(batch)); err != nil {
		b.t.Fatalf("%v in\n%s", err, batch)
	}
}

// value is the first value of a query.
func (b *table) value(query string) any {
	b.t.Helper()
	sets, err := b.server.Exec(b.t.Context(), b.names.Replacer().Replace(query))
	if err != nil {
		b.t.Fatalf("%v in\n%s", err, query)
	}
	if len(sets) == 0 || len(sets[0].Rows) == 0 {
		return nil
	}
	return sets[0].Rows[0][0]
}

// contains says whether every part is in text.
func contains(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
