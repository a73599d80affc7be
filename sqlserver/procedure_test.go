package sqlserver_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/scripts"
)

// installProcedure runs 010_enqueue.sql and returns the procedure's name.
func (b *outbox) installProcedure() string {
	b.t.Helper()
	script, err := scripts.Enqueue(b.options)
	if err != nil {
		b.t.Fatal(err)
	}
	name := strings.TrimSuffix(b.names.Events(), "]") + "_enqueue]"
	for _, batch := range scripts.Batches(script) {
		if _, err := b.db.ExecContext(testContext(b.t), batch); err != nil {
			b.t.Skipf("this engine does not take the procedure: %v", err)
		}
	}
	b.t.Cleanup(func() {
		if _, err := b.db.ExecContext(testContext(b.t), "DROP PROCEDURE "+name); err != nil {
			b.t.Error(err)
		}
	})
	return name
}

func (b *outbox) call(procedure, events string) error {
	b.t.Helper()
	_, err := b.db.ExecContext(testContext(b.t), "EXEC "+procedure+" @events = @events;", sql.Named("events", events))
	return err
}

func TestProcedureWritesABatch(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	procedure := b.installProcedure()
	var list []map[string]any
	for i := range 60 {
		list = append(list, map[string]any{
			"aggregate_type": "order", "aggregate_id": fmt.Sprint(i), "event_type": "order.created",
			"payload": map[string]any{"n": i, "s": "Größe 🚚"}, "headers": `{"tenant":"north"}`,
		})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.call(procedure, string(text)); err != nil {
		t.Fatal(err)
	}
	if err := b.call(procedure, `[{"aggregate_type":"a","aggregate_id":"b","event_type":"order.created","payload":"text","headers":{"x":1}}]`); err != nil {
		t.Fatal(err)
	}
	if err := b.call(procedure, `[]`); err != nil {
		t.Errorf("of an empty array: %v", err)
	}
	c := claim(t, b.store(), "order.created", 100)
	if len(c.Events) != 61 {
		t.Fatalf("claimed %d events", len(c.Events))
	}
	if e := c.Events[59]; e.ID != 60 || e.AggregateID != "59" || string(e.Payload) != `{"n":59,"s":"Größe 🚚"}` || string(e.Headers) != `{"tenant":"north"}` {
		t.Errorf("event is %+v", e)
	}
	if e := c.Events[60]; e.ID != 101 || string(e.Payload) != "text" || string(e.Headers) != `{"x":1}` {
		t.Errorf("event is %+v", e)
	}
}

func TestProcedureThrows(t *testing.T) {
	for _, payload := range []string{"VARCHAR(2000)", "NVARCHAR(2000)"} {
		t.Run(payload, func(t *testing.T) {
			b := newOutbox(t, scripts.Options{Payload: payload})
			procedure := b.installProcedure()
			good := `{"aggregate_type":"a","aggregate_id":"b","event_type":"c","payload":"p"}`
			for says, bad := range map[string]string{
				"event 1 of the batch: payload is missing":             `{"aggregate_type":"a","aggregate_id":"b","event_type":"c"}`,
				"event 1 of the batch: event_type is missing":          `{"aggregate_type":"a","aggregate_id":"b","payload":"p"}`,
				"event 1 of the batch: event_type is empty":            `{"aggregate_type":"a","aggregate_id":"b","event_type":"","payload":"p"}`,
				"event 1 of the batch: payload is too long":            `{"aggregate_type":"a","aggregate_id":"b","event_type":"c","payload":"` + strings.Repeat("x", 2001) + `"}`,
				"event 1 of the batch: aggregate_id is too long":       `{"aggregate_type":"a","aggregate_id":"` + strings.Repeat("x", 101) + `","event_type":"c","payload":"p"}`,
				"event 1 of the batch: event_type does not fit":        `{"aggregate_type":"a","aggregate_id":"b","event_type":"` + strings.Repeat("x", 101) + `","payload":"p"}`,
				"event 1 of the batch: headers are too long":           `{"aggregate_type":"a","aggregate_id":"b","event_type":"c","payload":"p","headers":{"h":"` + strings.Repeat("x", 2001) + `"}}`,
				"event 1 of the batch: aggregate_type is too long for": `{"aggregate_type":"日本","aggregate_id":"b","event_type":"c","payload":"p"}`,
			} {
				err := b.call(procedure, "["+good+","+bad+"]")
				var server mssql.Error
				if !errors.As(err, &server) || server.Number != 50000 || !strings.Contains(server.Message, says) {
					t.Errorf("got %v, want error 50000 that says %q", err, says)
				}
			}
			if _, err := b.db.ExecContext(testContext(t), "EXEC "+procedure+" @events = NULL;"); err == nil {
				t.Error("NULL was taken for no events")
			}
			if n := b.number("SELECT COUNT(*) FROM {events}"); n != 0 {
				t.Errorf("%d events were written", n)
			}
		})
	}
}

// What OPENJSON would pass over, or take for more events than there are.
func TestProcedureTakesAnArrayOfObjectsOnly(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	procedure := b.installProcedure()
	const good = `{"aggregate_type":"a","aggregate_id":"b","event_type":"c","payload":"p"}`
	for _, bad := range []string{
		"[" + good + ",null]", "[" + good + ",[]]", "[[" + good + "," + good + "]]", "[" + good + ",1]",
		good, `{"5000":` + good + "}", `{"-1":` + good + "}",
	} {
		err := b.call(procedure, bad)
		if err == nil || !strings.Contains(err.Error(), "must be a JSON array of objects") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	err := b.call(procedure, "["+strings.Repeat(good+",", 4000)+good+"]")
	if err == nil || !strings.Contains(err.Error(), "at most 4000 events") {
		t.Errorf("4001 events: %v", err)
	}
	if n := b.number("SELECT COUNT(*) FROM {events}"); n != 0 {
		t.Errorf("%d events were written", n)
	}
}

// The aggregate's columns are judged by their own type and collation, not by
// the database's.
func TestProcedureJudgesAggregatesAsTheirColumns(t *testing.T) {
	for name, c := range map[string]struct {
		options scripts.Options
		takes   bool
	}{
		"code page": {scripts.Options{}, false},
		"nvarchar":  {scripts.Options{Aggregate: "NVARCHAR(100)"}, true},
		"utf-8":     {scripts.Options{TextCollation: "Latin1_General_100_BIN2_UTF8"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			newOutbox(t, scripts.Options{}).needCollation(c.options.TextCollation)
			b := newOutbox(t, c.options)
			procedure := b.installProcedure()
			err := b.call(procedure, `[{"aggregate_type":"日本","aggregate_id":"ā","event_type":"c","payload":"p"}]`)
			if (err == nil) != c.takes {
				t.Fatalf("got %v", err)
			}
			if !c.takes {
				return
			}
			if e := claim(t, b.store(), "c", 1).Events[0]; e.AggregateType != "日本" || e.AggregateID != "ā" {
				t.Errorf("came back as %q, %q", e.AggregateType, e.AggregateID)
			}
		})
	}
}

func TestProcedureRefusesWhatACodePageDoesNotHave(t *testing.T) {
	b := newOutbox(t, scripts.Options{Collation: "Latin1_General_CI_AS"})
	procedure := b.installProcedure()
	for text, taken := range map[string]bool{"Größe": true, "ā": false, "日本": false, "blank at the end ": true} {
		err := b.call(procedure, `[{"aggregate_type":"a","aggregate_id":"b","event_type":"c","payload":"`+text+`"}]`)
		if (err == nil) != taken {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// An application that ignores the error must not be able to commit without the
// event.
func TestProcedureTakesTheTransactionWithIt(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	procedure := b.installProcedure()
	b.exec("CREATE TABLE {business} (id INT)")
	t.Cleanup(func() { b.exec("DROP TABLE {business}") })
	tx := b.begin()
	if _, err := tx.ExecContext(testContext(t), b.sql("INSERT INTO {business} VALUES (1)")); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(testContext(t), "EXEC "+procedure+" @events = N'[{}]';"); err == nil {
		t.Error("an event without anything was taken")
	}
	if err := tx.Commit(); err == nil {
		t.Error("the transaction could be committed")
	}
	if n := b.number("SELECT COUNT(*) FROM {business}"); n != 0 {
		t.Errorf("%d business rows were committed without their event", n)
	}
}

func TestProcedureServesIdentity(t *testing.T) {
	b := identityTable(t)
	procedure := b.installProcedure()
	if err := b.call(procedure, `[{"aggregate_type":"a","aggregate_id":"b","event_type":"c","payload":"1"},{"aggregate_type":"a","aggregate_id":"b","event_type":"c","payload":"2"}]`); err != nil {
		t.Fatal(err)
	}
	c := claim(t, b.store(), "c", 10)
	if !slices.Equal(ids(c), []int64{1000, 1001}) || string(c.Events[1].Payload) != "2" {
		t.Errorf("claimed %+v", c.Events)
	}
}

func TestProcedureTakesIntegerEventTypes(t *testing.T) {
	b := newOutbox(t, scripts.Options{EventType: "INT"})
	procedure := b.installProcedure()
	if err := b.call(procedure, `[{"aggregate_type":"a","aggregate_id":"b","event_type":7,"payload":"p"}]`); err != nil {
		t.Fatal(err)
	}
	for _, eventType := range []string{`"x"`, `"07"`, `3000000000`} {
		if err := b.call(procedure, `[{"aggregate_type":"a","aggregate_id":"b","event_type":`+eventType+`,"payload":"p"}]`); err == nil {
			t.Errorf("%s was taken for an INT", eventType)
		}
	}
	if c := claim(t, b.store(), "7", 10); len(c.Events) != 1 {
		t.Errorf("claimed %d events", len(c.Events))
	}
}
