package maintenance_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver/emulator"
)

// firstProgress runs r until it has reported once.
func (b *table) firstProgress(r maintenance.Rebuild) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	var got atomic.Pointer[string]
	r.Progress = func(p maintenance.Progress) {
		text := fmt.Sprintf("%s %d of %d %s", p.Stage, p.Done, p.Total, p.Unit)
		got.Store(&text)
		cancel()
	}
	if _, err := r.Run(ctx); err == nil || got.Load() == nil {
		b.t.Fatalf("no progress, and then %v", err)
	}
	return *got.Load()
}

func TestRebuildReportsPercent(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	fault := b.server.Inject(emulator.Fault{Statement: "RebuildIndex", Delay: time.Hour})
	go func() {
		for fault.Fired() == 0 && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		b.fakeOperation(0, 37.9)
	}()
	r := b.rebuild()
	r.Index, r.Force = pk, true
	if got := b.firstProgress(r); got != "rebuild PK_outbox_event 37 of 100 %" {
		t.Errorf("got %s", got)
	}
}

func TestRebuildSaysWhoIsInItsWay(t *testing.T) {
	b := newTable(t, emulator.Config{}, scripts.Options{})
	tx, session := b.openTransaction()
	defer func() { _ = tx.Rollback() }()
	r := b.rebuild()
	r.Index, r.Force = claim, true
	if got, want := b.firstProgress(r), fmt.Sprintf("rebuild IX_outbox_claim (waits for session %d, LCK_M_SCH_M", session); !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// openTransaction has written to the table and is not done.
func (b *table) openTransaction() (tx *sql.Tx, session int) {
	b.t.Helper()
	tx, err := b.db.BeginTx(b.t.Context(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := tx.ExecContext(b.t.Context(), "INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (1, 'a', '1', 'x', '{}')"); err != nil {
		b.t.Fatal(err)
	}
	if err := tx.QueryRowContext(b.t.Context(), "SELECT @@SPID").Scan(&session); err != nil {
		b.t.Fatal(err)
	}
	return tx, session
}
