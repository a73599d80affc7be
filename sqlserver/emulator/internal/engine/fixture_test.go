package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// recorder is a tds.ResultWriter that writes down what it is told, one line a
// thing.
type recorder struct {
	lines  []string
	errors []*tds.Error
	rows   int
	bulk   []tds.Column
}

func (r *recorder) add(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) Columns(cols []tds.Column) error {
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.Name
	}
	r.add("columns %s", strings.Join(names, ","))
	return nil
}

func (r *recorder) Row(v []sqltype.Value) error {
	texts := make([]string, len(v))
	for i := range v {
		texts[i] = sqltype.Format(v[i])
		if v[i].Kind.IsBinary() {
			texts[i], _ = sqltype.FormatStyle(v[i], 1)
		}
	}
	r.rows++
	r.add("%s", strings.Join(texts, "|"))
	return nil
}

func (r *recorder) Done(count int64, counted bool) error {
	if counted {
		r.add("done %d", count)
	}
	return nil
}

func (r *recorder) ReturnStatus(status int32) error { r.add("status %d", status); return nil }
func (r *recorder) ReturnValue(p tds.Param) error {
	r.add("%s = %s", p.Name, sqltype.Format(p.Value))
	return nil
}

func (r *recorder) Error(e *tds.Error) error {
	r.errors = append(r.errors, e)
	r.add("error %d", e.Number)
	return nil
}

func (r *recorder) Info(e *tds.Error) error {
	if e.Number != 3621 {
		r.add("info %s", e.Message)
	}
	return nil
}

func (r *recorder) Flush() error                          { r.add("flushed"); return nil }
func (r *recorder) TransactionBegan(uint64) error         { r.add("began"); return nil }
func (r *recorder) TransactionCommitted(uint64) error     { r.add("committed"); return nil }
func (r *recorder) TransactionRolledBack(uint64) error    { r.add("rolled back"); return nil }
func (r *recorder) DatabaseChanged(from, to string) error { return nil }
func (r *recorder) ExpectBulk(cols []tds.Column) error    { r.bulk = cols; return nil }

// text is everything without column headings and row counts.
func (r *recorder) text() string {
	var out []string
	for _, l := range r.lines {
		if !strings.HasPrefix(l, "columns ") && !strings.HasPrefix(l, "done ") {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

func newEngine(t testing.TB) *Engine {
	t.Helper()
	return New(Config{Database: "test"})
}

func open(t testing.TB, e *Engine) tds.Session {
	t.Helper()
	s, err := e.Login(context.Background(), tds.Login{User: "sa", Database: "test", ODBC: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// run sends a batch and returns what came back.
func run(t testing.TB, s tds.Session, text string) *recorder {
	t.Helper()
	r := &recorder{}
	if err := s.Batch(context.Background(), text, r); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

// must runs a batch that must not fail.
func must(t testing.TB, s tds.Session, text string) *recorder {
	t.Helper()
	r := run(t, s, text)
	for _, e := range r.errors {
		t.Fatalf("%s:\n%d: %s", text, e.Number, e.Message)
	}
	return r
}

// batch is a text and what must come back of it.
type batch struct{ sql, want string }

// play runs batches on one session of a new engine.
func play(t *testing.T, steps []batch) {
	t.Helper()
	s := open(t, newEngine(t))
	for _, st := range steps {
		r := run(t, s, st.sql)
		if got := r.text(); got != st.want {
			msg := ""
			for _, e := range r.errors {
				msg += "\n" + e.Message
			}
			t.Errorf("%s\n got: %q\nwant: %q%s", st.sql, got, st.want, msg)
		}
	}
}
