package sqlserver_test

import (
	"slices"
	"testing"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

// What a Rendering says that a claim sends is what a Store sends, to the letter:
// else something other would be measured than what runs.
func TestRenderingIsWhatTheStoreSends(t *testing.T) {
	server, err := emulator.Start(emulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for name, o := range map[string]scripts.Options{
		"default": {},
		"odd":     {EventType: "NVARCHAR(30)", Payload: "NVARCHAR(MAX)", Collation: "database_default", Aggregate: "NVARCHAR(20)"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newOutboxOn(t, server.DSN(), o)
			b.add("order", 3)
			claim(t, b.store(), "order", 10)
			conn, err := b.db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			r, err := sqlserver.ReadRendering(t.Context(), conn, b.names)
			if err != nil {
				t.Fatal(err)
			}
			sent := make(map[string]string)
			for _, s := range server.Statements() {
				sent[s.Name] = s.Texts[len(s.Texts)-1]
			}
			if sent["ClaimEvents"] != r.ClaimEvents() || sent["FlipClaim"] != r.FlipClaim() {
				t.Errorf("the store sent\n%s\n%s\nand the rendering is\n%s\n%s", sent["ClaimEvents"], sent["FlipClaim"], r.ClaimEvents(), r.FlipClaim())
			}
		})
	}
}

func TestRenderingKnowsTheColumns(t *testing.T) {
	b := newOutbox(t, scripts.Options{EventType: "INT", Payload: "NVARCHAR(MAX)", Collation: "database_default"})
	b.needCatalog()
	b.exec("ALTER TABLE {events} ADD tenant INT NULL;")
	conn, err := b.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := sqlserver.ReadRendering(t.Context(), conn, b.names)
	if err != nil {
		t.Fatal(err)
	}
	columns := make(map[string]sqlserver.ColumnType)
	for _, c := range r.Columns() {
		columns[c.Name] = c
	}
	if c := columns["payload"]; c.Declaration != "NVARCHAR(MAX)" || c.Collation == "" || !c.Unicode || c.Bytes < 1<<30 || c.Nullable {
		t.Errorf("%+v", c)
	}
	if c := columns["event_type"]; c.Declaration != "INT" || c.Highest != 1<<31-1 || c.Bytes != 0 {
		t.Errorf("%+v", c)
	}
	if len(columns) != 12 || !slices.Equal(r.Others(), []string{"tenant"}) {
		t.Errorf("%d columns, others %q", len(columns), r.Others())
	}
}
