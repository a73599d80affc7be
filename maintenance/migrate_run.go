package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/sqlserver"
)

// putBackPatience is what is given to leaving the table as it was, after a
// failure or the end of the context: an index that is built again reads the
// whole table.
const putBackPatience = 10 * time.Minute

// TABLOCKX keeps its lock to the end of the transaction (sql-docs,
// hints-transact-sql-table.md). TOP (0) would touch nothing and lock nothing.
const migrateLockSQL = `DECLARE @first BIGINT;
SELECT /* outbox:MigrateLock */ TOP (1) @first = e.id
FROM   {events} AS e WITH (TABLOCKX)
ORDER BY e.id;`

// Run migrates the column, after a check of every row that found nothing. It
// puts first right what an earlier run left behind when it was killed. When it
// finds something it changes nothing, and the report says what (Found). When it
// fails or ctx ends, it leaves the table with its indexes as before and without
// a guard, and the report's Stands says so, or what to do where that failed too.
//
// Others may read and write the table, and workers claim; a second Run on it is
// a Refusal. The login needs ALTER on the table.
func (m Migration) Run(ctx context.Context) (*MigrationReport, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if m.FromID != nil {
		return nil, fmt.Errorf("%w: a migration checks every row, so it cannot begin at an id", ErrSetting)
	}
	m = m.withDefaults()
	d := m.session(true)
	defer d.Close()
	begun := time.Now()
	if err := m.clearGuards(ctx, d); err != nil {
		return nil, err
	}
	p, err := m.readPlan(ctx, d)
	if err != nil {
		return nil, err
	}
	r, err := m.report(p)
	if err != nil || p.already {
		return r, err
	}
	if r.Found() {
		r.State = MigrationRefused
		return r, nil
	}
	change := m.withTrigger
	if m.Guard == GuardLock {
		change = m.withLock
	}
	err = change(ctx, d, p, r)
	r.Seconds = time.Since(begun).Seconds()
	switch {
	case err != nil:
		r.State = MigrationInterrupted
	case r.Found():
		r.State = MigrationRefused
	default:
		r.State = MigrationDone
	}
	return r, err
}

// withTrigger checks and changes under the guard of a trigger.
func (m Migration) withTrigger(ctx context.Context, d *sqlserver.Dedicated, p *migrationPlan, r *MigrationReport) error {
	text, err := m.createGuard(p)
	if err != nil {
		return err
	}
	err = m.underGuard(ctx, d, p, r, text)
	if err == nil && !r.Found() {
		if err = m.putBack(ctx, d, p.indexes, p.guard); err == nil {
			err = m.verify(ctx, d, p)
		}
	}
	if err == nil && !r.Found() {
		return nil
	}
	// What follows is not stopped by the end of ctx: it is what the end leaves.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackPatience)
	defer cancel()
	if left := m.putBack(after, d, p.indexes, p.guard); left != nil {
		r.Stands = m.broken(p, left)
		return errors.Join(err, left)
	}
	if err != nil {
		r.Stands = m.stands(after, d, p)
	}
	return err
}

func (m Migration) underGuard(ctx context.Context, d *sqlserver.Dedicated, p *migrationPlan, r *MigrationReport, guardText string) error {
	if err := m.patiently(ctx, func() error { return m.exec(ctx, d, m.LockTimeout, MigrationStep{"create the guard", guardText}) }); err != nil {
		return err
	}
	if err := m.precheck(ctx, m.inSession(ctx, d), p, r, "check"); err != nil || r.Found() {
		return err
	}
	r.estimate()
	if err := m.guardStands(ctx, d, p); err != nil {
		return err
	}
	// What brings the indexes back is putBack's, whatever happens here.
	for _, step := range append(m.takeAway(p), m.alter(p)) {
		if err := m.change(ctx, d, step); err != nil {
			return err
		}
	}
	if err := m.guardStands(ctx, d, p); err != nil {
		r.Notes = append(r.Notes, err.Error()+": rows written since the check may have lost text; compare them with their source")
	}
	return nil
}

// guardStands is an error where somebody has taken the guard away.
func (m Migration) guardStands(ctx context.Context, d *sqlserver.Dedicated, p *migrationPlan) error {
	var guards []guard
	err := d.Use(ctx, m.op("look for the guard"), func(conn *sql.Conn) (err error) {
		guards, err = m.readGuards(ctx, conn)
		return err
	})
	if err != nil {
		return err
	}
	for _, g := range guards {
		if g.name == p.guard && !g.disabled {
			return nil
		}
	}
	return fmt.Errorf("the guard %s was dropped or disabled by somebody else", p.guard)
}

// change runs a step. What is done at once waits briefly for its lock, and again;
// a build or the change itself waits once, and long.
func (m Migration) change(ctx context.Context, d *sqlserver.Dedicated, step MigrationStep) error {
	if strings.HasPrefix(step.SQL, "/* outbox:"+dropIndex+" */\n") {
		return m.patiently(ctx, func() error { return m.exec(ctx, d, m.LockTimeout, step) })
	}
	return m.exec(ctx, d, m.FinalLockWait, step)
}

// exec runs one statement that changes something, and says so first. wait is
// what it may wait for its lock.
func (m Migration) exec(ctx context.Context, d *sqlserver.Dedicated, wait time.Duration, step MigrationStep) error {
	return d.Use(ctx, m.op(step.Step), func(conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, lockTimeout(wait)); err != nil {
			return err
		}
		return m.execIn(ctx, conn, step)
	})
}

func (m Migration) execIn(ctx context.Context, q querier, step MigrationStep) error {
	m.Logger.Info(step.Step, zap.String("sql", step.SQL))
	_, err := q.ExecContext(ctx, step.SQL)
	return err
}

// lockTimeout is a statement of its own: SET takes no variable for it.
func lockTimeout(wait time.Duration) string {
	return fmt.Sprintf("SET LOCK_TIMEOUT %d;", wait.Milliseconds())
}

// withLock checks, locks, checks again and changes in one transaction: what
// fails leaves nothing.
func (m Migration) withLock(ctx context.Context, d *sqlserver.Dedicated, p *migrationPlan, r *MigrationReport) error {
	if err := m.precheck(ctx, m.inSession(ctx, d), p, r, "check"); err != nil || r.Found() {
		return err
	}
	r.estimate()
	err := m.patiently(ctx, func() error {
		again, err := m.report(p)
		if err != nil {
			return err
		}
		err = d.Use(ctx, m.op("the change"), func(conn *sql.Conn) error { return m.locked(ctx, conn, p, again) })
		if errors.Is(err, errNotClean) {
			again.Notes = append(r.Notes, errNotClean.Error()+", which the check before it had not: they were written in between")
			*r = *again
			return nil
		}
		return err
	})
	if err == nil && !r.Found() {
		err = m.verify(ctx, d, p)
	}
	if err != nil {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackPatience)
		defer cancel()
		r.Stands = m.stands(after, d, p)
	}
	return err
}

// locked is the transaction.
func (m Migration) locked(ctx context.Context, conn *sql.Conn, p *migrationPlan, again *MigrationReport) error {
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := m.execIn(ctx, tx, m.lockStep()); err != nil {
		return err
	}
	// A reader of row versions has no lock in the way until the change itself.
	if _, err := tx.ExecContext(ctx, lockTimeout(m.FinalLockWait)); err != nil {
		return err
	}
	inTransaction := func(_ string, fn func(querier) error) error { return fn(tx) }
	if err := m.precheck(ctx, inTransaction, p, again, "check under the lock"); err != nil {
		return err
	}
	if again.Found() {
		return errNotClean
	}
	for _, step := range m.changes(p) {
		if err := m.execIn(ctx, tx, step); err != nil {
			return fmt.Errorf("%s: %w", step.Step, err)
		}
	}
	return tx.Commit()
}
