package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/maintenance"
	"azsqloutbox/worker"
)

// operated is a stack with events of every kind: ids 1 to 3 pending, 4 and 5 in
// a claim, 6 sent, 11 and 12 parked, 13 waiting.
func operated(t *testing.T) (stack *local.Stack, run func(want int, args ...string) string) {
	t.Helper()
	stack = newStack(t, local.Config{})
	exec(t, stack, `
DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, headers, status, created_at, processed_at, retry_at, retry_count, last_error) VALUES
(1, 'Order', '1', 'order.placed', '{}', NULL, 0, DATEADD(MINUTE, -5, @now), NULL, NULL, 0, NULL),
(2, 'Order', '2', 'order.placed', '{}', NULL, 0, @now, NULL, NULL, 0, NULL),
(3, 'Order', '3', 'order.paid', '{}', NULL, 0, @now, NULL, NULL, 0, NULL),
(4, 'Order', '4', 'order.paid', '{}', NULL, 1, @now, @now, NULL, 0, NULL),
(5, 'Order', '5', 'order.paid', '{}', NULL, 1, @now, @now, NULL, 0, NULL),
(6, 'Order', '6', 'order.paid', '{}', NULL, 1, @now, @now, NULL, 0, NULL),
(11, 'Order', '11', 'order.placed', N'{"name":"Ænne"}', '{"a":1}', 2, DATEADD(HOUR, -2, @now), NULL, NULL, 10, 'no such session 100%'),
(12, 'Order', '12', 'order.void', '{}', NULL, 2, @now, NULL, NULL, 1, 'too large'),
(13, 'Order', '13', 'order.void', '{}', NULL, 2, @now, NULL, DATEADD(HOUR, 1, @now), 3, 'no answer');
INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids) VALUES
('00000000-0000-0000-0000-000000000001', 'w1', 'order.paid', DATEADD(SECOND, -100, @now), DATEADD(SECOND, -40, @now), 2, '[4,5]');
INSERT INTO dbo.outbox_event_worker (owner, version, source, lease_ms, lanes, in_flight, breakers, rates, state, started_at, seen_at) VALUES
('w1', 'v1', 'src', 60000, 2, 2, '[{"destination":"orders","state":"open","since":"2026-01-02T03:04:05Z","failures":3,"error":"entity missing","event_types":["order.paid"]}]', '{"order.placed":12.5}', '{"trouble":"claiming has been failing for 2m","destinations":["orders","refunds"]}', DATEADD(HOUR, -1, @now), @now),
('w2', 'v1', 'src', 30000, 2, 0, '[{"destination":"orders","state":"half-open","since":"2026-01-02T03:04:00Z","failures":2,"error":"entity missing","event_types":["order.void"]}]', NULL, '{"paused":true,"destinations":["orders"]}', @now, @now),
('w3', 'v0', 'src', 60000, 2, 0, NULL, '{"order.placed":99}', '{"trouble":"reaping"}', @now, DATEADD(MINUTE, -10, @now));`)
	return stack, func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := outboxctl(t, append(args, "--sql-dsn="+stack.SQL.DSN())...)
		if code != want {
			t.Fatalf("%v: exit %d, want %d: %s%s", args, code, want, stdout, stderr)
		}
		return stdout
	}
}

func exec(t *testing.T, stack *local.Stack, text string) {
	t.Helper()
	if _, err := stack.SQL.Exec(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func TestStatus(t *testing.T) {
	_, run := operated(t)
	s := decode[maintenance.Status](t, run(exitDone, "status", "--json"))
	if s.Table != "dbo.outbox_event" || s.Pending != 3 || s.InFlight != 2 || s.OpenReceipts != 1 || s.Waiting != 1 || s.Parked != 2 || s.EventsPerSecond != 12.5 {
		t.Errorf("the totals are %+v", s)
	}
	if s.OldestPendingSeconds < 299 || s.OldestPendingSeconds > 400 {
		t.Errorf("the oldest has waited %g s, want about 300", s.OldestPendingSeconds)
	}
	types := make(map[string]string)
	for _, e := range s.EventTypes {
		types[e.EventType] = fmt.Sprint(e.Pending, e.InFlight, e.Waiting, e.Parked, e.EventsPerSecond)
	}
	want := map[string]string{"order.placed": "2 0 0 1 12.5", "order.paid": "1 2 0 0 0", "order.void": "0 0 1 1 0"}
	if fmt.Sprint(types) != fmt.Sprint(want) {
		t.Errorf("event types are %v, want %v", types, want)
	}
	if len(s.Receipts) != 1 || s.Receipts[0].Owner != "w1" || s.Receipts[0].Events != 2 || s.Receipts[0].LeaseLeftSeconds > -40 || s.Receipts[0].AgeSeconds < 100 {
		t.Errorf("the claims are %+v", s.Receipts)
	}
	if len(s.Workers) != 3 || !s.Workers[0].Live || s.Workers[2].Live || s.Workers[0].Paused || !s.Workers[1].Paused ||
		fmt.Sprint(s.Workers[0].Destinations, s.Workers[2].Destinations) != "[orders refunds] []" || s.At.Sub(s.Workers[2].SeenAt) < 10*time.Minute {
		t.Errorf("the workers are %+v", s.Workers)
	}
	if len(s.Destinations) != 1 || s.Destinations[0].Failures != 5 || s.Destinations[0].Since.Second() != 0 ||
		fmt.Sprint(s.Destinations[0].EventTypes, s.Destinations[0].Workers) != "[order.paid order.void] [w1 w2]" {
		t.Errorf("the destinations are %+v", s.Destinations)
	}
	text := run(exitDone, "status")
	if s.Workers[0].Trouble != "claiming has been failing for 2m" || strings.Contains(text, "w3 says") {
		t.Errorf("the trouble of w1 is %q, and that of w3 is over:\n%s", s.Workers[0].Trouble, text)
	}
	for _, say := range []string{
		"! w1 says: claiming has been failing for 2m\n", "pending 3, oldest 5m", "; in flight 2 in 1 claim; failed: 1 waiting, 2 parked; 12 events/s",
		"! living workers have different leases", "! started with --paused and waiting: 1 of 2 living workers; outboxctl resume --all --execute lets them begin", "! long past the lease, and reaped by nobody: 1 claim", "! parked, waiting for a person: 2 events",
		"order.placed  2        5m", "over since 4", "12.5      live\n", "0.0       paused, waits for resume --all\n", "w3      v0", "99.0      silent since 2", "orders       open     2026-01-02T03:04:00Z  5",
	} {
		if !strings.Contains(text, say) {
			t.Errorf("the text does not say %q:\n%s", say, text)
		}
	}
}

// A row of the control table that no command writes is named: one pauses everything
// and no resume ends it, the other does nothing.
func TestStatusNamesOddPauses(t *testing.T) {
	stack, run := operated(t)
	exec(t, stack, `DELETE FROM dbo.outbox_event_control;
		INSERT INTO dbo.outbox_event_control (scope, name, paused, changed_by, changed_at) VALUES
		('all', N'shop', 1, N'ops', SYSUTCDATETIME()), ('event-type', N'order.paid', 1, N'ops', SYSUTCDATETIME());`)
	text := run(exitDone, "status")
	for _, say := range []string{
		`! in dbo.outbox_event_control is a row of the scope all with the name "shop"`, `everything (a row named "shop")`,
		`! in dbo.outbox_event_control is a row of the unknown scope "event-type"`, `event-type "order.paid"`,
	} {
		if !strings.Contains(text, say) {
			t.Errorf("the text does not say %q:\n%s", say, text)
		}
	}
}

// Times that no clock of a database has said are told as they are: a time.Duration
// holds 292 years.
func TestStatusOfTimesFarAway(t *testing.T) {
	stack, run := operated(t)
	exec(t, stack, `
UPDATE dbo.outbox_event SET created_at = '0001-01-01' WHERE id = 1;
UPDATE dbo.outbox_event SET created_at = '1500-01-01' WHERE id = 3;
UPDATE dbo.outbox_event_claim SET claimed_at = '0001-01-01', lease_until = '9999-12-31';
UPDATE dbo.outbox_event_worker SET started_at = '1700-01-01', seen_at = '0001-01-01' WHERE owner = 'w1';
UPDATE dbo.outbox_event_worker SET started_at = '9999-12-31', seen_at = DATEADD(MINUTE, 570, SYSUTCDATETIME()) WHERE owner = 'w2';`)
	text := strings.Join(strings.Fields(run(exitDone, "status")), " ")
	for _, say := range []string{
		"pending 3, oldest over 200 years;", "order.placed 2 over 200 years", "order.paid 1 over 200 years",
		"order.paid 2 over 200 years over 200 years", "w1 v1 over 200 years over 200 years ago", "w2 v1 over 200 years ahead 9h", "0.0 not live, seen ahead of the database's clock",
	} {
		if !strings.Contains(text, say) {
			t.Errorf("the text does not say %q:\n%s", say, text)
		}
	}
	if text := run(exitDone, "pause", "--all"); !strings.Contains(text, "; 0 live workers would see it") {
		t.Errorf("nobody lives, and a pause says\n%s", text)
	}
}

// A destination is as bad as the worker that is worst off says, whatever its name.
func TestStateOfADestination(t *testing.T) {
	stack, run := operated(t)
	exec(t, stack, `UPDATE dbo.outbox_event_worker SET owner = 'w0' WHERE owner = 'w2';`)
	if d := decode[maintenance.Status](t, run(exitDone, "status", "--json")).Destinations; len(d) != 1 || d[0].State != worker.BreakerOpen {
		t.Errorf("one worker's breaker is open, another's half-open: %+v", d)
	}
}

// An empty outbox has a status too, with empty lists and no null.
func TestStatusOfAnEmptyOutbox(t *testing.T) {
	stack := newStack(t, local.Config{})
	code, stdout, stderr := outboxctl(t, "status", "--json", "--sql-dsn="+stack.SQL.DSN())
	if code != exitDone || strings.Contains(stdout, "null") || strings.Contains(stdout, "0001-01-01") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

func TestPauseAndResume(t *testing.T) {
	stack, run := operated(t)
	paused := func() string {
		t.Helper()
		var all []string
		for _, p := range decode[maintenance.Status](t, run(exitDone, "status", "--json")).Pauses {
			all = append(all, fmt.Sprintf("%s %s by %s: %s", p.Scope, p.Name, p.By, p.Reason))
		}
		return strings.Join(all, "; ")
	}
	t.Setenv("OUTBOX_ENTITY", "not-meant") // the worker's own setting must not choose here
	if text := run(exitDone, "pause", "--all"); !strings.Contains(text, "everything is not paused and would be paused; 2 live workers") || paused() != "" {
		t.Errorf("the plan says %q, and paused is %q", text, paused())
	}
	run(exitDone, "pause", "--all", "--by=ops", "--reason=the consumer moves", "--execute")
	run(exitDone, "pause", "--event-type=größe", "--by=ops", "--execute")
	run(exitDone, "pause", "--entity=orders", "--by=ops", "--execute")
	if got, want := paused(), "all  by ops: the consumer moves; entity orders by ops: ; event_type größe by ops: "; got != want {
		t.Errorf("paused is %q, want %q", got, want)
	}
	r := decode[maintenance.PauseResult](t, run(exitDone, "resume", "--all", "--by=ops2", "--execute", "--json"))
	if !r.Executed || r.Paused || !r.WasPaused || r.ChangedAt == nil || r.Workers != 2 || len(r.StillPaused) != 2 {
		t.Errorf("the resume says %+v", r)
	}
	run(exitDone, "resume", "--event-type=größe", "--execute")
	if got, want := paused(), "entity orders by ops: "; got != want {
		t.Errorf("paused is %q, want %q", got, want)
	}
	for _, args := range [][]string{
		{"pause"}, {"pause", "--all", "--entity=x"}, {"pause", "--all", "--reason=" + strings.Repeat("x", 401)}, {"resume", "--event-type="},
	} {
		run(exitUsage, args...)
	}
	exec(t, stack, "DROP TABLE dbo.outbox_event_control")
	run(exitFailed, "pause", "--all", "--execute")
}

// A pause that nobody obeys, and a resume that leaves others in force, say so.
func TestPauseSaysWhatMayBeWrong(t *testing.T) {
	stack, run := operated(t)
	exec(t, stack, `UPDATE dbo.outbox_event_worker SET seen_at = DATEADD(SECOND, -45, seen_at) WHERE owner = 'w2';`)
	for _, c := range []struct {
		args string
		say  []string // nil: nothing to warn of
	}{
		{"pause --event-type=order.placed", nil}, // pending
		{"pause --event-type=order.void", nil},   // failed
		{"pause --entity=ORDERS", nil},           // a worker's route leads to it
		{"pause --entity=refunds", nil},
		{"pause --all", nil},
		{"pause --event-type=oder.placed", []string{`! no event that waits, is claimed, has failed or just went out is of the type "oder.placed"`, `there are ["order.paid" "order.placed" "order.void"]`}},
		{"pause --event-type=Order.Placed", []string{`did you mean "order.placed"?`}},
		{"pause --entity=payments", []string{`! no living worker has a route to "payments"; there are routes to ["orders" "refunds"]`}},
		{"pause --entity=payments", []string{`! no living worker has a route to "payments"`}}, // paused before, and still wrong
		{"resume --entity=orders", []string{`entity "orders" was not paused.`, `did you mean entity "ORDERS"?`, `still paused: event_type "order.void", since 2`}},
		{"resume --entity=ORDERS", []string{`the pause of entity "ORDERS" is over; 1 live worker`, "still paused: everything, since 2"}},
		{"resume --all", []string{"the pause of everything is over", `still paused: event_type "oder.placed", since 2`, `still paused: entity "payments"`}},
		{"resume --all", []string{"everything was not paused; workers that were started with --paused, if any, go on"}},
	} {
		text := run(exitDone, append(strings.Fields(c.args), "--by=ops", "--execute")...)
		for _, say := range c.say {
			if !strings.Contains(text, say) {
				t.Errorf("%s does not say %q:\n%s", c.args, say, text)
			}
		}
		if strings.Contains(text, "by ops:") { // none of these pauses has a reason
			t.Errorf("%s says\n%s", c.args, text)
		}
		if c.say == nil && (strings.Contains(text, "!") || !strings.Contains(text, "is paused now; 1 live worker")) {
			t.Errorf("%s says\n%s", c.args, text)
		}
	}
}

// Where nobody can say what routes there are, a pause of an entity says so.
func TestPauseOfAnEntityThatNobodyCanKnow(t *testing.T) {
	stack, run := operated(t)
	for _, c := range []struct{ change, say string }{
		{"UPDATE dbo.outbox_event_worker SET state = NULL WHERE owner = 'w2'", `because worker "w2" of version "v1" does not say where its routes lead`},
		{"UPDATE dbo.outbox_event_worker SET seen_at = DATEADD(HOUR, -1, seen_at)", `no worker lives, so whether a route leads to "payments" cannot be seen`},
	} {
		exec(t, stack, c.change)
		if text := run(exitDone, "pause", "--entity=payments"); !strings.Contains(text, "! ") || !strings.Contains(text, c.say) {
			t.Errorf("it does not say %q:\n%s", c.say, text)
		}
	}
}

func TestFailedListAndShow(t *testing.T) {
	_, run := operated(t)
	ids := func(args ...string) string {
		t.Helper()
		var ids []int64
		for _, e := range decode[failedList](t, run(exitDone, append([]string{"failed", "list", "--json"}, args...)...)).Events {
			ids = append(ids, e.ID)
		}
		return fmt.Sprint(ids)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"[11 12 13]", nil},
		{"[11 12]", []string{"--parked"}},
		{"[13]", []string{"--waiting"}},
		{"[11]", []string{"--older-than=1h"}},
		{"[12 13]", []string{"--event-type=order.void"}},
		{"[11]", []string{"--error=100%"}},
		{"[]", []string{"--error=no%session"}},
		{"[12]", []string{"--id=12,1", "--id=99"}},
		{"[11]", []string{"--limit=1"}},
	} {
		if got := ids(c.args...); got != c.want {
			t.Errorf("%v lists %s, want %s", c.args, got, c.want)
		}
	}
	if text := run(exitDone, "failed", "list", "--limit=2"); !strings.Contains(text, "11  order.placed  Order/11") || !strings.Contains(text, "there may be more") {
		t.Errorf("the text is\n%s", text)
	}
	d := decode[map[string]any](t, run(exitDone, "failed", "show", "11", "--json"))
	if d["id"] != "11" || d["payload"] != `{"name":"Ænne"}` || d["headers"] != `{"a":1}` || d["attempts"] != 10.0 || d["retry_at"] != nil {
		t.Errorf("the event is shown as %v", d)
	}
	run(exitFailed, "failed", "show", "1")
	run(exitUsage, "failed", "list", "--parked", "--waiting")
	run(exitUsage, "failed", "list", "--limit=0")
}

func TestFailedRetryAndDiscard(t *testing.T) {
	stack, run := operated(t)
	rows := func() string {
		t.Helper()
		r, err := stack.SQL.Exec(t.Context(), `SELECT CAST(id AS VARCHAR(10)) + ':' + CAST(status AS VARCHAR(10)) + ':' + CAST(retry_count AS VARCHAR(10)) + ':' + ISNULL(last_error, '') AS v
FROM dbo.outbox_event WHERE id > 10 ORDER BY id`)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, row := range r[0].Rows {
			out = append(out, fmt.Sprint(row[0]))
		}
		return strings.Join(out, " ")
	}
	const untouched = "11:2:10:no such session 100% 12:2:1:too large 13:2:3:no answer"
	if text := run(exitDone, "failed", "retry", "--all"); !strings.Contains(text, "The filter means 3 failed events. Nothing was changed: add --execute to retry.") || rows() != untouched {
		t.Errorf("the plan says %q and the rows are %s", text, rows())
	}
	for _, args := range [][]string{
		{"failed", "retry"},
		{"failed", "retry", "--all", "--parked"},
		{"failed", "discard", "--all"},
		{"failed", "discard", "--all", "--reason= "},
		{"failed", "retry", "--all", "--per-second=0"},
		{"failed", "retry", "--all", "--per-second=NaN"},
		{"failed", "retry", "--parked", "--event-type="},
		{"failed", "list", "--error="},
		{"failed", "retry", "--all", "--limit=-1"},
	} {
		run(exitUsage, args...)
	}
	run(exitUsage, "failed", "discard", "--id=12", "--by=ops", "--reason="+strings.Repeat("x", 373))
	const discarded = "discarded by ops: the gr??e was wrong"
	if text := run(exitDone, "failed", "discard", "--id=12", "--by=ops", "--reason=the größe was wrong"); text != "last_error: "+discarded+"; was: <the error before>\nThe filter means 1 failed event. Nothing was changed: add --execute to discard.\n" {
		t.Errorf("the plan of a discard says\n%s", text)
	}
	r := decode[maintenance.SettledFailed](t, run(exitDone, "failed", "discard", "--id=12", "--id=1", "--by=ops", "--reason=the größe was wrong", "--execute", "--json"))
	if !r.Executed || r.Settled != 1 || r.Matching != 1 || r.Action != "discard" || r.Reason != discarded {
		t.Errorf("the discard says %+v", r)
	}
	if got, want := rows(), "11:2:10:no such session 100% 12:1:1:discarded by ops: the gr??e was wrong; was: too large 13:2:3:no answer"; got != want {
		t.Errorf("the rows are\n%s, want\n%s", got, want)
	}
	if text := run(exitDone, "failed", "retry", "--all", "--execute"); !strings.Contains(text, "2 of 2 failed events PENDING again") {
		t.Errorf("the retry says %q", text)
	}
	if got, want := rows(), "11:0:0:no such session 100% 12:1:1:discarded by ops: the gr??e was wrong; was: too large 13:0:0:no answer"; got != want {
		t.Errorf("the rows are\n%s, want\n%s", got, want)
	}
}

// More than a batch, parked and waiting, by a filter that passes some by; the
// limit ends it.
func TestFailedRetryGoesOnInBatches(t *testing.T) {
	stack, run := operated(t)
	exec(t, stack, `
INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, retry_at)
SELECT 1000 + g.value, 'x', 'x', CASE WHEN g.value % 3 = 0 THEN 'other' ELSE 'mine' END, '{}', 2,
       CASE WHEN g.value % 2 = 0 THEN DATEADD(MINUTE, g.value % 5, '2099-01-01') END
FROM GENERATE_SERIES(1, 1500) AS g;`)
	retry := func(args ...string) maintenance.SettledFailed {
		t.Helper()
		return decode[maintenance.SettledFailed](t, run(exitDone, append([]string{"failed", "retry", "--event-type=mine", "--per-second=1000000", "--execute", "--json"}, args...)...))
	}
	if r := retry("--limit=450"); r.Settled != 450 || r.Stopped != "limit" || r.Matching != 1000 {
		t.Errorf("with a limit: %+v", r)
	}
	if r := retry(); r.Settled != 550 || r.Stopped != "" {
		t.Errorf("the rest: %+v", r)
	}
	s := decode[maintenance.Status](t, run(exitDone, "status", "--json"))
	if s.Parked+s.Waiting != 500+3 || s.Pending != 1000+3 {
		t.Errorf("%d are failed and %d pending afterwards", s.Parked+s.Waiting, s.Pending)
	}
}
