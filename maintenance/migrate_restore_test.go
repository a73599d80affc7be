package maintenance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver/emulator"
)

func TestFailureLeavesTheTableAsItWas(t *testing.T) {
	full := &emulator.Error{Number: 9002, Class: 17, State: 4, Message: "The transaction log for database 'outbox' is full due to 'LOG_BACKUP'."}
	for name, c := range map[string]struct {
		guard   maintenance.Guard
		fault   emulator.Fault
		changed bool // the change itself was done
	}{
		"guard":           {maintenance.GuardTrigger, emulator.Fault{Statement: "VarcharGuard", Error: full}, false},
		"narrow":          {maintenance.GuardTrigger, emulator.Fault{Statement: "MigrateNarrowIndex", Error: full}, false},
		"drop":            {maintenance.GuardTrigger, emulator.Fault{Statement: "MigrateDropIndex", Error: full}, false},
		"change":          {maintenance.GuardTrigger, emulator.Fault{Statement: "MigrateAlterColumn", Error: full}, false},
		"lost connection": {maintenance.GuardTrigger, emulator.Fault{Statement: "MigrateAlterColumn", Drop: emulator.DropBefore}, false},
		"lost answer":     {maintenance.GuardTrigger, emulator.Fault{Statement: "MigrateAlterColumn", Drop: emulator.DropAfter}, true},
		"index":           {maintenance.GuardTrigger, emulator.Fault{Statement: "MigrateCreateIndex", Error: full}, true},
		"drop the guard":  {maintenance.GuardTrigger, emulator.Fault{Statement: "MigrateDropGuard", Error: full}, true},
		"under the lock":  {maintenance.GuardLock, emulator.Fault{Statement: "MigrateCreateIndex", Error: full, Doom: true}, false},
		"lost commit":     {maintenance.GuardLock, emulator.Fault{Statement: emulator.Commit, Drop: emulator.DropBefore}, false},
		"unknown commit":  {maintenance.GuardLock, emulator.Fault{Statement: emulator.Commit, Drop: emulator.DropAfter}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newOldTable(t, scripts.Options{})
			b.exec(awkwardIndexes[0])
			b.add("a", "b")
			indexes := b.indexes()
			m := b.migration()
			m.Guard = c.guard
			b.server.Inject(c.fault)
			r, err := m.Run(t.Context())
			if err == nil || r == nil || r.State != maintenance.MigrationInterrupted {
				t.Fatalf("%+v, %v", r, err)
			}
			kind := "NVARCHAR(10)"
			if c.changed {
				kind = "VARCHAR(10)"
			}
			if !strings.HasPrefix(r.Stands, "dbo.outbox_event.payload is "+kind) || !strings.HasSuffix(r.Stands, "its indexes are as they were, and no guard is left") {
				t.Errorf("stands: %s", r.Stands)
			}
			b.restored(indexes)
			r, err = m.Run(t.Context())
			if err != nil || (r.State != maintenance.MigrationDone && r.State != maintenance.MigrationAlready) {
				t.Errorf("again: %+v, %v", r, err)
			}
		})
	}
}

// A run that could not put the indexes back says what to run; the next one does.
func TestNextRunPutsBackWhatAKilledOneLeft(t *testing.T) {
	b := newOldTable(t, scripts.Options{Schema: "my schema", Table: "it's ]odd[", ClaimIndex: "IX\n'a]b"})
	for _, text := range awkwardIndexes {
		b.exec(text)
	}
	b.add("a", "b")
	indexes := b.indexes()
	m := b.migration()
	dead := &emulator.Error{Number: 9002, Class: 17, State: 4, Message: "The transaction log for database 'outbox' is full."}
	var faults []*emulator.Injected
	for _, statement := range []string{"MigrateAlterColumn", "MigrateCreateIndex", "MigrateWidenIndex"} {
		faults = append(faults, b.server.Inject(emulator.Fault{Statement: statement, Error: dead, Times: -1}))
	}
	r, err := m.Run(t.Context())
	if err == nil || r.State != maintenance.MigrationInterrupted {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, want := range []string{"could not be left as it was", "CREATE NONCLUSTERED INDEX [by ]]payload'] ON", "DROP TRIGGER IF EXISTS [my schema].[outbox_varchar_guard_payload_"} {
		if !strings.Contains(r.Stands, want) {
			t.Errorf("stands lacks %q:\n%s", want, r.Stands)
		}
	}
	if b.indexes() == indexes || b.guards() != "1" {
		t.Fatal("nothing is broken, so nothing is tested")
	}
	for _, f := range faults {
		f.Remove()
	}
	checked := check(t, m)
	if !slices.ContainsFunc(checked.Notes, func(n string) bool { return strings.Contains(n, "outbox_varchar_guard_payload_") }) {
		t.Errorf("Check says nothing of it: %q", checked.Notes)
	}
	r, err = m.Run(t.Context())
	if err != nil || r.State != maintenance.MigrationDone {
		t.Fatalf("%+v, %v", r, err)
	}
	b.restored(indexes)
}

func TestEndOfTheContext(t *testing.T) {
	for name, c := range map[string]struct {
		guard maintenance.Guard
		step  string
	}{
		"in the check":       {maintenance.GuardTrigger, ""},
		"in the change":      {maintenance.GuardTrigger, "change the column"},
		"behind the change":  {maintenance.GuardTrigger, "create by"},
		"under the lock":     {maintenance.GuardLock, "change the column"},
		"in the lock's wait": {maintenance.GuardLock, "lock the table"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newOldTable(t, scripts.Options{})
			b.exec(awkwardIndexes[0])
			b.add("a", "b")
			indexes := b.indexes()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := b.migration()
			m.Guard = c.guard
			if c.step == "" {
				m.Progress = func(p maintenance.Progress) {
					if p.Done > 0 {
						cancel()
					}
				}
			} else {
				m.Logger = atStep(c.step, cancel)
			}
			r, err := m.Run(ctx)
			if !errors.Is(err, context.Canceled) || r == nil || r.State != maintenance.MigrationInterrupted || r.Stands == "" {
				t.Fatalf("%+v, %v", r, err)
			}
			b.restored(indexes)
		})
	}
}

// A connection that breaks does not end a check of hours, nor the guard.
func TestCheckOutlivesItsConnection(t *testing.T) {
	b := newOldTable(t, scripts.Options{})
	b.addMany(12_000)
	m := b.migration()
	m.LockTimeout = 10 * time.Millisecond // the pause before it goes on
	lost := b.server.Inject(emulator.Fault{Statement: "MigrateWindow", Nth: 2, Times: 2, Drop: emulator.DropBefore})
	r, err := m.Run(t.Context())
	if err != nil || r.State != maintenance.MigrationDone || r.Rows != 12_000 {
		t.Fatalf("%+v, %v", r, err)
	}
	if lost.Fired() != 2 {
		t.Errorf("%d connections were lost, want 2", lost.Fired())
	}
}
