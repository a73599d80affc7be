package maintenance_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver/emulator"
)

// oldTable is an outbox as it was before: payload and headers are NVARCHAR.
type oldTable struct {
	*table
	nextID int64
}

func newOldTable(t *testing.T, o scripts.Options) *oldTable {
	t.Helper()
	return newOldTableOn(t, emulator.Config{}, o)
}

func newOldTableOn(t *testing.T, c emulator.Config, o scripts.Options) *oldTable {
	t.Helper()
	o.Payload, o.Collation = cmp.Or(o.Payload, "NVARCHAR(10)"), cmp.Or(o.Collation, "SQL_Latin1_General_CP1_CI_AS")
	return &oldTable{table: newTable(t, c, o), nextID: 1}
}

// exec runs a batch as the programs do, with what belongs to it; {events} and the
// other names are filled in.
func (b *oldTable) exec(text string, args ...any) {
	b.t.Helper()
	if _, err := b.db.ExecContext(b.t.Context(), b.names.Replacer().Replace(text), args...); err != nil {
		b.t.Fatalf("%v in\n%s", err, text)
	}
}

const insertRow = `INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload, headers) VALUES (@id, 'order', '1', 'order-placed', @payload, @headers)`

// add writes rows with these payloads, ids ascending by 10.
func (b *oldTable) add(payloads ...string) {
	b.t.Helper()
	for _, p := range payloads {
		b.exec(insertRow, sql.Named("id", b.nextID), sql.Named("payload", p), sql.Named("headers", nil))
		b.nextID += 10
	}
}

// text is a query's only value.
func (b *oldTable) text(query string, args ...any) string {
	b.t.Helper()
	var v sql.NullString
	if err := b.db.QueryRowContext(b.t.Context(), b.names.Replacer().Replace(query), args...).Scan(&v); err != nil {
		b.t.Fatalf("%v in\n%s", err, query)
	}
	return v.String
}

func (b *oldTable) migration() maintenance.Migration {
	return maintenance.Migration{Target: maintenance.Target{DB: b.db, Names: b.names}}
}

func check(t *testing.T, m maintenance.Migration) *maintenance.MigrationReport {
	t.Helper()
	r, err := m.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// counts are what the check counted.
type counts struct{ rows, chars, bytes, lossy, tooLong int64 }

func counted(r *maintenance.MigrationReport) counts {
	return counts{r.Rows, r.MaxChars, r.MaxBytes, r.LossyRows, r.TooLongRows}
}

func TestPreCheckFindsWhatWouldBeLost(t *testing.T) {
	const (
		latin       = "SQL_Latin1_General_CP1_CI_AS"
		insensitive = "Latin1_General_100_CI_AI"
		utf8        = "Latin1_General_100_BIN2_UTF8"
	)
	for _, c := range []struct {
		name      string
		column    string // its collation
		to        string
		length    string
		payloads  []string
		want      counts
		lost      string // of the first sample
		lossless  string
		blameless bool
	}{
		{name: "no rows", want: counts{}},
		{name: "plain text", payloads: []string{"", "abc", "0123456789"}, want: counts{3, 10, 10, 0, 0}},
		{name: "what the code page has", payloads: []string{"é€ß"}, want: counts{1, 3, 3, 0, 0}},
		{name: "a look-alike", payloads: []string{"ā"}, want: counts{1, 1, 1, 1, 0}, lost: "U+0101 U+0061", lossless: utf8 + " 10"},
		{name: "a look-alike under a collation that calls it equal", column: insensitive, payloads: []string{"xāy"}, want: counts{1, 3, 3, 1, 0}, lost: "U+0101 U+0061", lossless: "Latin1_General_100_CI_AI_SC_UTF8 10"},
		{name: "a full-width form under a collation that calls it equal", column: insensitive, payloads: []string{"Ａ"}, want: counts{1, 1, 1, 1, 0}, lost: "U+FF21 U+003F", lossless: "Latin1_General_100_CI_AI_SC_UTF8 10"},
		{name: "a pair", payloads: []string{"a😀b"}, want: counts{1, 4, 4, 1, 0}, lost: "U+1F600 U+003F U+003F", lossless: utf8 + " 10"},
		{name: "trailing spaces", payloads: []string{"a  ", "ā  "}, want: counts{2, 3, 3, 1, 0}, lost: "U+0101 U+0061", lossless: utf8 + " 10"},
		{name: "only spaces", payloads: []string{"   "}, want: counts{1, 3, 3, 0, 0}},
		{name: "a zero character", payloads: []string{"a\x00b\x00"}, want: counts{1, 4, 4, 0, 0}},
		{name: "a combining accent", payloads: []string{"e\u0301"}, want: counts{1, 2, 2, 1, 0}, lost: "U+0301 U+003F", lossless: utf8 + " 10"},
		{name: "exactly the length", length: "5", payloads: []string{"12345"}, want: counts{1, 5, 5, 0, 0}},
		{name: "a byte more", length: "5", payloads: []string{"123456"}, want: counts{1, 6, 6, 0, 1}, lossless: latin + " 6"},
		{name: "a trailing space more", length: "5", payloads: []string{"12345 "}, want: counts{1, 6, 6, 0, 1}, lossless: latin + " 6"},
		{name: "UTF-8 loses nothing", to: utf8, payloads: []string{"āＡ😀"}, want: counts{1, 4, 9, 0, 0}},
		{name: "UTF-8 at its length", to: utf8, payloads: []string{"✓✓✓a"}, want: counts{1, 4, 10, 0, 0}},
		{name: "UTF-8 a byte over", to: utf8, payloads: []string{"✓✓✓é"}, want: counts{1, 4, 11, 0, 1}, lossless: utf8 + " 11"},
		{name: "MAX", to: utf8, length: "MAX", payloads: []string{"✓✓✓é"}, want: counts{1, 4, 11, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			collation := c.column
			if collation == "" {
				collation = latin
			}
			b := newOldTable(t, scripts.Options{Collation: collation})
			b.add(c.payloads...)
			m := b.migration()
			m.Collation, m.Length = c.to, c.length
			r := check(t, m)
			if got := counted(r); got != c.want {
				t.Errorf("counted %+v, want %+v", got, c.want)
			}
			if !r.Complete || r.State != maintenance.MigrationChecked {
				t.Errorf("complete %v, state %s", r.Complete, r.State)
			}
			var lost, lossless string
			if len(r.Samples) > 0 {
				for _, l := range r.Samples[0].Characters {
					lost += l.CodePoint + " " + l.Becomes
				}
			}
			if l := r.Lossless; l != nil {
				lossless = l.Collation + " " + l.Length
			}
			if lost != c.lost || lossless != c.lossless {
				t.Errorf("lost %q, lossless %q; want %q and %q", lost, lossless, c.lost, c.lossless)
			}
			if r.Found() != (c.want.lossy+c.want.tooLong > 0) {
				t.Errorf("found is %v: %+v", r.Found(), r.Blockers)
			}
		})
	}
}

func TestSamplesAreFewAndShowNoText(t *testing.T) {
	b := newOldTable(t, scripts.Options{})
	for range 25 {
		b.add("secretā")
	}
	m := b.migration()
	r := check(t, m)
	if len(r.Samples) != 20 || r.LossyRows != 25 {
		t.Fatalf("%d samples of %d rows", len(r.Samples), r.LossyRows)
	}
	if r.Samples[0].ID != "1" || r.Samples[19].ID != "191" || r.Samples[0].Payload != nil {
		t.Errorf("samples %+v", r.Samples)
	}
	m.ShowPayload = true
	if r := check(t, m); r.Samples[0].Payload == nil || *r.Samples[0].Payload != "secretā" {
		t.Errorf("sample %+v", r.Samples[0])
	}
}

func TestCheckGoesOnWhereItWasInterrupted(t *testing.T) {
	b := newOldTable(t, scripts.Options{})
	b.addMany(12_000)
	b.add("ā")
	whole := check(t, b.migration())
	if whole.Rows != 12_001 || whole.LossyRows != 1 {
		t.Fatalf("%+v", whole)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := b.migration()
	m.Progress = func(p maintenance.Progress) {
		if p.Done > 0 {
			cancel()
		}
	}
	first, err := m.Check(ctx)
	if !errors.Is(err, context.Canceled) || first == nil || first.State != maintenance.MigrationInterrupted || first.Complete {
		t.Fatalf("%+v, %v", first, err)
	}
	through, _ := strconv.ParseInt(first.ThroughID, 10, 64)
	if want := fmt.Sprintf("ended after %s: go on with --from-id %d", quantity.Of(first.Rows, "row"), through+1); !strings.Contains(err.Error(), want) {
		t.Errorf("error %q lacks %q", err, want)
	}
	m = b.migration()
	next := through + 1
	m.FromID = &next
	second := check(t, m)
	if second.Complete || first.Rows+second.Rows != whole.Rows || second.LossyRows != 1 || second.FromID != strconv.FormatInt(next, 10) {
		t.Errorf("first %d rows, then %+v", first.Rows, second)
	}
	if _, err := m.Run(t.Context()); !errors.Is(err, maintenance.ErrSetting) {
		t.Errorf("a run from an id on: %v", err)
	}
}

// addMany writes rows of plain text in few statements, ids ascending by one.
func (b *oldTable) addMany(n int64) {
	b.t.Helper()
	b.exec(`INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload)
SELECT @first + s.value, 'order', '1', 'order-placed', N'text' FROM GENERATE_SERIES(0, CAST(@n AS INT) - 1) AS s`,
		sql.Named("first", b.nextID), sql.Named("n", n))
	b.nextID += n
}

// Ids at the ends of their type are rows like others, and compared in it.
func TestCheckReachesTheEndsOfTheIDs(t *testing.T) {
	for kind, ids := range map[string][]int64{
		"BIGINT":   {math.MinInt64, -1, 0, math.MaxInt64},
		"INT":      {math.MinInt32, -1, 0, math.MaxInt32},
		"SMALLINT": {math.MinInt16, -1, 0, math.MaxInt16},
	} {
		t.Run(kind, func(t *testing.T) {
			b := newOldTable(t, scripts.Options{})
			b.exec(`DROP TABLE {events}; CREATE TABLE {events} (id ` + kind + ` NOT NULL PRIMARY KEY, payload NVARCHAR(10) NOT NULL)`)
			for _, id := range ids {
				b.exec(`INSERT INTO {events} (id, payload) VALUES (@id, N'ā')`, sql.Named("id", id))
			}
			m := b.migration()
			if r := check(t, m); r.Rows != 4 || r.LossyRows != 4 || len(r.Samples) != 4 || !r.Complete {
				t.Errorf("%+v", r)
			}
			for from, rows := range map[int64]int64{math.MinInt64: 4, 1: 1, ids[3]: 1, math.MaxInt64: 1} {
				if from > ids[3] {
					rows = 0
				}
				m.FromID = &from
				if r := check(t, m); r.Rows != rows || r.Complete {
					t.Errorf("from %d: %+v", from, r)
				}
			}
			for _, s := range b.server.Statements() {
				if (s.Name == "MigrateWindow" || s.Name == "MigrateSamples") && strings.Contains(strings.Join(s.Texts, ""), "e.id >= @from") {
					t.Errorf("%s compares the id with a BIGINT:\n%s", s.Name, s.Texts[0])
				}
			}
		})
	}
}

func TestCheckWalksWholeNumbers(t *testing.T) {
	for columns, want := range map[string]string{
		"id UNIQUEIDENTIFIER NOT NULL PRIMARY KEY": "an id of type UNIQUEIDENTIFIER",
		"number BIGINT NOT NULL PRIMARY KEY":       "no column id",
	} {
		b := newOldTable(t, scripts.Options{})
		b.exec(`DROP TABLE {events}; CREATE TABLE {events} (` + columns + `, payload NVARCHAR(10) NOT NULL)`)
		if _, err := b.migration().Check(t.Context()); !errors.Is(err, maintenance.ErrSetting) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", columns, err)
		}
	}
}

func TestOtherColumnsAndNULL(t *testing.T) {
	b := newOldTable(t, scripts.Options{Aggregate: "NVARCHAR(20)"})
	b.exec(`ALTER TABLE {events} ALTER COLUMN last_error NVARCHAR(50) NULL`)
	for id, headers := range []any{nil, `{"a":"ā"}`, ""} {
		b.exec(insertRow, sql.Named("id", id), sql.Named("payload", "x"), sql.Named("headers", headers))
	}
	b.exec(`UPDATE {events} SET aggregate_id = N'ｗide', last_error = CASE WHEN id = 1 THEN N'naïve' END WHERE id < 2`)
	for column, want := range map[string]counts{
		"headers":        {3, 9, 9, 1, 0},
		"aggregate_id":   {3, 4, 4, 2, 0},
		"aggregate_type": {3, 5, 5, 0, 0},
		"last_error":     {3, 5, 5, 0, 0},
	} {
		m := b.migration()
		m.Column = column
		if got := counted(check(t, m)); got != want {
			t.Errorf("%s: %+v, want %+v", column, got, want)
		}
	}
}

func TestMigrationSettings(t *testing.T) {
	b := newOldTable(t, scripts.Options{})
	for field, change := range map[string]func(*maintenance.Migration){
		"Column is event_type": func(m *maintenance.Migration) { m.Column = "event_type" },
		"Column is \"status\"": func(m *maintenance.Migration) { m.Column = "status" },
		"Length is \"0\"":      func(m *maintenance.Migration) { m.Length = "0" },
		"Length is \"8001\"":   func(m *maintenance.Migration) { m.Length = "8001" },
		"Length is \"SOME\"":   func(m *maintenance.Migration) { m.Length = "some" },
		"Collation":            func(m *maintenance.Migration) { m.Collation = "x; DROP TABLE y" },
		"Guard":                func(m *maintenance.Migration) { m.Guard = "hope" },
		"DB is nil":            func(m *maintenance.Migration) { m.DB = nil },
	} {
		m := b.migration()
		change(&m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("got %v, want an error that names %s", err, field)
		}
	}
	m := b.migration()
	m.Collation = "Latin1_General_900_CI_AS"
	if _, err := m.Check(t.Context()); !errors.Is(err, maintenance.ErrSetting) {
		t.Errorf("a collation that the server lacks: %v", err)
	}
	m.Collation = "database_default"
	if r := check(t, m); r.To != "VARCHAR(10) COLLATE SQL_Latin1_General_CP1_CI_AS NOT NULL" {
		t.Errorf("database_default gives %s", r.To)
	}
}
