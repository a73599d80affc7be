package maintenance_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver/emulator"
)

// A rebuild that its MAX_DURATION pauses is no error; the next run goes on, and
// while it is paused nothing else is tried.
func TestRebuildPausesAndGoesOn(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	b.exec("ALTER INDEX PK_outbox_event ON {events} SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = OFF)")
	b.fakePages(looks{index: pk, pages: 9000, density: 50, row: 100}, looks{index: claim, pages: 2000, density: 50, row: 100})
	r := b.rebuild()
	r.FillFactor = 97
	b.server.StopRebuild("dbo.outbox_event", pk, 43)
	done, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if i := indexOf(t, done, pk); i.Outcome != maintenance.RebuildPaused || i.Operation == nil || i.Operation.PercentComplete != 43 {
		t.Errorf("%+v", i)
	}
	if i := indexOf(t, done, claim); i.Outcome != maintenance.RebuildSkipped {
		t.Errorf("%+v", i)
	}
	plan, err := r.Plan(t.Context())
	if i := indexOf(t, plan, pk); err != nil || i.Action != maintenance.RebuildResume || !strings.Contains(i.Reason, "paused at 43 %") || !strings.Contains(i.SQL[0], "RESUME WITH (MAX_DURATION = 60 MINUTES, WAIT_AT_LOW_PRIORITY") {
		t.Fatalf("%+v, %v", i, err)
	}
	r.FillFactor = 50 // the one it was begun with stays
	if done, err = r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if i := indexOf(t, done, pk); i.Outcome != maintenance.RebuildDone || b.fillFactor(pk) != int64(97) {
		t.Errorf("%+v with fill factor %v", i, b.fillFactor(pk))
	}
}

func TestRebuildAborts(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	r := b.rebuild()
	r.Index, r.Force = pk, true
	r.FillFactor = 60
	b.server.StopRebuild("dbo.outbox_event", pk, 10)
	if _, err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	plan, err := r.Abort(t.Context(), false)
	if err != nil || len(plan.Indexes) != 1 || plan.Indexes[0].Action != maintenance.RebuildAbort || plan.Indexes[0].Outcome != "" {
		t.Fatalf("%+v, %v", plan, err)
	}
	if n := b.value("SELECT COUNT(*) FROM sys.index_resumable_operations"); n != int64(1) {
		t.Fatal("the plan aborted")
	}
	done, err := r.Abort(t.Context(), true)
	if err != nil || done.Indexes[0].Outcome != maintenance.RebuildDone || b.value("SELECT COUNT(*) FROM sys.index_resumable_operations") != int64(0) || b.fillFactor(pk) != int64(98) {
		t.Errorf("%+v, %v", done, err)
	}
	if nothing, err := r.Abort(t.Context(), true); err != nil || len(nothing.Indexes) != 0 {
		t.Errorf("%+v, %v", nothing, err)
	}
}

// stopDuring runs r and ends its context once the statement is on its way.
func (b *table) stopDuring(r maintenance.Rebuild, statement string, then func()) (maintenance.RebuildReport, error) {
	b.t.Helper()
	fault := b.server.Inject(emulator.Fault{Statement: statement, Delay: time.Hour})
	defer fault.Remove()
	ctx, cancel := context.WithCancelCause(b.t.Context())
	defer cancel(nil)
	r.Progress = func(maintenance.Progress) {}
	go func() {
		for fault.Fired() == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		then()
		cancel(errors.New("told to stop"))
	}()
	return r.Run(ctx)
}

func (b *table) fakeOperation(state int, percent float64) {
	b.fake(emulator.FakeView{
		Name:    "sys.index_resumable_operations",
		Columns: []string{"object_id", "index_id", "name", "state", "percent_complete", "start_time", "total_execution_time"},
		Rows:    [][]any{{b.value("SELECT OBJECT_ID('{events}')"), 1, pk, state, percent, time.Now().UTC(), 3}},
	})
}

func TestRebuildStoppedIsPaused(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	b := newTable(t, emulator.Config{}, scripts.Options{})
	r := b.rebuild()
	r.Index, r.Force = pk, true
	done, err := b.stopDuring(r, "RebuildIndex", func() { b.fakeOperation(1, 71) })
	if err == nil || !contains(err.Error(), "paused at 71 %", "the next run goes on", "told to stop") {
		t.Errorf("got %v", err)
	}
	if i := indexOf(t, done, pk); i.Outcome != maintenance.RebuildPaused {
		t.Errorf("%+v", i)
	}
}

func TestRebuildStoppedIsRolledBack(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	b := newTable(t, emulator.Config{}, scripts.Options{})
	r := b.rebuild()
	r.Index, r.Force = claim, true // filtered, so not resumable
	done, err := b.stopDuring(r, "RebuildIndex", func() {})
	if err == nil || !contains(err.Error(), "the server rolls it back") || done.Indexes[0].Outcome != maintenance.RebuildStopped || b.fillFactor(claim) != int64(0) {
		t.Errorf("got %v and %+v", err, done)
	}
}

// What the server had not paused yet when it was stopped is told to.
func TestRebuildStoppedIsToldToPause(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	r := b.rebuild()
	r.Index, r.Force = pk, true
	_, err := b.stopDuring(r, "RebuildIndex", func() { b.fakeOperation(0, 20) })
	// The engine has none to pause, and says so.
	if err == nil || b.server.StatementCount("PauseRebuild") == 0 || !contains(err.Error(), "could not be read; the next run goes on") {
		t.Errorf("got %v", err)
	}
}
