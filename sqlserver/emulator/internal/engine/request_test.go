package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

func text(s string) tds.Param {
	return tds.Param{Type: nvarcharType(sqltype.Max), Value: nvarcharValue(s)}
}

// rpc runs a procedure and returns what came back.
func rpc(t testing.TB, s tds.Session, proc string, params ...tds.Param) *recorder {
	t.Helper()
	r := &recorder{}
	if err := s.RPC(context.Background(), proc, params, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestExecuteSQLReturnsOutput(t *testing.T) {
	s := open(t, newEngine(t))
	in := tds.Param{Name: "@a", Type: intType, Value: intValue(4)}
	out := tds.Param{Name: "@b", Type: bigType, Output: true}
	r := rpc(t, s, "sp_executesql", text("SET @b = @a * 2; SELECT @a"), text("@a INT, @b BIGINT OUTPUT"), in, out)
	if got := r.text(); got != "4\nstatus 0\n@b = 8" {
		t.Error(got)
	}
	if got := rpc(t, s, "sp_executesql", text("BEGIN TRAN")).text(); got != "began\nerror 266\nstatus 0" {
		t.Error(got)
	}
	if got := rpc(t, s, "sp_nothing").text(); got != "error 2812\nstatus 0" {
		t.Error(got)
	}
}

func TestPreparedStatements(t *testing.T) {
	s := open(t, newEngine(t))
	h := tds.Param{Type: intType, Output: true, Name: "@handle"}
	if got := rpc(t, s, "sp_prepare", h, text("@x INT"), text("SELECT @x + 1")).text(); got != "status 0\n@handle = 1" {
		t.Fatal(got)
	}
	one := tds.Param{Type: intType, Value: intValue(1)}
	if got := rpc(t, s, "sp_execute", one, one).text(); got != "2\nstatus 0" {
		t.Error(got)
	}
	rpc(t, s, "sp_unprepare", one)
	if got := rpc(t, s, "sp_execute", one, one).text(); got != "error 8179\nstatus 0" {
		t.Error(got)
	}
}

func TestTableValuedParameter(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, `CREATE TYPE dbo.ids AS TABLE (id BIGINT NOT NULL, v VARCHAR(3) NULL)`)
	p := tds.Param{Name: "@l", Type: sqltype.Type{Kind: sqltype.TableType}, Table: &tds.Table{
		TypeName: "dbo.ids",
		Rows:     [][]sqltype.Value{{bigValue(1), nvarcharValue("a")}, {bigValue(2), {}}},
	}}
	if got := rpc(t, s, "sp_executesql", text("SELECT id, v FROM @l"), text("@l dbo.ids READONLY"), p).text(); got != "1|a\n2|NULL\nstatus 0" {
		t.Error(got)
	}
	if got := rpc(t, s, "sp_executesql", text("DELETE @l"), text("@l dbo.ids READONLY"), p).text(); got != "error 10700" {
		t.Error(got)
	}
	p.Table.Rows = [][]sqltype.Value{{bigValue(1), nvarcharValue("long")}}
	if got := rpc(t, s, "sp_executesql", text("SELECT 1"), text("@l dbo.ids READONLY"), p).text(); got != "error 2628" {
		t.Error(got)
	}
}

func TestBulkLoad(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, `CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v VARCHAR(3) NULL DEFAULT ('d'), CONSTRAINT CK CHECK (id < 10))`)
	load := func(options string, rows ...[]sqltype.Value) string {
		r := run(t, s, `INSERT BULK t ([id] int, [v] varchar(3)) `+options)
		if len(r.bulk) != 2 {
			t.Fatalf("columns expected: %v", r.bulk)
		}
		r = &recorder{}
		next := func() ([]sqltype.Value, bool, error) {
			if len(rows) == 0 {
				return nil, false, nil
			}
			row := rows[0]
			rows = rows[1:]
			return row, true, nil
		}
		if err := s.Bulk(context.Background(), r.bulk, next, r); err != nil {
			t.Fatal(err)
		}
		return r.text()
	}
	row := func(id int64, v string) []sqltype.Value {
		if v == "" {
			return []sqltype.Value{intValue(id), {}}
		}
		return []sqltype.Value{intValue(id), varcharValue(v)}
	}
	if got := load("", row(1, "a"), row(20, "")); got != "" {
		t.Error(got)
	}
	if got := load("WITH (CHECK_CONSTRAINTS, KEEP_NULLS)", row(2, ""), row(30, "x")); got != "error 547" {
		t.Error(got)
	}
	if got := load("WITH (TABLOCK)", row(3, "x"), row(1, "x")); got != "error 2627" {
		t.Error(got)
	}
	if got := run(t, s, `SELECT id, v FROM t`).text(); got != "1|a\n20|d" {
		t.Error(got)
	}
	if got := run(t, s, `SET FMTONLY ON select * from t SET FMTONLY OFF`).text(); got != "" {
		t.Error(got)
	}
}

// A reset leaves nothing of the session but the connection.
func TestReset(t *testing.T) {
	e := newEngine(t)
	s := open(t, e)
	must(t, s, smallTable+`; CREATE TABLE #x (a INT); SET XACT_ABORT ON; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN TRAN; INSERT t VALUES (1, 1)`)
	s.Reset(context.Background())
	if got := run(t, s, `SELECT @@TRANCOUNT, COUNT(*) FROM t; SELECT OBJECT_ID('#x'), SESSIONPROPERTY('QUOTED_IDENTIFIER'), XACT_STATE(); SELECT id FROM t WITH (READPAST, READCOMMITTEDLOCK)`).text(); got != "0|0\nNULL|1|0" {
		t.Error(got)
	}
}

func TestLoginToAnotherDatabase(t *testing.T) {
	_, err := newEngine(t).Login(context.Background(), tds.Login{Database: "other"})
	var te *tds.Error
	if !errors.As(err, &te) || te.Number != 4060 {
		t.Errorf("got %v, want 4060", err)
	}
}

// What the parser must not see is refused before it does.
func TestGuard(t *testing.T) {
	s := open(t, newEngine(t))
	for _, c := range []struct{ name, sql, want string }{
		{"parentheses", "SELECT " + strings.Repeat("(", 100_000), "error 191"},
		{"signs", "SELECT " + strings.Repeat("- ", 100_000) + "1", "error 191"},
		{"blocks", strings.Repeat("BEGIN ", 100_000), "error 191"},
		{"conditions", strings.Repeat("IF 1=1 ", 100_000), "error 191"},
		{"length", strings.Repeat(" ", maxTextBytes+1), "error 50999"},
		{"comment", "SELECT 1 /* /* */", "error 113"},
		{"closing", "SELECT 1)", "error 102"},
		{"nested comment", "SELECT /* /* */ */ 1", "error 50999"},
		{"quotes in quotes", "SELECT '(''(' -- (", "('("},
	} {
		if got := run(t, s, c.sql).text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
