package claimbench_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"azsqloutbox/maintenance"
	"azsqloutbox/maintenance/claimbench"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

// Whatever types and names the outbox has, the scratch table has them too.
func TestOddTables(t *testing.T) {
	for name, c := range map[string]struct {
		options scripts.Options
		alter   string
		note    string
		payload int
	}{
		"NVARCHAR":          {options: scripts.Options{EventType: "NVARCHAR(40)", Aggregate: "NVARCHAR(20)", Payload: "NVARCHAR(2000)", Collation: "database_default"}, payload: 50},
		"INT and MAX":       {options: scripts.Options{EventType: "INT", Payload: "VARCHAR(MAX)"}, payload: 50},
		"short columns":     {options: scripts.Options{EventType: "VARCHAR(2)", Aggregate: "VARCHAR(3)", Payload: "NVARCHAR(10)"}, payload: 10},
		"odd names":         {options: scripts.Options{Schema: "my schema", Table: "it's ]odd[ {events}", ClaimIndex: "IX]a'b", RetryIndex: "IX c"}, payload: 50},
		"a very long name":  {options: scripts.Options{Table: strings.Repeat("u", 112)}, payload: 50},
		"columns of theirs": {alter: "ALTER TABLE {events} ADD tenant INT NOT NULL DEFAULT (1), note NVARCHAR(50) NULL;", note: "the scratch table is without note, tenant", payload: 50},
		"other types":       {alter: "ALTER TABLE {events} ALTER COLUMN last_error NVARCHAR(100) NULL; ALTER TABLE {events} ALTER COLUMN processed_at DATETIME2(7) NULL;", payload: 50},
	} {
		t.Run(name, func(t *testing.T) {
			b := newOutboxIn(t, c.options)
			if c.alter != "" {
				b.exec(strings.ReplaceAll(c.alter, "DEFAULT", "CONSTRAINT DF_theirs DEFAULT"))
			}
			before := b.tables()
			r := b.run(b.small())
			if len(r.Results) != 10 || r.Payload != c.payload || b.tables() != before {
				t.Errorf("%+v", r)
			}
			for _, x := range r.Results {
				if x.CPU == nil {
					t.Errorf("%+v", x)
				}
			}
			if c.note != "" && !strings.Contains(fmt.Sprint(r.Notes), c.note) {
				t.Errorf("notes are %q", r.Notes)
			}
		})
	}
}

// newOutboxIn makes the schema, where it is another than dbo.
func newOutboxIn(t *testing.T, o scripts.Options) *outbox {
	t.Helper()
	b := newOutbox(t, emulator.Config{}, scripts.Options{Schema: "dbo", Table: "other"})
	if o.Schema != "" {
		b.exec("CREATE SCHEMA [" + o.Schema + "];")
	}
	b.names = sqlserver.Names{Schema: o.Schema, Table: o.Table, ClaimIndex: o.ClaimIndex, RetryIndex: o.RetryIndex}
	script, err := scripts.Outbox(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range scripts.Batches(script) {
		if _, err := b.server.Exec(t.Context(), batch); err != nil {
			t.Fatalf("%v in\n%s", err, batch)
		}
	}
	return b
}

// Its ids could not be given.
func TestAnIDThatIsTooSmall(t *testing.T) {
	b := newOutbox(t, emulator.Config{}, scripts.Options{})
	b.exec(`CREATE TABLE dbo.tiny (id SMALLINT NOT NULL PRIMARY KEY, aggregate_type VARCHAR(9) NOT NULL, aggregate_id VARCHAR(9) NOT NULL, event_type VARCHAR(9) NOT NULL,
payload VARCHAR(9) NOT NULL, headers VARCHAR(9) NULL, status TINYINT NOT NULL, created_at DATETIME2(3) NOT NULL, processed_at DATETIME2(3) NULL, retry_at DATETIME2(3) NULL, retry_count INT NOT NULL, last_error VARCHAR(9) NULL);`)
	bench := b.small()
	bench.Names.Table, bench.Rows = "tiny", 40_000
	if _, err := bench.Plan(t.Context()); !errors.Is(err, maintenance.ErrSetting) || !strings.Contains(err.Error(), "SMALLINT") {
		t.Errorf("error is %v", err)
	}
	bench.Rows = 400
	if _, err := bench.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTablesThatCannotBeMeasured(t *testing.T) {
	b := newOutbox(t, emulator.Config{}, scripts.Options{})
	b.exec(`CREATE TABLE dbo.lean (id BIGINT NOT NULL PRIMARY KEY, payload VARCHAR(9) NOT NULL);
ALTER TABLE dbo.outbox_event DROP COLUMN last_error;
ALTER TABLE dbo.outbox_event ADD last_error INT NULL;`)
	for table, want := range map[string]string{
		"nowhere": "dbo.nowhere", "lean": "event_type", "": "the column last_error is INT, must be VARCHAR or NVARCHAR; outboxctl schema check says more",
	} {
		bench := b.small()
		bench.Names.Table = table
		if r, err := bench.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) || r.Executed {
			t.Errorf("%q: %v", table, err)
		}
	}
}

// The outbox is neither read nor written, whatever happens beside it: its indexes
// have no use that a catalog query could not have made.
func TestTheOutboxIsNotTouched(t *testing.T) {
	b := newOutbox(t, emulator.Config{}, scripts.Options{})
	b.exec(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (1, 'order', '1', 'bench.event-type.1', 'x');`)
	uses := func() string {
		sets, err := b.server.Exec(t.Context(), `SELECT SUM(u.user_seeks + u.user_scans + u.user_lookups + u.user_updates) FROM sys.dm_db_index_usage_stats AS u WHERE u.object_id IN (OBJECT_ID('dbo.outbox_event'), OBJECT_ID('dbo.outbox_event_claim'));`)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(sets[0].Rows)
	}
	before := uses()
	b.run(b.small())
	if after := uses(); after != before {
		t.Errorf("uses of the outbox's indexes were %s and are %s", before, after)
	}
}

func TestValidate(t *testing.T) {
	b := newOutbox(t, emulator.Config{}, scripts.Options{})
	for want, change := range map[string]func(*claimbench.Bench){
		"field Batch is 2001, must be 1 to 2000":                    func(c *claimbench.Bench) { c.Batch = 2001 },
		"field Batch is -1":                                         func(c *claimbench.Bench) { c.Batch = -1 },
		"field Rounds is -1":                                        func(c *claimbench.Bench) { c.Rounds = -1 },
		"field Rows is 3000000":                                     func(c *claimbench.Bench) { c.Rows = 3_000_000 },
		"field Rows is 319, and 4 strategies of 3 rounds":           func(c *claimbench.Bench) { c.Rows = 319 },
		"field Payload is 600000":                                   func(c *claimbench.Bench) { c.Payload = 600_000 },
		`field Strategies names "merge", may name pipeline, update`: func(c *claimbench.Bench) { c.Strategies = []string{"merge"} },
		`field Strategies names "pipeline" twice`:                   func(c *claimbench.Bench) { c.Strategies = []string{"pipeline", "pipeline"} },
		"field DB is nil":                                           func(c *claimbench.Bench) { c.DB = nil },
	} {
		bench := b.small()
		change(&bench)
		if _, err := bench.Plan(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := (claimbench.Bench{Target: maintenance.Target{DB: b.db}}).Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}
