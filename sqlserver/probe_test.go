package sqlserver_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
	"azsqloutbox/worker"
)

func TestPending(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	b.add("b", 2)
	b.add("done", 1)
	claim(t, s, "done", 1)
	got, err := s.Pending(testContext(t), []string{"a", "b", "done", `quote " and ' in it`})
	if err != nil || !slices.Equal(got, []string{"b"}) {
		t.Errorf("pending %q, %v; want [b]", got, err)
	}
	if got, err := s.Pending(testContext(t), nil); err != nil || len(got) != 0 {
		t.Errorf("of no types: %q, %v", got, err)
	}
}

func TestDiscoverPending(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	if got, _, err := s.DiscoverPending(testContext(t), nil, 10); err != nil || len(got) != 0 {
		t.Errorf("of an empty table: %q, %v", got, err)
	}
	for _, eventType := range []string{"b", "a", "", "c"} {
		b.add(eventType, 3)
	}
	b.add("done", 1)
	claim(t, s, "done", 1)
	got, next, err := s.DiscoverPending(testContext(t), nil, 10)
	if next != nil || err != nil || !slices.Equal(got, []string{"", "a", "b", "c"}) {
		t.Errorf("found %q, %v", got, err)
	}
	// In parts it finds the same; the first one ends with the empty type.
	got = nil
	for parts := 1; ; parts++ {
		part, after, err := s.DiscoverPending(testContext(t), next, 1)
		if err != nil || len(part) != 1 {
			t.Fatalf("part %d: %q, %v", parts, part, err)
		}
		got = append(got, part...)
		if next = after; next == nil {
			break
		}
	}
	if !slices.Equal(got, []string{"", "a", "b", "c"}) {
		t.Errorf("found %q one by one", got)
	}
}

func TestBacklog(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	b.add("a", 3)
	b.exec("UPDATE {events} SET created_at = DATEADD(SECOND, -90, SYSUTCDATETIME()) WHERE id = 1")
	got, err := s.Backlog(testContext(t), []string{"a", "none"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Types) != 2 || got.Types[0].EventType != "a" || got.Types[0].Pending != 3 || got.Types[1].Pending != 0 {
		t.Errorf("backlog is %+v", got)
	}
	if age := got.Types[0].OldestAge; age < 90*time.Second || age > 10*time.Minute {
		t.Errorf("the oldest is %s old, want 90s and a little", age)
	}
	if got.Types[1].OldestAge != 0 {
		t.Errorf("the oldest of none is %s old", got.Types[1].OldestAge)
	}
}

// A writer that leaves created_at at its language's zero is older than a
// time.Duration can say, and not younger than all others.
func TestBacklogOfYearOne(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	b.add("a", 4)
	for id, created := range []string{"0001-01-01", "1500-01-01", "1735-01-01", "9999-12-31"} {
		b.exec(fmt.Sprintf("UPDATE {events} SET created_at = '%s' WHERE id = %d", created, id+1))
		got, err := s.Backlog(testContext(t), []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		if age := got.Types[0].OldestAge; (created < "2000" && age < 290*365*24*time.Hour) || (created > "2000" && age != 0) {
			t.Errorf("what was created %s is %s old", created, age)
		}
		b.exec(fmt.Sprintf("DELETE FROM {events} WHERE id = %d", id+1))
	}
}

func TestBacklogTotalComesFromTheCatalog(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needCatalog()
	s := b.store()
	b.add("a", 5)
	claim(t, s, "a", 2)
	got, err := s.Backlog(testContext(t), nil)
	if err != nil || got.Total != 3 {
		t.Errorf("total %d, %v; want 3", got.Total, err)
	}
}

func TestBacklogStopsCounting(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	b.exec(`INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload)
SELECT CAST(j.[key] AS BIGINT), 'x', 'x', 'a', '{}'
FROM OPENJSON(N'[' + REPLICATE(CAST(N'1,' AS NVARCHAR(MAX)), 10050) + N'1]') AS j`)
	got, err := s.Backlog(testContext(t), []string{"a"})
	if err != nil || got.Types[0].Pending != worker.BacklogCountCap || !got.Types[0].Capped {
		t.Errorf("counted %+v, %v; want %d", got.Types, err, worker.BacklogCountCap)
	}
}

func TestHeartbeat(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store(func(c *sqlserver.Config) { c.Destinations = []string{"orders", "süd"} })
	b.exec(`INSERT INTO {workers} (owner, version, source, lease_ms, lanes, in_flight, started_at, seen_at)
VALUES ('long gone', '1', 's', 1, 1, 1, '2020-01-01', DATEADD(DAY, -2, SYSUTCDATETIME())), ('ahead', '1', 's', 1, 1, 1, '2020-01-01', DATEADD(DAY, 2, SYSUTCDATETIME())), ('not long gone', '1', 's', 1, 1, 1, '2020-01-01', DATEADD(HOUR, -2, SYSUTCDATETIME()))`)
	for i, h := range []worker.Heartbeat{
		{Lanes: 2, InFlight: 5, Breakers: []worker.Breaker{{Destination: "süd", State: worker.BreakerOpen}}, Rates: map[string]float64{"a": 12.5}},
		{Lanes: 2, InFlight: 6, Paused: true, Trouble: errors.Join(errors.New("claiming \"größe\" fails"), errors.New(strings.Repeat("x", 1000)))},
	} {
		if _, err := s.Heartbeat(testContext(t), h); err != nil {
			t.Fatal(err)
		}
		var lanes, inFlight int
		var breakers, rates sql.NullString
		var state string
		var started, seen time.Time
		err := b.db.QueryRowContext(testContext(t), b.sql("SELECT lanes, in_flight, breakers, rates, state, started_at, seen_at FROM {workers} WHERE owner = 'test-worker'")).
			Scan(&lanes, &inFlight, &breakers, &rates, &state, &started, &seen)
		if err != nil {
			t.Fatal(err)
		}
		if lanes != 2 || inFlight != 5+i || breakers.Valid != (i == 0) || (rates.String == `{"a":12.5}`) != (i == 0) || seen.Before(started) {
			t.Errorf("heartbeat %d wrote lanes %d, in flight %d, breakers %v, rates %v, started %s, seen %s", i, lanes, inFlight, breakers, rates, started, seen)
		}
		if want := `{"destination":"s\u00fcd","state":"open"`; i == 0 && !strings.Contains(breakers.String, want) {
			t.Errorf("breakers are %s, want %s in it", breakers.String, want)
		}
		if want := []string{`","destinations":["orders","s\u00fcd"]}`, `","paused":true,"trouble":"claiming \"gr??e\" fails; ` + strings.Repeat("x", 476) + `","destinations":["orders","s\u00fcd"]}`}[i]; !strings.HasPrefix(state, `{"start":"`) || !strings.HasSuffix(state, want) {
			t.Errorf("state is %s, want an end of %s", state, want)
		}
	}
	if n := b.number("SELECT COUNT(*) FROM {workers}"); n != 2 {
		t.Errorf("%d workers are left, want this one and the one that was there two hours ago", n)
	}
	for range 2 { // and none that is there is no error
		if err := s.Leave(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if n := b.number("SELECT COUNT(*) FROM {workers} WHERE owner = 'not long gone'"); n != 1 || b.number("SELECT COUNT(*) FROM {workers}") != 1 {
			t.Error("Leave deletes another row than the worker's own")
		}
	}
}

// Two processes of one owner say so, once each; one that is started again after a
// kill, or that replaces one which leaves, does not.
func TestOneOwnerForTwoProcesses(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	process := func() (s *sqlserver.Store, warnings func() int) {
		core, logs := observer.New(zap.WarnLevel)
		s = b.store(func(c *sqlserver.Config) { c.Logger = zap.New(core) })
		return s, func() int { return logs.FilterMessageSnippet("--owner").Len() }
	}
	beat := func(s *sqlserver.Store) {
		t.Helper()
		if _, err := s.Heartbeat(testContext(t), worker.Heartbeat{}); err != nil {
			t.Fatal(err)
		}
	}
	killed, _ := process()
	beat(killed)
	one, oneWarns := process()
	for range 3 {
		beat(one)
	}
	if n := oneWarns(); n != 0 {
		t.Fatalf("alone, after one that was killed: %d warnings", n)
	}
	if err := one.Leave(testContext(t)); err != nil {
		t.Fatal(err)
	}
	beat(one)
	if n := oneWarns(); n != 0 {
		t.Fatalf("after another left: %d warnings", n)
	}
	two, twoWarns := process()
	for range 3 {
		beat(two)
		beat(one)
	}
	if oneWarns() != 1 || twoWarns() != 1 {
		t.Errorf("two processes at a time: %d and %d warnings, want one each", oneWarns(), twoWarns())
	}

	later, laterWarns := process()
	beat(later)
	b.exec(`UPDATE {workers} SET state = '{"paused":true}'`) // of a version without it
	beat(later)
	if n := laterWarns(); n != 1 {
		t.Errorf("beside one of an earlier version: %d warnings, want 1", n)
	}
}

// A worker does not start on a heartbeat table that lacks what it writes, and says
// what to do.
func TestHeartbeatTableOfAnEarlierVersion(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.exec("ALTER TABLE {workers} DROP COLUMN state")
	err := b.store().Check(testContext(t))
	var e *sqlserver.Error
	if !errors.Is(err, worker.ErrPermanent) || !errors.As(err, &e) || e.Number != 207 || !strings.Contains(err.Error(), "schema apply") {
		t.Errorf("got %v", err)
	}
}

// Another worker's row may be locked: by its own heartbeat, or by its rehearsal,
// in which two that start together would wait for each other.
func TestHeartbeatsDoNotWaitForEachOther(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.needSkipping()
	other := b.begin()
	if _, err := other.ExecContext(testContext(t), b.sql(`INSERT INTO {workers} (owner, version, source, lease_ms, lanes, in_flight, started_at, seen_at)
VALUES ('other', '1', 's', 1, 1, 1, '2020-01-01', '2020-01-01')`)); err != nil {
		t.Fatal(err)
	}
	s := b.store(func(c *sqlserver.Config) { c.LockTimeout = time.Millisecond })
	if err := s.Check(testContext(t)); err != nil {
		t.Error(err)
	}
	if _, err := s.Heartbeat(testContext(t), worker.Heartbeat{}); err != nil {
		t.Error(err)
	}
}

// A stop that finds a heartbeat under way lets it come to its end, so that Leave
// is the last to write.
func TestAHeartbeatIsNotBrokenOff(t *testing.T) {
	b, server := onEmulator(t)
	s := b.store()
	fault := server.Inject(emulator.Fault{Statement: "Heartbeat", Delay: 100 * time.Millisecond})
	ctx, stop := context.WithCancel(testContext(t))
	defer stop()
	go func() {
		for fault.Fired() == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	if _, err := s.Heartbeat(ctx, worker.Heartbeat{}); err != nil {
		t.Errorf("broken off: %v", err)
	}
	if err := s.Leave(testContext(t)); err != nil {
		t.Error(err)
	}
	if n := b.number("SELECT COUNT(*) FROM {workers}"); n != 0 {
		t.Errorf("%d heartbeats stay", n)
	}
	if _, err := s.Heartbeat(ctx, worker.Heartbeat{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the stop: %v, want nothing sent", err)
	}
}

// What people tell the workers comes back with the heartbeat, and whether they
// said it after this process began: a container that is started again has the
// name of the one before.
func TestHeartbeatBringsControls(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	beat := func(s *sqlserver.Store) map[string]worker.Control {
		t.Helper()
		told, err := s.Heartbeat(testContext(t), worker.Heartbeat{})
		if err != nil {
			t.Fatal(err)
		}
		byName := make(map[string]worker.Control)
		for _, c := range told {
			byName[c.Name] = c
		}
		return byName
	}
	s := b.store()
	if got := beat(s); len(got) != 0 {
		t.Fatalf("nobody said %v", got)
	}
	b.exec(`INSERT INTO {controls} (scope, name, paused, changed_by, reason, changed_at) VALUES
('all', N'', 0, N'ops', NULL, DATEADD(SECOND, 10, SYSUTCDATETIME())),
('event_type', N'größe', 1, N'ops', N'wait for Ænne', DATEADD(HOUR, -1, SYSUTCDATETIME()))`)
	for range 2 {
		got := beat(s)
		all, one := got[""], got["größe"]
		if all.Scope != worker.ScopeAll || all.Paused || !all.SinceStart || all.By != "ops" {
			t.Errorf("the resume came as %+v", all)
		}
		if one.Scope != worker.ScopeEventType || !one.Paused || one.SinceStart || one.Reason != "wait for Ænne" || time.Since(one.ChangedAt) < 50*time.Minute {
			t.Errorf("the pause came as %+v", one)
		}
	}
	b.exec(`UPDATE {controls} SET changed_at = DATEADD(SECOND, -5, SYSUTCDATETIME()) WHERE scope = 'all'`)
	b.exec(`UPDATE {workers} SET started_at = DATEADD(SECOND, -10, SYSUTCDATETIME())`)
	if got := beat(s); !got[""].SinceStart {
		t.Errorf("a resume from after the start came as %+v", got[""])
	}
	if got := beat(b.store()); got[""].SinceStart {
		t.Errorf("to a process of the same name that has just started, the resume came as %+v", got[""])
	}
}

func TestOpenReceipts(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	b.add("a", 3)
	for want := range 3 {
		if n, err := s.OpenReceipts(testContext(t)); n != want || err != nil {
			t.Errorf("%d claims are open, %v; want %d", n, err, want)
		}
		claim(t, s, "a", 1)
	}
}

func TestEqualTypes(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	s := b.store()
	if pairs, err := s.EqualTypes(testContext(t), []string{"order.created", "order.paid"}); err != nil || len(pairs) != 0 {
		t.Errorf("two types: %v, %v", pairs, err)
	}
	want := [][2]string{{"order.created", "order.created"}}
	if pairs, err := s.EqualTypes(testContext(t), []string{"order.created", "x", "order.created"}); err != nil || !slices.Equal(pairs, want) {
		t.Errorf("one type twice: %v, %v", pairs, err)
	}
}

// Each is paired with the first of its kind; blanks at the end do not count. Ten
// thousand take one sort, and not a comparison of each with each.
func TestEqualTypesOfManyRoutes(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.recreate("event_type     /*event_type*/ VARCHAR(100)", "event_type VARCHAR(100) COLLATE Latin1_General_CI_AS")
	types := []string{"order", "Order", "ordér", "ORDER  "}
	for i := range 10_000 {
		types = append(types, fmt.Sprintf("t%d", i))
	}
	types = append(types, "T7")
	want := [][2]string{{"order", "Order"}, {"order", "ORDER  "}, {"t7", "T7"}}
	if pairs, err := b.store().EqualTypes(testContext(t), types); err != nil || !slices.Equal(pairs, want) {
		t.Errorf("equal are %q, %v", pairs, err)
	}
}

// The key that was claimed chooses the route; the message says what the row says.
func TestClaimedEventsKeepTheirOwnSpelling(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.recreate("event_type     /*event_type*/ VARCHAR(100)", "event_type VARCHAR(100) COLLATE Latin1_General_CI_AS")
	s := b.store()
	b.add("order", 1)
	b.add("ORDER", 1)
	var got []string
	for _, e := range claim(t, s, "Order", 10).Events {
		got = append(got, e.RouteKey+"/"+e.Type)
	}
	if want := []string{"Order/order", "Order/ORDER"}; !slices.Equal(got, want) {
		t.Errorf("claimed %q, want %q", got, want)
	}
}

// The column's own collation decides, not the database's.
func TestEqualTypesComparesAsTheColumnDoes(t *testing.T) {
	for collation, equal := range map[string]bool{"Latin1_General_CI_AS": true, "Latin1_General_100_BIN2": false} {
		t.Run(collation, func(t *testing.T) {
			b := newOutbox(t, scripts.Options{})
			b.recreate("event_type     /*event_type*/ VARCHAR(100)", "event_type VARCHAR(100) COLLATE "+collation)
			pairs, err := b.store().EqualTypes(testContext(t), []string{"order", "ORDER"})
			if got := len(pairs) == 1; err != nil || got != equal {
				t.Errorf("order and ORDER: %v, %v", pairs, err)
			}
		})
	}
}

// A table that is older than this project may have a collation of its own.
func TestEventTypeOfAnotherCollation(t *testing.T) {
	b := newOutbox(t, scripts.Options{})
	b.recreate("event_type     /*event_type*/ VARCHAR(100)", "event_type VARCHAR(100) COLLATE Latin1_General_100_BIN2")
	s := b.store()
	b.add("order", 1)
	b.add("ORDER", 1)
	types := []string{"ORDER", "Order", "order"}
	if got, err := s.Pending(testContext(t), types); err != nil || !slices.Equal(got, []string{"ORDER", "order"}) {
		t.Errorf("pending %q, %v", got, err)
	}
	if got, _, err := s.DiscoverPending(testContext(t), nil, 5); err != nil || !slices.Equal(got, []string{"ORDER", "order"}) {
		t.Errorf("found %q, %v", got, err)
	}
	got, err := s.Backlog(testContext(t), types)
	if err != nil || got.Types[0].Pending != 1 || got.Types[1].Pending != 0 || got.Types[2].Pending != 1 {
		t.Errorf("backlog %+v, %v", got, err)
	}
	if c := claim(t, s, "order", 5); !slices.Equal(ids(c), []int64{1}) {
		t.Errorf("claimed %v", ids(c))
	}
}
