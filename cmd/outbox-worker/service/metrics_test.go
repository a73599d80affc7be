package service

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"azsqloutbox/worker"
)

// A claim that was given up is lost, and took no time that says anything of the
// database.
func TestAClaimThatWasGivenUpHasNoDuration(t *testing.T) {
	telemetry, err := newTelemetry(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMetrics(telemetry, nil)
	if err != nil {
		t.Fatal(err)
	}
	served := func() string {
		answer := httptest.NewRecorder()
		m.handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		return answer.Body.String()
	}
	receipts := []worker.Receipt{{EventType: "order-placed"}}
	m.Settled(receipts, 1, 0)
	if page := served(); !strings.Contains(page, "\noutbox_receipts_lost_total 1\n") || strings.Contains(page, "outbox_settle_duration_seconds_count") {
		t.Errorf("after a claim was given up:\n%s", page)
	}
	m.Settled(receipts, 0, 3*time.Millisecond)
	if page := served(); !strings.Contains(page, "\noutbox_settle_duration_seconds_count 1\n") {
		t.Errorf("after one was settled:\n%s", page)
	}
}

// What was lost is not settled too, and what became of reaped events is told apart.
func TestSettledLostAndReapedAreCountedApart(t *testing.T) {
	telemetry, err := newTelemetry(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMetrics(telemetry, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Settled(make([]worker.Receipt, 5), 2, time.Millisecond)
	m.Reaped(worker.Reaped{Receipts: 1, Returned: 3, Parked: 4, Missing: []int64{1}})
	answer := httptest.NewRecorder()
	m.handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		"outbox_receipts_settled_total 3", "outbox_receipts_lost_total 2",
		`outbox_events_reaped_total{became="returned"} 3`, `outbox_events_reaped_total{became="parked"} 4`, `outbox_events_reaped_total{became="missing"} 1`,
	} {
		if !strings.Contains(answer.Body.String(), "\n"+line+"\n") {
			t.Errorf("/metrics has no %s:\n%s", line, answer.Body)
		}
	}
}

// An outage of the collector is one line, whatever fails meanwhile.
func TestExportErrorsAreOneLineAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.WarnLevel)
		handler := &exportErrors{log: zap.New(core)}
		for _, c := range []struct {
			after time.Duration
			lines int
		}{{0, 1}, {time.Second, 1}, {time.Minute, 1}, {4 * time.Minute, 1}, {exportOutage + time.Second, 2}, {time.Minute, 2}} {
			time.Sleep(c.after)
			handler.Handle(errors.New("connection refused"))
			if logged.Len() != c.lines {
				t.Fatalf("%d lines %s later, want %d", logged.Len(), c.after, c.lines)
			}
		}
	})
}
