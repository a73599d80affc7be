package tds

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

func collationNamed(t testing.TB, name string) *sqltype.Collation {
	t.Helper()
	c, ok := sqltype.LookupCollation(name)
	if !ok {
		t.Fatalf("no collation %s", name)
	}
	return c
}

// ticksOf is a time as sqltype counts it.
func ticksOf(when time.Time) int64 {
	days := int64(0)
	for year := 1; year < when.Year(); year++ {
		days += int64(time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC).YearDay())
	}
	days += int64(when.YearDay() - 1)
	clock := time.Duration(when.Hour())*time.Hour + time.Duration(when.Minute())*time.Minute +
		time.Duration(when.Second())*time.Second + time.Duration(when.Nanosecond())
	return days*ticksPerDay + int64(clock/100)
}

func TestDriverReadsEveryColumnType(t *testing.T) {
	utf8 := collationNamed(t, "Latin1_General_100_BIN2_UTF8")
	latin := collationNamed(t, "Latin1_General_100_CI_AS")
	when := time.Date(1999, 12, 31, 23, 59, 59, 996_666_700, time.UTC)
	n := ticksOf(when)
	minute := time.Date(1999, 12, 31, 23, 59, 0, 0, time.UTC)
	big := "1234567890123456789012345678.9012345678"
	tests := []struct {
		name   string
		typ    sqltype.Type
		value  sqltype.Value
		want   any
		dbType string
	}{
		{"decimal", sqltype.Type{Kind: sqltype.Decimal, Precision: 9, Scale: 2}, sqltype.Value{Kind: sqltype.Decimal, N: -1234, Scale: 2}, []byte("-12.34"), "DECIMAL"},
		{"decimal rescaled", sqltype.Type{Kind: sqltype.Decimal, Precision: 18, Scale: 4}, sqltype.Value{Kind: sqltype.Decimal, N: 5, Scale: 0}, []byte("5.0000"), "DECIMAL"},
		{"decimal rounded", sqltype.Type{Kind: sqltype.Decimal, Precision: 18, Scale: 1}, sqltype.Value{Kind: sqltype.Decimal, N: 1995, Scale: 3}, []byte("2.0"), "DECIMAL"},
		{"big decimal", sqltype.Type{Kind: sqltype.Decimal, Precision: 38, Scale: 10}, sqltype.Value{Kind: sqltype.Decimal, Big: true, S: big, Scale: 10}, []byte(big), "DECIMAL"},
		{"money", sqltype.Type{Kind: sqltype.Money}, sqltype.Value{Kind: sqltype.Money, N: -10001}, []byte("-1.0001"), "MONEY"},
		{"real", sqltype.Type{Kind: sqltype.Real}, sqltype.FloatValue(sqltype.Real, 1.5), 1.5, "REAL"},
		{"bit from an int", sqltype.Type{Kind: sqltype.Bit}, sqltype.Value{Kind: sqltype.Int, N: 1}, true, "BIT"},
		{"datetime", sqltype.Type{Kind: sqltype.DateTime}, sqltype.Value{Kind: sqltype.DateTime, N: n}, when.Truncate(time.Millisecond).Add(time.Millisecond), "DATETIME"},
		{"datetime that rounds into the next day", sqltype.Type{Kind: sqltype.DateTime}, sqltype.Value{Kind: sqltype.DateTime, N: n + 32_000}, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), "DATETIME"},
		{"smalldatetime", sqltype.Type{Kind: sqltype.SmallDateTime}, sqltype.Value{Kind: sqltype.SmallDateTime, N: ticksOf(minute)}, minute, "SMALLDATETIME"},
		{"datetime2(3)", sqltype.Type{Kind: sqltype.DateTime2, Scale: 3}, sqltype.Value{Kind: sqltype.DateTime2, N: n}, when.Truncate(time.Millisecond), "DATETIME2"},
		{"datetimeoffset", sqltype.Type{Kind: sqltype.DateTimeOffset, Scale: 7}, sqltype.Value{Kind: sqltype.DateTimeOffset, N: n, Offset: -90}, when, "DATETIMEOFFSET"},
		{"time(0)", sqltype.Type{Kind: sqltype.Time}, sqltype.Value{Kind: sqltype.Time, N: 61 * ticksPerSecond}, time.Date(1, 1, 1, 0, 1, 1, 0, time.UTC), "TIME"},
		{"char", sqltype.Type{Kind: sqltype.Char, Length: 5, Collation: latin}, sqltype.Value{Kind: sqltype.Char, S: "grün "}, "grün ", "CHAR"},
		{"varchar in code page 1252", sqltype.Type{Kind: sqltype.VarChar, Length: 50, Collation: latin}, sqltype.Value{Kind: sqltype.VarChar, S: "Größe: 5 €"}, "Größe: 5 €", "VARCHAR"},
		{"varchar of MAX in code page 1252", sqltype.Type{Kind: sqltype.VarChar, Length: sqltype.Max, Collation: latin}, sqltype.Value{Kind: sqltype.VarChar, S: strings.Repeat("€", 9000)}, strings.Repeat("€", 9000), "VARCHAR"},
		{"varchar in UTF-8 comes as nvarchar", sqltype.Type{Kind: sqltype.VarChar, Length: 2000, Collation: utf8}, sqltype.Value{Kind: sqltype.VarChar, S: "世界 𝄞"}, "世界 𝄞", "NVARCHAR"},
		{"long varchar in UTF-8", sqltype.Type{Kind: sqltype.VarChar, Length: 8000, Collation: utf8}, sqltype.Value{Kind: sqltype.VarChar, S: strings.Repeat("x", 8000)}, strings.Repeat("x", 8000), "NVARCHAR"},
		{"char in UTF-8 comes as nchar", sqltype.Type{Kind: sqltype.Char, Length: 4, Collation: utf8}, sqltype.Value{Kind: sqltype.Char, S: "é  "}, "é  ", "NCHAR"},
		{"binary", sqltype.Type{Kind: sqltype.Binary, Length: 2}, sqltype.Value{Kind: sqltype.Binary, S: "\x00\x01"}, []byte{0, 1}, "BINARY"},
		{"empty varbinary of MAX", sqltype.Type{Kind: sqltype.VarBinary, Length: sqltype.Max}, sqltype.Value{Kind: sqltype.VarBinary}, []byte{}, "VARBINARY"},
		{"xml", sqltype.Type{Kind: sqltype.XML}, sqltype.Value{Kind: sqltype.XML, S: "<a>ä</a>"}, "<a>ä</a>", "XML"},
		{"an untyped NULL is an int", sqltype.Type{Kind: sqltype.Null}, sqltype.Value{}, nil, "INT"},
		{"variant int", sqltype.Type{Kind: sqltype.SQLVariant}, sqltype.Value{Kind: sqltype.Int, N: -5}, int64(-5), "SQL_VARIANT"},
		{"variant text", sqltype.Type{Kind: sqltype.SQLVariant}, sqltype.Value{Kind: sqltype.VarChar, S: "ÿ"}, "ÿ", "SQL_VARIANT"},
		{"variant decimal", sqltype.Type{Kind: sqltype.SQLVariant}, sqltype.Value{Kind: sqltype.Decimal, N: 125, Scale: 2}, []byte("1.25"), "SQL_VARIANT"},
		{"variant datetime2", sqltype.Type{Kind: sqltype.SQLVariant}, sqltype.Value{Kind: sqltype.DateTime2, N: n}, when, "SQL_VARIANT"},
		{"variant binary", sqltype.Type{Kind: sqltype.SQLVariant}, sqltype.Value{Kind: sqltype.VarBinary, S: "\x07"}, []byte{7}, "SQL_VARIANT"},
		{"variant money", sqltype.Type{Kind: sqltype.SQLVariant}, sqltype.Value{Kind: sqltype.Money, N: 10000}, []byte("1.0000"), "SQL_VARIANT"},
		{"variant NULL", sqltype.Type{Kind: sqltype.SQLVariant}, sqltype.Value{}, nil, "SQL_VARIANT"},
	}
	backend := &fakeBackend{handlers: map[string]handler{}}
	for _, tt := range tests {
		backend.handlers[tt.name+" ."] = func(_ context.Context, _ call, w ResultWriter) error {
			// The same value three times: alone, then beside a NULL of its type,
			// which a row with a bitmap carries, and a column behind that.
			cols := []Column{
				{Name: "v", Type: tt.typ, Nullable: true},
				{Name: "null", Type: tt.typ, Nullable: true},
				{Name: "v2", Type: tt.typ, Nullable: true},
			}
			if err := w.Columns(cols); err != nil {
				return err
			}
			if err := w.Row([]sqltype.Value{tt.value, tt.value, tt.value}); err != nil {
				return err
			}
			if err := w.Row([]sqltype.Value{tt.value, {}, tt.value}); err != nil {
				return err
			}
			return w.Done(2, true)
		}
	}
	addr, _ := start(t, Config{Backend: backend})
	db := openDB(t, addr, "encrypt=disable")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows, err := db.Query(tt.name + " .")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			types, _ := rows.ColumnTypes()
			if got := types[0].DatabaseTypeName(); got != tt.dbType {
				t.Errorf("the column is %s, want %s", got, tt.dbType)
			}
			for _, middle := range []any{tt.want, nil} {
				if !rows.Next() {
					t.Fatal(rows.Err())
				}
				var got [3]any
				if err := rows.Scan(&got[0], &got[1], &got[2]); err != nil {
					t.Fatal(err)
				}
				want := [3]any{tt.want, middle, tt.want}
				same := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
				if diff := cmp.Diff(want, got, same); diff != "" {
					t.Errorf("wrong row (-want +got):\n%.500s", diff)
				}
			}
			if rows.Next() || rows.Err() != nil {
				t.Errorf("more than two rows, or %v", rows.Err())
			}
		})
	}
}

func TestEngineDefectsAreLoud(t *testing.T) {
	backend := &fakeBackend{handlers: map[string]handler{
		"text in an int column": func(_ context.Context, _ call, w ResultWriter) error {
			if err := w.Columns([]Column{{Name: "n", Type: sqltype.Type{Kind: sqltype.Int}}}); err != nil {
				return err
			}
			_ = w.Row([]sqltype.Value{{Kind: sqltype.VarChar, S: "x"}})
			return nil
		},
		"decimal beyond its precision": func(_ context.Context, _ call, w ResultWriter) error {
			if err := w.Columns([]Column{{Name: "n", Type: sqltype.Type{Kind: sqltype.Decimal, Precision: 9}}}); err != nil {
				return err
			}
			_ = w.Row([]sqltype.Value{{Kind: sqltype.Decimal, N: 1 << 40}})
			return nil
		},
		"row without columns": func(_ context.Context, _ call, w ResultWriter) error {
			_ = w.Row([]sqltype.Value{{}})
			return nil
		},
	}}
	addr, _ := start(t, Config{Backend: backend})
	db := openDB(t, addr, "encrypt=disable")
	for name := range backend.handlers {
		if _, err := db.Exec(name); err == nil || strings.Contains(err.Error(), "unknown") {
			t.Errorf("%s: got %v, want an error that names the column", name, err)
		}
	}
}

type tvpRowValue struct {
	ID   int64
	Name string
	Blob []byte
	Flag *bool
}

func TestTableValuedParameter(t *testing.T) {
	backend := &fakeBackend{handlers: map[string]handler{
		"take": func(_ context.Context, _ call, w ResultWriter) error { return w.Done(0, true) },
	}}
	addr, _ := start(t, Config{Backend: backend})
	db := openDB(t, addr, "encrypt=true")
	yes := true
	rows := make([]tvpRowValue, 5000)
	for i := range rows {
		rows[i] = tvpRowValue{ID: int64(i), Name: fmt.Sprint("név ", i), Blob: []byte{byte(i)}}
	}
	rows[1].Flag, rows[2].Blob = &yes, nil
	for _, size := range []int{len(rows), 0} {
		if _, err := db.Exec("take", mssql.TVP{TypeName: "dbo.Ids", Value: rows[:size]}); err != nil {
			t.Fatal(err)
		}
		backend.seen(func(b *fakeBackend) {
			table := b.calls[len(b.calls)-1].params[0].Table
			if table == nil || table.TypeName != "dbo.Ids" || len(table.Columns) != 4 || len(table.Rows) != size {
				t.Fatalf("got table %.200v", table)
			}
			for i, want := range [][]sqltype.Value{
				0: {{Kind: sqltype.BigInt, N: 0}, {Kind: sqltype.NVarChar, S: "név 0"}, {Kind: sqltype.VarBinary, S: "\x00"}, {}},
				1: {{Kind: sqltype.BigInt, N: 1}, {Kind: sqltype.NVarChar, S: "név 1"}, {Kind: sqltype.VarBinary, S: "\x01"}, {Kind: sqltype.Bit, N: 1}},
				2: {{Kind: sqltype.BigInt, N: 2}, {Kind: sqltype.NVarChar, S: "név 2"}, {}, {}},
			} {
				if size > 0 {
					if diff := cmp.Diff(want, table.Rows[i]); diff != "" {
						t.Errorf("row %d (-want +got):\n%s", i, diff)
					}
				}
			}
		})
	}
}

func TestBulkCopy(t *testing.T) {
	columns := []Column{
		{Name: "id", Type: sqltype.Type{Kind: sqltype.BigInt}},
		{Name: "name", Type: sqltype.Type{Kind: sqltype.NVarChar, Length: 100}, Nullable: true},
		{Name: "code", Type: sqltype.Type{Kind: sqltype.VarChar, Length: 20}, Nullable: true},
		{Name: "body", Type: sqltype.Type{Kind: sqltype.NVarChar, Length: sqltype.Max}, Nullable: true},
		{Name: "amount", Type: sqltype.Type{Kind: sqltype.Decimal, Precision: 20, Scale: 2}, Nullable: true},
		{Name: "at", Type: sqltype.Type{Kind: sqltype.DateTime2, Scale: 3}, Nullable: true},
	}
	nothing := func(context.Context, call, ResultWriter) error { return nil }
	handlers := map[string]handler{
		"SET FMTONLY ON": nothing,
		"select * from [orders] SET FMTONLY OFF": func(_ context.Context, _ call, w ResultWriter) error {
			if err := w.Columns(columns); err != nil {
				return err
			}
			return w.Done(0, true)
		},
		"INSERT BULK [orders] ([id] bigint, [name] nvarchar(100), [code] varchar(20), [body] nvarchar(max), [amount] decimal(20, 2), [at] datetime2(3)) ": func(_ context.Context, _ call, w ResultWriter) error {
			return w.ExpectBulk(columns)
		},
	}
	backend := &fakeBackend{handlers: handlers}
	// A row may be larger than a packet, and the whole larger than a request.
	addr, _ := start(t, Config{Backend: backend, MaxRequestBytes: 64 << 10})
	db := openDB(t, addr, "encrypt=true")
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	stmt, err := tx.Prepare(mssql.CopyIn("orders", mssql.BulkOptions{}, "id", "name", "code", "body", "amount", "at"))
	if err != nil {
		t.Fatal(err)
	}
	when := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	body := strings.Repeat("0123456789", 1000)
	for i := range 200 {
		var name any = fmt.Sprint("n", i)
		if i == 3 {
			name = nil
		}
		if _, err := stmt.Exec(i, name, "c", body, "12345678901234567.25", when); err != nil {
			t.Fatal(err)
		}
	}
	result, err := stmt.Exec()
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := result.RowsAffected(); n != 200 {
		t.Errorf("%d rows affected, want 200", n)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	backend.seen(func(b *fakeBackend) {
		got := b.calls[len(b.calls)-1]
		if len(got.rows) != 200 || len(got.columns) != 6 || got.columns[3].Name != "body" {
			t.Fatalf("got %d rows of %d columns", len(got.rows), len(got.columns))
		}
		want := []sqltype.Value{
			{Kind: sqltype.BigInt, N: 3},
			{},
			{Kind: sqltype.VarChar, S: "c"},
			{Kind: sqltype.NVarChar, S: body},
			{Kind: sqltype.Decimal, Scale: 2, Big: true, S: "12345678901234567.25"},
			{Kind: sqltype.DateTime2, N: ticksOf(when)},
		}
		if diff := cmp.Diff(want, got.rows[3]); diff != "" {
			t.Errorf("row 3 (-want +got):\n%.600s", diff)
		}
	})
}
