package engine

import (
	"strings"
	"testing"
)

func TestThrowAndRaiserrorRefuse(t *testing.T) {
	play(t, []batch{
		{`RAISERROR ('m', 19, 1)`, "error 2754"},
		{`RAISERROR ('m %d', 16, 1, 'x')`, "error 2786"},
		{`RAISERROR ('m %s', 16, 1, 5)`, "error 2786"},
		{`RAISERROR ('m %z', 16, 1, 5)`, "error 2787"},
		{`DECLARE @d DATE = '2026-01-01'; RAISERROR ('m %s', 16, 1, @d)`, "error 2748"},
		{`RAISERROR ('m %5.2s|%-4d|%% %I64d', 10, 1, 'abc', 7, 8)`, "info m    ab|7   |% 8"},
		{`THROW 50001, 'a % b', 1`, "error 50999"},
		{`BEGIN TRY; THROW 50001, '15%% of it', 1; END TRY BEGIN CATCH; SELECT ERROR_MESSAGE(); END CATCH`, "15% of it"},
		{`THROW 50001, 'm', 256`, "error 220"},
	})
}

// An error has the line of the statement that failed, for ERROR_LINE() too.
func TestErrorsKnowTheirLine(t *testing.T) {
	s := open(t, newEngine(t))
	must(t, s, `CREATE TABLE t (id INT NOT NULL PRIMARY KEY); INSERT t VALUES (1)`)
	r := run(t, s, "SELECT 1;\n\nINSERT t VALUES (1)")
	if len(r.errors) != 1 || r.errors[0].Line != 3 {
		t.Errorf("got %v", r.errors)
	}
	if got := must(t, s, "BEGIN TRY\n  INSERT t VALUES (2)\n  INSERT t VALUES (1)\nEND TRY\nBEGIN CATCH\n  SELECT ERROR_LINE();\nEND CATCH").text(); got != "3" {
		t.Errorf("ERROR_LINE: %q", got)
	}
	must(t, s, "CREATE PROCEDURE p AS\nBEGIN\n  INSERT t VALUES (1)\nEND")
	if r = run(t, s, "\n\n\n\n\n\nEXEC p"); len(r.errors) != 1 || r.errors[0].Line != 3 || !strings.Contains(r.errors[0].Procname, "p") {
		t.Errorf("in a procedure: %v", r.errors)
	}
}
