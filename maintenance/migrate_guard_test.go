package maintenance_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver/emulator"
)

// atStep calls fn, once, when the migration says that it begins a step.
func atStep(step string, fn func()) *zap.Logger {
	var once sync.Once
	return atEveryStep(step, func() { once.Do(fn) })
}

func atEveryStep(step string, fn func()) *zap.Logger {
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(io.Discard), zap.InfoLevel)
	return zap.New(zapcore.RegisterHooks(core, func(e zapcore.Entry) error {
		if strings.HasPrefix(e.Message, step) {
			fn()
		}
		return nil
	}))
}

// number is the error number of the server in err.
func number(err error) int32 {
	var e mssql.Error
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// tryInsert writes a row outside the test's own bookkeeping.
func (b *oldTable) tryInsert(id int64, payload string) error {
	_, err := b.db.ExecContext(b.t.Context(), b.names.Replacer().Replace(insertRow), sql.Named("id", id), sql.Named("payload", payload), sql.Named("headers", nil))
	return err
}

func TestGuardRefusesWhatWouldBeLostAndNothingElse(t *testing.T) {
	b := newOldTable(t, scripts.Options{})
	b.add("one")
	m := b.migration()
	m.Length = "5"
	during := func() {
		for payload, want := range map[string]int32{"ok": 0, "é    ": 0, "ā": 50000, "😀": 50000, "123456": 50000, "12345 ": 50000} {
			if got := number(b.tryInsert(b.nextID, payload)); got != want {
				t.Errorf("insert of %q: error %d, want %d", payload, got, want)
			}
			b.nextID++
		}
		_, err := b.db.ExecContext(t.Context(), b.names.Replacer().Replace(`UPDATE {events} SET payload = N'ā' WHERE id = 1`))
		if number(err) != 50000 || !strings.Contains(err.Error(), "migrate-varchar is at work, and payload would lose characters") {
			t.Errorf("update of the text: %v", err)
		}
		b.exec(`UPDATE {events} SET status = 1, processed_at = SYSUTCDATETIME() WHERE id = 1`)
		_, err = b.db.ExecContext(t.Context(), b.names.Replacer().Replace(`UPDATE {events} SET status = 0 OUTPUT deleted.id WHERE id = 1`))
		if number(err) != 334 {
			t.Errorf("OUTPUT without INTO: %v, want the error 334 that the plan speaks of", err)
		}
	}
	var once sync.Once
	m.Progress = func(p maintenance.Progress) {
		if p.Stage == "check" && p.Done > 0 {
			once.Do(during)
		}
	}
	// After the change the guard lets everything pass; it is there until the
	// indexes are.
	m.Logger = atStep("put the column back", func() {
		if err := b.tryInsert(b.nextID, "late"); err != nil {
			t.Errorf("insert after the change: %v", err)
		}
		b.nextID++
	})
	r, err := m.Run(t.Context())
	if err != nil || r.State != maintenance.MigrationDone {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := b.text(`SELECT STRING_AGG(payload, ',') WITHIN GROUP (ORDER BY payload) FROM {events}`); got != "é    ,late,ok,one" && got != "late,ok,one,é    " {
		t.Errorf("payloads %q", got)
	}
}

// Claims go on: the index they read is never away.
func TestClaimIndexStaysWhileTheChangeIsOnline(t *testing.T) {
	b := newOldTable(t, scripts.Options{})
	b.add("a", "b")
	looked := 0
	for _, step := range []string{"drop", "change the column", "put the column back"} {
		m := b.migration()
		m.Logger = atStep(step, func() {
			looked++
			b.text(`SELECT COUNT(*) FROM {events} WITH (INDEX({claim_index}), READPAST, READCOMMITTEDLOCK) WHERE event_type = 'order-placed' AND status = 0`)
		})
		if _, err := m.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.exec(`DROP INDEX {claim_index} ON {events}`)
		b.exec(`ALTER TABLE {events} ALTER COLUMN payload NVARCHAR(10) NOT NULL`)
		b.exec(`CREATE INDEX {claim_index} ON {events} (event_type, id) INCLUDE (payload, headers) WHERE status = 0`)
	}
	if looked < 3 {
		t.Errorf("looked %d times", looked)
	}
}

func TestLossyRowsRefuseTheRun(t *testing.T) {
	for _, guard := range []maintenance.Guard{maintenance.GuardTrigger, maintenance.GuardLock} {
		b := newOldTable(t, scripts.Options{})
		b.add("fine", "ā")
		indexes := b.indexes()
		m := b.migration()
		m.Guard = guard
		r, err := m.Run(t.Context())
		if err != nil || r.State != maintenance.MigrationRefused || r.LossyRows != 1 || len(r.Samples) != 1 {
			t.Fatalf("%s: %+v, %v", guard, r, err)
		}
		if b.indexes() != indexes || b.guards() != "0" || b.column("payload") != "nvarchar 20 SQL_Latin1_General_CP1_CI_AS 0" {
			t.Errorf("%s: something was changed", guard)
		}
	}
}

// Written between the check and the lock: the check under the lock finds it.
func TestLockChecksAgain(t *testing.T) {
	b := newOldTable(t, scripts.Options{})
	b.add("fine")
	m := b.migration()
	m.Guard = maintenance.GuardLock
	m.Logger = atStep("lock the table", func() { b.add("ā") })
	r, err := m.Run(t.Context())
	if err != nil || r.State != maintenance.MigrationRefused || r.LossyRows != 1 || r.Rows != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "check under the lock") }) {
		t.Errorf("notes %q", r.Notes)
	}
	if b.column("payload") != "nvarchar 20 SQL_Latin1_General_CP1_CI_AS 0" {
		t.Error("the column was changed")
	}
}

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
			if got := b.indexes(); got != indexes {
				t.Errorf("indexes are\n%s\nwere\n%s", got, indexes)
			}
			if b.guards() != "0" {
				t.Error("a guard is left")
			}
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
	if got := b.indexes(); got != indexes {
		t.Errorf("indexes are\n%s\nwere\n%s", got, indexes)
	}
	if b.guards() != "0" {
		t.Error("a guard is left")
	}
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
			if got := b.indexes(); got != indexes {
				t.Errorf("indexes are\n%s\nwere\n%s", got, indexes)
			}
			if b.guards() != "0" {
				t.Error("a guard is left")
			}
		})
	}
}

func TestOneMigrationAtATime(t *testing.T) {
	b := newOldTable(t, scripts.Options{})
	conn, err := b.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), `EXEC sp_getapplock @Resource = N'outbox:migrate-varchar:[dbo].[outbox_event]', @LockMode = 'Exclusive', @LockOwner = 'Session', @DbPrincipal = 'public'`); err != nil {
		t.Fatal(err)
	}
	m := b.migration()
	m.LockTimeout = 1 // no patience
	var refusal *maintenance.Refusal
	if _, err := m.Run(t.Context()); !errors.As(err, &refusal) {
		t.Errorf("got %v, want a refusal", err)
	}
	if r := check(t, m); r.Found() {
		t.Errorf("Check is refused too: %+v", r)
	}
}

func TestGuardThatSomebodyDropsEndsTheRun(t *testing.T) {
	b := newOldTable(t, scripts.Options{})
	b.add("a")
	m := b.migration()
	var once sync.Once
	m.Progress = func(p maintenance.Progress) {
		if p.Done > 0 {
			once.Do(func() {
				b.exec(`DROP TRIGGER ` + b.text(`SELECT name FROM sys.triggers`))
			})
		}
	}
	r, err := m.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "was dropped or disabled by somebody else") {
		t.Fatalf("%+v, %v", r, err)
	}
	if b.column("payload") != "nvarchar 20 SQL_Latin1_General_CP1_CI_AS 0" {
		t.Error("the column was changed without a guard")
	}
}

func TestEditionWithoutOnlineOperations(t *testing.T) {
	server, err := emulator.Start(emulator.Config{Edition: emulator.SQLServerStandard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	b := newOldTableOn(t, server, scripts.Options{})
	b.add("a", "b")
	indexes := b.indexes()
	m := b.migration()
	r := check(t, m)
	for _, want := range []string{"the change is not online, as this edition", "IX_outbox_claim is away from its drop until it is built again: workers pause with error 308"} {
		if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("no note says %q: %q", want, r.Notes)
		}
	}
	r, err = m.Run(t.Context())
	if err != nil || r.State != maintenance.MigrationDone || b.indexes() != indexes {
		t.Fatalf("%+v, %v", r, err)
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

// Writers hold the table for longer than a lock is waited for: it is asked for
// again.
func TestLockIsAskedForAgain(t *testing.T) {
	for _, guard := range []maintenance.Guard{maintenance.GuardTrigger, maintenance.GuardLock} {
		b := newOldTable(t, scripts.Options{})
		b.add("a")
		tx, err := b.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), b.names.Replacer().Replace(`UPDATE {events} SET retry_count = 1`)); err != nil {
			t.Fatal(err)
		}
		step := map[maintenance.Guard]string{maintenance.GuardTrigger: "create the guard", maintenance.GuardLock: "lock the table"}[guard]
		m := b.migration()
		m.Guard = guard
		m.LockTimeout = 10 * time.Millisecond
		tries := 0
		var second sync.Once
		m.Logger = atEveryStep(step, func() {
			if tries++; tries > 1 {
				second.Do(func() { _ = tx.Commit() })
			}
		})
		r, err := m.Run(t.Context())
		if err != nil || r.State != maintenance.MigrationDone {
			t.Fatalf("%s: %+v, %v", guard, r, err)
		}
		if tries < 2 {
			t.Errorf("%s: %d tries", guard, tries)
		}
	}
}
