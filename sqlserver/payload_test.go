package sqlserver_test

import (
	"bytes"
	"database/sql"
	"strings"
	"testing"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

// texts cost one to four bytes a character in UTF-8.
var texts = map[string]string{
	"ascii":    `{"a":"b"}`,
	"latin 1":  "Größe: 5 €",
	"greek":    "Ελληνικά",
	"japanese": "日本語",
	"emoji":    "🚚 sent",
	"nul":      "a\x00b",
	"trailing": "two spaces  ",
}

// stored says whether the column holds text as it was written, by the server's
// own account: an engine or a code page may not have all characters.
func (b *outbox) stored(id int64, text string) bool {
	b.t.Helper()
	return b.number(`SELECT COUNT(*) FROM {events}
WHERE id = @id AND CONVERT(VARBINARY(MAX), CONVERT(NVARCHAR(MAX), payload)) = CONVERT(VARBINARY(MAX), CAST(@text AS NVARCHAR(MAX)))`,
		sql.Named("id", id), sql.Named("text", text)) == 1
}

func TestPayloadsComeBackByteForByte(t *testing.T) {
	for _, payload := range []string{"VARCHAR(2000)", "VARCHAR(MAX)", "NVARCHAR(2000)", "NVARCHAR(MAX)"} {
		t.Run(payload, func(t *testing.T) {
			b := newOutbox(t, scripts.Options{Payload: payload})
			s := b.store()
			for name, text := range texts {
				t.Run(name, func(t *testing.T) {
					if _, err := b.db.ExecContext(testContext(t), "SELECT CAST(@text AS NVARCHAR(100))", sql.Named("text", text)); err != nil {
						t.Skipf("this engine does not take the text: %v", err)
					}
					id := b.addEvent(name, text, text)
					if !b.stored(id, text) {
						t.Skipf("this engine does not store %q in %s COLLATE %s", text, payload, b.options.Collation)
					}
					c := claim(t, s, name, 1)
					if len(c.Events) != 1 {
						t.Fatalf("claimed %d events", len(c.Events))
					}
					if e := c.Events[0]; string(e.Payload) != text || string(e.Headers) != text {
						t.Errorf("payload %q, headers %q; want %q", e.Payload, e.Headers, text)
					}
				})
			}
		})
	}
}

func TestLargePayloads(t *testing.T) {
	b := newOutbox(t, scripts.Options{Payload: "VARCHAR(MAX)", SlimClaimIndex: true})
	s := b.store()
	large := strings.Repeat("0123456789abcdef", 40_000) // 640 KB
	b.addEvent("a", large, nil)
	b.addEvent("a", "small", nil)
	c := claim(t, s, "a", 10)
	if len(c.Events) != 2 || string(c.Events[0].Payload) != large || string(c.Events[1].Payload) != "small" {
		t.Error("a payload of 640 KB did not come back whole")
	}
}

// A column that changes under a living worker, as in a migration: the claim may
// fail, and must never cut.
func TestPayloadColumnGrowsUnderAWorker(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	b.addEvent("a", "{}", nil)
	claim(t, s, "a", 1)

	b.exec("DROP INDEX IX_outbox_claim ON {events}")
	if _, err := b.db.ExecContext(testContext(t), b.sql("ALTER TABLE {events} ALTER COLUMN payload VARCHAR(MAX) COLLATE "+b.options.Collation+" NOT NULL")); err != nil {
		t.Skipf("this engine does not alter the column: %v", err)
	}
	b.create()
	large := strings.Repeat("0123456789", 1000)
	b.addEvent("a", large, nil)
	for try := range 3 {
		c, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "a", Batch: 1})
		if err != nil && try < 2 {
			continue
		}
		if err != nil || len(c.Events) != 1 || string(c.Events[0].Payload) != large {
			t.Fatalf("claimed %d events, %v; the payload is not whole", len(c.Events), err)
		}
		return
	}
}

func TestNullPayload(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	if _, err := b.db.ExecContext(testContext(t), b.sql("ALTER TABLE {events} ADD note VARCHAR(10) NULL")); err != nil {
		t.Fatal(err) // a column of the user's own does not disturb
	}
	// The shipped column is NOT NULL; an older table's may be NULL.
	legacy := newOutbox(t, scripts.Options{})
	shipped := "COLLATE /*collation*/ " + legacy.options.Collation
	legacy.recreate("/*payload*/ VARCHAR(2000) "+shipped+" NOT NULL", "VARCHAR(2000) "+shipped+" NULL")
	legacy.exec("INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type) VALUES (1, 'x', 'x', 'a')")
	b.addEvent("a", "{}", nil)

	if c := claim(t, s, "a", 1); len(c.Events) != 1 || string(c.Events[0].Payload) != "{}" {
		t.Errorf("with a column of the user's own: %+v", c.Events)
	}
	c := claim(t, legacy.store(), "a", 1)
	if len(c.Events) != 1 || c.Events[0].Payload != nil || c.Events[0].Withheld {
		t.Errorf("NULL payload: %+v", c.Events)
	}
}

// An event must not reach into the next one's bytes.
func TestEventsDoNotShareRoomToGrow(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.addEvent("a", "first", `{"h":1}`)
	b.addEvent("a", "second", nil)
	c := claim(t, b.store(), "a", 2)
	_ = append(c.Events[0].Payload, "XXXXXXXXXXXXXXX"...)
	_ = append(c.Events[0].Headers, "XXXXXXXXXXXXXXX"...)
	if !bytes.Equal(c.Events[0].Headers, []byte(`{"h":1}`)) || !bytes.Equal(c.Events[1].Payload, []byte("second")) {
		t.Errorf("appending to an event changed another: %q, %q", c.Events[0].Headers, c.Events[1].Payload)
	}
}

func TestIntegerEventTypes(t *testing.T) {
	b := newOutbox(t, scripts.Options{EventType: "INT"})
	s := b.store()
	b.add("7", 2)
	b.add("-12", 1)
	found, _, err := s.DiscoverPending(testContext(t), nil, 10)
	if err != nil || strings.Join(found, " ") != "-12 7" {
		t.Errorf("found %q, %v", found, err)
	}
	got, err := s.Pending(testContext(t), []string{"7", "8"})
	if err != nil || len(got) != 1 || got[0] != "7" {
		t.Errorf("pending %q, %v", got, err)
	}
	c := claim(t, s, "7", 10)
	if len(c.Events) != 2 || c.Events[0].Type != "7" {
		t.Errorf("claimed %+v", c.Events)
	}
	// A route may spell a number in another way; the message says what the row does.
	b.add("5", 1)
	if c := claim(t, s, "005", 1); len(c.Events) != 1 || c.Events[0].Type != "5" || c.Events[0].RouteKey != "005" {
		t.Errorf("claimed %+v", c.Events)
	}
	if pairs, err := s.EqualTypes(testContext(t), []string{"7", "07"}); err != nil || len(pairs) != 1 {
		t.Errorf("7 and 07 were not found equal: %v, %v", pairs, err)
	}
	if _, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "order.created", Batch: 1}); err == nil || !strings.Contains(err.Error(), "whole numbers") {
		t.Errorf("claim of a word: %v", err)
	}
}

func TestUnicodeEventTypes(t *testing.T) {
	b := newOutbox(t, scripts.Options{EventType: "NVARCHAR(100)"})
	s := b.store()
	const eventType = "bestellung.geändert 日本"
	b.add(eventType, 1)
	if b.number("SELECT COUNT(*) FROM {events} WHERE event_type = CAST(@t AS NVARCHAR(100))", sql.Named("t", eventType)) != 1 {
		t.Skip("this engine does not find an NVARCHAR text again")
	}
	found, _, err := s.DiscoverPending(testContext(t), nil, 10)
	if err != nil || len(found) != 1 || found[0] != eventType {
		t.Errorf("found %q, %v", found, err)
	}
	got, err := s.Pending(testContext(t), []string{eventType})
	if err != nil || len(got) != 1 {
		t.Errorf("pending %q, %v", got, err)
	}
	if c := claim(t, s, eventType, 1); len(c.Events) != 1 || c.Events[0].Type != eventType {
		t.Errorf("claimed %+v", c.Events)
	}
}

func TestOtherNames(t *testing.T) {
	for name, o := range map[string]scripts.Options{
		"blanks":   {Table: "my outbox", ClaimIndex: "IX my claim", RetryIndex: "IX my retry"},
		"quotes":   {Table: "it's \"mine\"", ClaimIndex: "IX 'c\"", RetryIndex: "IX 'r\""},
		"brackets": {Table: "a ]b[ c", ClaimIndex: "IX ]c[", RetryIndex: "IX ]r["},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sqlserver.Open(testDSN(t), sqlserver.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			probe := sqlserver.Names{Table: o.Table + " probe"}
			if _, err := db.ExecContext(testContext(t), "CREATE TABLE "+probe.Events()+" (id INT)"); err != nil {
				t.Skipf("this engine has no table of that name: %v", err)
			}
			if _, err := db.ExecContext(testContext(t), "DROP TABLE "+probe.Events()); err != nil {
				t.Fatal(err)
			}
			b := newOutbox(t, o)
			s := b.store()
			id := b.add("a", 2)
			c := claim(t, s, "a", 2)
			if len(c.Events) != 2 {
				t.Fatalf("claimed %d events", len(c.Events))
			}
			if err := s.Settle(testContext(t), worker.Settlement{Receipt: c.Receipt, Returned: id[:1]}); err != nil {
				t.Error(err)
			}
			if _, err := s.RetryDue(testContext(t)); err != nil {
				t.Error(err)
			}
			if _, err := s.Reap(testContext(t)); err != nil {
				t.Error(err)
			}
			if _, err := s.Heartbeat(testContext(t), worker.Heartbeat{}); err != nil {
				t.Error(err)
			}
			if _, err := s.Backlog(testContext(t), []string{"a"}); err != nil {
				t.Error(err)
			}
		})
	}
}
