package main

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"azsqloutbox/cmd/outbox-dev/local"
	busemulator "azsqloutbox/servicebus/emulator"
)

// The short form of the proof: real processes, half a minute of faults.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("injects faults for half a minute")
	}
	dev, _ := buildPrograms(t)
	cmd := exec.CommandContext(t.Context(), dev, "chaos", "--minutes", "0.4", "--seed", "7", "--rate", "200", "--json")
	cmd.Env = append(os.Environ(), "OUTBOX_TABLE=of_another", "OUTBOX_PAUSED=true", "OUTBOX_ENTITY=elsewhere") // of whoever runs it
	stderr := &lockedBuffer{}
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr)
	}
	var r chaosResult
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if r.Events < 1000 || r.Received != r.Events || r.Lost+r.Altered+r.LeftBehind+r.UnexplainedDuplicates+r.BadExits > 0 {
		t.Errorf("the proof says %+v", r)
	}
	// Half a minute with fifteen faults and more leaves few events that none of them
	// touches, and a machine that stalls explains what is near too: with many stalls
	// nothing is left. But a proof that explains everything would be none.
	if r.Quiet == 0 && r.Faults["machine stalled"] < 5 {
		t.Errorf("a duplicate would have been explained of every event: %+v", r)
	}
	if r.RolledBack == 0 || r.Poison == 0 || len(r.Faults) < 15 {
		t.Errorf("too little happened: %d events rolled back, %d poison, faults %v", r.RolledBack, r.Poison, r.Faults)
	}
}

// Whoever kills chaos leaves no workers behind that look for its engines.
func TestAWorkerOfChaosEndsWithItsInput(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	dev, _ := buildPrograms(t)
	ctx, cancel := context.WithTimeout(t.Context(), processPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, dev, "worker", "--with-input", "--listen", "off", "--entity", "q")
	cmd.Env = append(os.Environ(), "OUTBOX_SQL_DSN=sqlserver://outbox:x@127.0.0.1:1?database=outbox",
		"OUTBOX_SERVICEBUS_CONNECTION_STRING=Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=x;SharedAccessKey=x;UseDevelopmentEmulator=true")
	cmd.Stdin = strings.NewReader("")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestChaosPlan(t *testing.T) {
	const length = 3 * time.Minute
	plan := planChaos(1, length, 3)
	if diff := cmp.Diff(plan, planChaos(1, length, 3), cmp.AllowUnexported(step{})); diff != "" {
		t.Errorf("the same seed gives other faults (-first +second):\n%s", diff)
	}
	if cmp.Equal(plan, planChaos(2, length, 3), cmp.AllowUnexported(step{})) {
		t.Error("another seed gives the same faults")
	}
	kinds := make(map[string]int)
	for i, s := range plan {
		kinds[s.kind]++
		if s.at > length-chaosCalmEnd || i > 0 && s.at < plan[i-1].at {
			t.Errorf("step %d at %s", i, s.at)
		}
	}
	if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, chaosKinds()) {
		t.Errorf("kinds in the plan: %v", got)
	}
}

func TestWhatAFaultExplains(t *testing.T) {
	zero := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds float64) time.Time { return zero.Add(time.Duration(seconds * float64(time.Second))) }
	// Each fault lasts from second 10 to second 12, at orders.
	for name, c := range map[string]struct {
		kind         string
		entity       string
		first, again float64
		want         bool
	}{
		"sent while a link does not answer":    {"no reply", chaosOrders, 11, 13, true},
		"sent just before":                     {"no reply", chaosOrders, 9.9, 13, true},
		"sent long before":                     {"no reply", chaosOrders, 8, 13, false},
		"sent after it":                        {"no reply", chaosOrders, 12.5, 13, false},
		"came again before it":                 {"no reply", chaosOrders, 9.8, 9.9, false},
		"another entity's link":                {"no reply", chaosPayments, 11, 13, false},
		"a connection is of both entities":     {"acknowledgement lost", chaosPayments, 11, 13, true},
		"a worker had it in hand when it died": {"worker killed", chaosPayments, 7.5, 16, true},
		"nobody had it in hand any more":       {"worker killed", chaosOrders, 6, 16, false},
		"a broker that is away stores nothing": {"broker outage", chaosOrders, 11, 13, false},
		"a stop loses nothing":                 {"worker stopped", chaosOrders, 11, 16, false},
		"a lost commit is asked for":           {"commit outcome unknown", chaosOrders, 10, 16, false},
		"a refusal is an answer":               {"broker throttles", chaosOrders, 11, 13, false},
	} {
		t.Run(name, func(t *testing.T) {
			run := &chaosRun{}
			run.trouble(chaosFaults[c.kind].blame.during(at(10), at(12), chaosOrders))
			if got := run.explained(c.entity, []time.Time{at(c.first)}, at(c.again)); got != c.want {
				t.Errorf("%s at second 10 to 12, delivered at %g and %g: explained is %t", c.kind, c.first, c.again, got)
			}
		})
	}
}

// A worker that ends without being told to is seen, counted and started again.
func TestAWorkerThatEndsByItselfIsSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs a process")
	}
	dev, _ := buildPrograms(t)
	stack, err := local.Start(t.Context(), local.Config{Entities: []busemulator.Entity{{Name: chaosOrders}, {Name: chaosPayments}}})
	if err != nil {
		t.Fatal(err)
	}
	c := &chaosRun{stack: stack, program: dev, log: io.Discard, faults: make(map[string]int)}
	t.Cleanup(func() { _ = c.close() })
	if err := c.startWorkers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	w := c.workers[0]
	current := func() *chaosProcess {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.process
	}
	bad := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.badExits
	}

	first := current()
	c.kill(t.Context(), step{})
	if second := current(); bad() != 0 || second == first {
		t.Fatalf("%d bad exits after a kill, the process is another one: %t", bad(), second != first)
	}
	second := current()
	_ = second.cmd.Process.Kill() // nobody of the run knows
	<-second.exited
	if bad() != 1 {
		t.Errorf("%d bad exits after a process was gone by itself, want 1", bad())
	}
	for deadline := time.Now().Add(processPatience); current() == second; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no other process was started")
		}
	}
	if len(c.problems) == 0 || !strings.Contains(c.problems[0], "chaos-1 ended by itself (signal: killed)") {
		t.Errorf("problems are %q", c.problems)
	}
}
