package maintenance_test

import (
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
	b := newOldTableOn(t, emulator.Config{Edition: emulator.SQLServerStandard}, scripts.Options{})
	b.add("a", "b")
	indexes := b.indexes()
	m := b.migration()
	r := check(t, m)
	for _, want := range []string{"the change is not online, as this edition", "IX_outbox_claim is away from its drop until it is built again: workers pause with error 308"} {
		if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("no note says %q: %q", want, r.Notes)
		}
	}
	r, err := m.Run(t.Context())
	if err != nil || r.State != maintenance.MigrationDone || b.indexes() != indexes {
		t.Fatalf("%+v, %v", r, err)
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
