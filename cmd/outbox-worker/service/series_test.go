package service

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"azsqloutbox/worker"
)

// types are n event types with one pending event each, t0000 being the oldest.
func types(n int) []worker.TypeBacklog {
	list := make([]worker.TypeBacklog, n)
	for i := range list {
		list[i] = worker.TypeBacklog{EventType: fmt.Sprintf("t%04d", i), Pending: 1, OldestAge: time.Duration(n-i) * time.Second}
	}
	return list
}

func TestWhichEventTypesAreShown(t *testing.T) {
	const n = 3 * ownSeries
	oldest := func(list []worker.TypeBacklog) []string {
		var names []string
		for _, b := range list {
			names = append(names, b.EventType)
		}
		return names
	}
	first := oldest(types(n)[:ownSeries])
	for name, c := range map[string]struct {
		routed, unrouted []string
		// counts come one after the other; the last one's choice is checked.
		counts [][]worker.TypeBacklog
		own    []string
		others otherBacklog
	}{
		"few":          {counts: [][]worker.TypeBacklog{types(ownSeries)}, own: first},
		"none":         {counts: [][]worker.TypeBacklog{nil}},
		"one too many": {counts: [][]worker.TypeBacklog{types(ownSeries + 1)}, own: first, others: otherBacklog{Types: 1, Pending: 1, OldestAge: time.Second, routed: 1}},
		"the oldest are shown": {
			counts: [][]worker.TypeBacklog{types(n)}, own: first,
			others: otherBacklog{Types: 200, Pending: 200, OldestAge: 200 * time.Second, routed: 200},
		},
		"whatever a route names is shown besides": {
			routed: []string{"t0250", "t0299"}, counts: [][]worker.TypeBacklog{types(n)}, own: append(slices.Clone(first), "t0250", "t0299"),
			others: otherBacklog{Types: 198, Pending: 198, OldestAge: 200 * time.Second, routed: 198},
		},
		"those without a route are counted apart": {
			unrouted: []string{"t0000", "t0298", "t0299"}, counts: [][]worker.TypeBacklog{types(n)}, own: first,
			others: otherBacklog{Types: 200, Pending: 200, OldestAge: 200 * time.Second, routed: 198, unrouted: 2},
		},
		"a little older does not change places": {
			counts: [][]worker.TypeBacklog{types(n), aged(types(n), "t0100", 300*time.Second)}, own: first,
			others: otherBacklog{Types: 200, Pending: 200, OldestAge: 300 * time.Second, routed: 200},
		},
		"twice as old does": {
			counts: [][]worker.TypeBacklog{types(n), aged(types(n), "t0100", 404*time.Second)}, own: append(slices.Clone(first[:ownSeries-1]), "t0100"),
			others: otherBacklog{Types: 200, Pending: 200, OldestAge: 201 * time.Second, routed: 200},
		},
		"what waits for nothing keeps its place from what has just come": {
			counts: [][]worker.TypeBacklog{types(ownSeries), aged(aged(types(n)[:ownSeries+1], "t0099", 0), "t0100", time.Second/2)}, own: first,
			others: otherBacklog{Types: 1, Pending: 1, OldestAge: time.Second / 2, routed: 1},
		},
		"what waits for nothing loses its place to what waits": {
			counts: [][]worker.TypeBacklog{types(ownSeries), aged(types(n)[:ownSeries+1], "t0099", 0)}, own: append(slices.Clone(first[:ownSeries-1]), "t0100"),
			others: otherBacklog{Types: 1, Pending: 1, routed: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPicker(c.routed)
			var got shownTypes
			for _, count := range c.counts {
				got = p.pick(count, c.unrouted)
			}
			if own := oldest(got.Own); !slices.Equal(own, c.own) {
				t.Errorf("shown are\n%v, want\n%v", own, c.own)
			}
			if got.Others != c.others {
				t.Errorf("the others are %+v, want %+v", got.Others, c.others)
			}
		})
	}
}

// aged is a list in which one type has another age.
func aged(list []worker.TypeBacklog, eventType string, age time.Duration) []worker.TypeBacklog {
	for i := range list {
		if list[i].EventType == eventType {
			list[i].OldestAge = age
		}
	}
	return list
}

// However many event types there are, a scrape and the page stay readable, and
// nothing is left out of their sums.
func TestTenThousandEventTypesAreFewLines(t *testing.T) {
	telemetry, err := newTelemetry(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	routed := []string{"t9998", "t9999"}
	m, err := newMetrics(telemetry, routed)
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(worker.Config{Store: struct{ worker.Store }{}, Publisher: struct{ worker.Publisher }{}, Discover: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.watch(w); err != nil {
		t.Fatal(err)
	}
	list := types(10_000)
	m.backlog.Store(&counted{Backlog: worker.Backlog{Types: list}, Shown: newPicker(routed).pick(list, nil), at: time.Now()})
	for range 2 { // a name stays
		for _, b := range list {
			c := worker.Claim{Receipt: worker.Receipt{EventType: b.EventType}, Events: []worker.Event{{}}}
			m.Claimed(c, time.Millisecond)
			m.Published(c, []worker.Outcome{{Verdict: worker.Sent}}, time.Millisecond)
		}
	}
	serve := func(path string) string {
		answer := httptest.NewRecorder()
		endpoints{worker: w, metrics: m, started: time.Now()}.handler().ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
		return answer.Body.String()
	}
	scrape := serve("/metrics")
	if n := strings.Count(scrape, "\n"); n > 600 {
		t.Errorf("a scrape has %d lines", n)
	}
	for line, want := range map[string]string{
		`outbox_events_claimed_total{event_type="t0000"}`:                   "2",
		`outbox_events_claimed_total{event_type="t9999"}`:                   "2",
		`outbox_events_claimed_total{event_type="_OTHER"}`:                  "19796",
		`outbox_events_published_total{event_type="_OTHER",outcome="sent"}`: "19796",
		`outbox_events_pending{event_type="t9999",routed="true"}`:           "1",
		`outbox_events_pending{event_type="_OTHER",routed="true"}`:          "9898",
		`outbox_events_pending{event_type="_OTHER",routed="false"}`:         "0",
		`outbox_oldest_pending_age_seconds{event_type="t0000"}`:             "10000",
		`outbox_oldest_pending_age_seconds{event_type="_OTHER"}`:            "9900",
		`outbox_event_types_other`:                                          "9898",
	} {
		if !strings.Contains(scrape, "\n"+line+" "+want+"\n") {
			t.Errorf("/metrics has no %s %s", line, want)
		}
	}
	page := serve("/")
	if n := strings.Count(page, "<tr>"); n > ownSeries+5 || !strings.Contains(page, "<tr><td>9898 other event types") {
		t.Errorf("the page has %d rows:\n%.5000s", n, page)
	}
}

func TestCountersKeepTheirNames(t *testing.T) {
	n := newNamed([]string{"routed"})
	labels := make(map[string]string)
	for i := range 2 * ownSeries {
		name := fmt.Sprint(i)
		labels[name] = n.label(name)
	}
	labels["routed"] = n.label("routed")
	again := make(map[string]string)
	for name := range labels {
		again[name] = n.label(name)
	}
	if !maps.Equal(labels, again) {
		t.Errorf("the names have changed from %v to %v", labels, again)
	}
	if labels["0"] != "0" || labels["99"] != "99" || labels["100"] != otherTypes || labels["routed"] != "routed" {
		t.Errorf("the names are %v", labels)
	}
}

func TestLongListsOfNamesAreCut(t *testing.T) {
	list := make([]string, 23)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	for n, want := range map[int]string{1: "0", 2: "0, 1", 23: "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 and 3 more"} {
		if got := names(list[:n]); got != want {
			t.Errorf("%d names are %q, want %q", n, got, want)
		}
	}
}
