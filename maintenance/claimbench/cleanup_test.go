package claimbench_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/maintenance/claimbench"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver/emulator"
)

// However a run ends, its tables are gone when it returns.
func TestNothingIsLeftAfterAnError(t *testing.T) {
	for name, fault := range map[string]emulator.Fault{
		"the index cannot be made":    {Statement: "BenchCreateIndex", Error: &emulator.Error{Number: 1105, Class: 17, Message: "scripted: the filegroup is full"}},
		"a fill is a deadlock victim": {Statement: "BenchFillScratch", Nth: 2, Error: &emulator.Error{Number: 1205, Class: 13, Message: "scripted"}},
		"a claim fails":               {Statement: "BenchUpdateTop", Nth: 3, Error: &emulator.Error{Number: 8134, Class: 16, Message: "scripted"}},
		"a flip loses its connection": {Statement: "BenchFlipClaim", Nth: 2, Drop: emulator.DropBefore},
		"an answer is lost":           {Statement: "BenchDeleteOutput", Nth: 2, Drop: emulator.DropAfter},
		"a failover at a commit":      {Statement: emulator.Commit, Nth: 4, Error: &emulator.Error{Number: 40197, Class: 17, Message: "scripted"}},
		"the figures cannot be read":  {Statement: "BenchQueryStats", Nth: 3, Error: &emulator.Error{Number: 8134, Class: 16, Message: "scripted"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newOutbox(t, emulator.Config{}, scripts.Options{})
			before := b.tables()
			injected := b.server.Inject(fault)
			r, err := b.small().Run(t.Context())
			if err == nil || injected.Fired() != 1 || len(r.Results) > 0 || !r.Executed {
				t.Errorf("fired %d times, error is %v, %+v", injected.Fired(), err, r)
			}
			if after := b.tables(); after != before {
				t.Errorf("tables were %s and are %s", before, after)
			}
		})
	}
}

// Ctrl-C between two steps, in each of them.
func TestNothingIsLeftAfterCtrlC(t *testing.T) {
	for _, stage := range []string{"fill for the covering index", "claim by the covering index", "fill for the slim index", "claim by the slim index"} {
		t.Run(stage, func(t *testing.T) {
			b := newOutbox(t, emulator.Config{}, scripts.Options{})
			before := b.tables()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			bench := b.small()
			bench.Progress = func(p maintenance.Progress) {
				if p.Stage == stage {
					cancel()
				}
			}
			if _, err := bench.Run(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "bench claim beside dbo.outbox_event was stopped") {
				t.Errorf("error is %v", err)
			}
			if after := b.tables(); after != before {
				t.Errorf("tables were %s and are %s", before, after)
			}
		})
	}
}

// Ctrl-C while a statement of a claim, with its locks, is at the server.
func TestNothingIsLeftAfterCtrlCInAStatement(t *testing.T) {
	for _, statement := range []string{"BenchFillScratch", "BenchCreateIndex", "BenchFlipClaim"} {
		t.Run(statement, func(t *testing.T) {
			b := newOutbox(t, emulator.Config{}, scripts.Options{})
			before := b.tables()
			injected := b.server.Inject(emulator.Fault{Statement: statement, Delay: time.Hour})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := b.small().Run(ctx)
				ended <- err
			}()
			for injected.Fired() == 0 {
				select {
				case err := <-ended:
					t.Fatalf("it ended with %v", err)
				case <-time.After(time.Millisecond):
				}
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("error is %v", err)
			}
			if after := b.tables(); after != before {
				t.Errorf("tables were %s and are %s", before, after)
			}
		})
	}
}

// A scratch table that cannot be dropped is named, found by the next plan, and
// removed by the next run; a table of the user's with a like name is not, be it an
// outbox that our own script has made.
func TestLeftovers(t *testing.T) {
	b := newOutbox(t, emulator.Config{}, scripts.Options{})
	mayNotGo, err := scripts.Define(scripts.Options{Table: "outbox_event_bench_20261130"})
	if err != nil {
		t.Fatal(err)
	}
	b.exec(mayNotGo.Events.Create)
	b.exec(mayNotGo.Receipts.Create)
	b.exec(`CREATE TABLE dbo.outbox_event_bench_results (id INT NOT NULL CONSTRAINT PK_outbox_event_bench_results PRIMARY KEY);
CREATE TABLE dbo.outbox_event_bench_0123abcd (id INT NOT NULL CONSTRAINT PK_mine PRIMARY KEY);`)
	mine := b.tables()
	stuck := b.server.Inject(emulator.Fault{Statement: "BenchDropScratch", Times: -1, Error: &emulator.Error{Number: 1222, Class: 16, Message: "scripted"}})
	restore := claimbench.ShortenAftermath(t, 200*time.Millisecond)
	_, err = b.small().Run(t.Context())
	restore()
	stuck.Remove()
	if err == nil || !strings.Contains(err.Error(), "is still there: the next run with --execute removes it, or DROP TABLE [dbo].[outbox_event_bench_") {
		t.Fatalf("error is %v", err)
	}
	plan, err := b.small().Plan(t.Context())
	if err != nil || len(plan.Leftovers) != 1 || plan.Leftovers[0].Rows != 400 {
		t.Errorf("%v, the plan has %+v", err, plan.Leftovers)
	}
	if !strings.Contains(b.tables(), plan.Leftovers[0].Name) {
		t.Error("the plan has dropped it")
	}
	if r := b.run(b.small()); len(r.Leftovers) != 1 || len(r.Results) != 10 {
		t.Errorf("%+v", r)
	}
	if after := b.tables(); after != mine {
		t.Errorf("tables were %s and are %s", mine, after)
	}
}

// A run that goes on elsewhere must not lose its table to another's clearing.
func TestOneRunAtATime(t *testing.T) {
	b := newOutbox(t, emulator.Config{}, scripts.Options{})
	bench := b.small()
	tried := false
	bench.Progress = func(maintenance.Progress) {
		if tried {
			return
		}
		tried = true
		r, err := b.small().Run(t.Context())
		var refusal *maintenance.Refusal
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Found, "another session is at it") || r.Executed {
			t.Errorf("%v, %+v", err, r)
		}
	}
	if r := b.run(bench); !tried || len(r.Results) != 10 {
		t.Errorf("%+v", r)
	}
}
