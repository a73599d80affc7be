package claimbench

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func at(v float64) *float64 { return &v }

func TestJudge(t *testing.T) {
	r := Report{Strategies: Strategies, Results: []Result{
		{Strategy: Insert, Index: Covering, CPU: at(20), Reads: at(4), Log: at(1600)},
		{Strategy: Pipeline, Index: Covering, CPU: at(10), Reads: at(4), Log: at(900)},
		{Strategy: UpdateOutput, Index: Covering, CPU: at(500), Reads: at(40), Log: at(920)},
		{Strategy: UpdateTop, Index: Covering, CPU: at(30), Reads: at(5), Log: at(910)},
		{Strategy: DeleteOutput, Index: Covering, CPU: at(1), Reads: at(1), Log: at(1)},
		{Strategy: Insert, Index: Slim, CPU: at(18), Reads: at(4), Log: at(850)},
		{Strategy: Pipeline, Index: Slim, CPU: at(12), Reads: at(7.25), Log: at(250)},
		{Strategy: UpdateOutput, Index: Slim, CPU: at(510), Reads: at(41), Log: at(260)},
		{Strategy: UpdateTop, Index: Slim, CPU: nil, Reads: nil, Log: at(255)},
		{Strategy: DeleteOutput, Index: Slim, CPU: at(1), Reads: at(1), Log: at(1)},
	}}
	judge(&r)
	want := []string{
		"By CPU pipeline with the covering index is cheapest: 10.0 µs an event, and update-top with the covering index takes 3.0 times as much.",
		"By log pipeline with the slim index is cheapest: 250 bytes an event, and update-top with the slim index is as good as the same (1.02 times).",
		"Inserted and claimed by pipeline, an event costs with the slim index, not the covering one: CPU 30.0 instead of 30.0 µs, reads 11.2 instead of 8.00, log 1100 instead of 2500 bytes.",
	}
	if diff := cmp.Diff(want, r.Verdict); diff != "" {
		t.Error(diff)
	}
	if c := r.Cheapest.CPU; !c.Clear || c.Next != UpdateTop || *c.Times != 3 {
		t.Errorf("%+v", c)
	}
}

func TestJudgeWithNothingKnown(t *testing.T) {
	r := Report{Strategies: []string{DeleteOutput}, Results: []Result{{Strategy: Insert, Index: Covering, CPU: at(1)}, {Strategy: DeleteOutput, Index: Covering, CPU: at(1)}}}
	judge(&r)
	if r.Cheapest.CPU != nil || r.Cheapest.Log != nil || len(r.Verdict) != 2 || !strings.Contains(r.Verdict[0], "unknown") {
		t.Errorf("%+v, %q", r.Cheapest, r.Verdict)
	}
}

// A plan that was compiled again begins at 0; one that was not has a past.
func TestBetween(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key := func(plan string, start int, generation int64) statKey {
		return statKey{plan, start, generation, created}
	}
	before := map[statKey]stat{
		key("p", 0, 1): {"A SELECT", 1, 100, 200, 50},
		key("p", 9, 1): {"A UPDATE", 1, 9000, 9000, 9000},
		key("q", 0, 1): {"B", 7, 1, 1, 1},
	}
	after := map[statKey]stat{
		key("p", 0, 1): {"A SELECT", 5, 500, 1000, 250},
		key("p", 9, 2): {"A UPDATE", 3, 30, 60, 12}, // one execution of it went with the old plan
		key("q", 0, 1): {"B", 7, 1, 1, 1},           // not used in between
	}
	want := []StatementCost{{"A SELECT", 4, 100, 200, 50}, {"A UPDATE", 3, 10, 20, 4}}
	if diff := cmp.Diff(want, between(before, after)); diff != "" {
		t.Error(diff)
	}
	if got := missing([]string{"A SELECT", "A UPDATE"}, want, 4); got != "" {
		t.Errorf("%q is missing", got)
	}
	if got := missing([]string{"A SELECT", "A UPDATE"}, want, 7); got != "A UPDATE" {
		t.Errorf("%q is missing of 7", got)
	}
}

// Statements are told apart as the plan cache shows them: with the declaration of
// parameters in front, or bare.
func TestLabel(t *testing.T) {
	for text, want := range map[string]string{
		"(@batch int,@t varchar(max))SELECT /* outbox:BenchClaimEvents */ TOP (@batch)\n": "N SELECT",
		"(@batch int)" + updateOutputSQL:               "N UPDATE",
		"UPDATE e\nSET    status = 1,\n":               "N UPDATE",
		updateOutputSQL:                                "N UPDATE",
		deleteOutputSQL:                                "N DELETE",
		"DECLARE @now DATETIME2(3) = SYSUTCDATETIME()": "N",
		"SELECTED": "N",
	} {
		if got := label("N", text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0351: "0.035", 1: "1.00", 12.34: "12.3", 123.4: "123", 98765: "98765"} {
		if got := short(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}
