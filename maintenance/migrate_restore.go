package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"azsqloutbox/sqlserver"
)

// clearGuards puts right what runs left behind that were killed. The application
// lock says that none of them is alive.
func (m Migration) clearGuards(ctx context.Context, d *sqlserver.Dedicated) error {
	var guards []guard
	err := d.Use(ctx, m.op("look for what an earlier run left"), func(conn *sql.Conn) (err error) {
		guards, err = m.readGuards(ctx, conn)
		return err
	})
	if err != nil {
		return err
	}
	for _, g := range guards {
		m.Logger.Warn("an earlier run was killed: its indexes are put back and its guard is dropped",
			zap.Stringer("table", m.Names), zap.String("trigger", g.name))
		if err := m.putBack(ctx, d, g.restore, g.name); err != nil {
			return err
		}
	}
	return nil
}

// putBack makes the indexes as they were and drops the guard, the guard last:
// it is what remembers them. It changes nothing that is as it should be.
func (m Migration) putBack(ctx context.Context, d *sqlserver.Dedicated, indexes []restoreIndex, guardName string) error {
	var now []*tableIndex
	err := m.patiently(ctx, func() error {
		return d.Use(ctx, m.op("look at the indexes"), func(conn *sql.Conn) (err error) {
			now, err = m.readIndexes(ctx, conn)
			return err
		})
	})
	if err != nil {
		return err
	}
	for _, r := range indexes {
		for _, step := range r.missing(m, now) {
			if err := m.patiently(ctx, func() error { return m.exec(ctx, d, m.FinalLockWait, step) }); err != nil {
				return err
			}
		}
	}
	return m.patiently(ctx, func() error {
		return m.exec(ctx, d, m.LockTimeout, m.dropGuard(guardName))
	})
}

// missing is what it takes to have the index again.
func (r restoreIndex) missing(m Migration, now []*tableIndex) (list []MigrationStep) {
	i := findIndex(now, r.Index)
	switch {
	case i == nil:
		return r.back(false)
	case !r.sameAs(i, m.Events()):
		list = r.back(true)
	case i.disabled:
		return nil
	}
	if r.Disable != "" {
		list = append(list, r.sleep())
	}
	return list
}

func findIndex(list []*tableIndex, name string) *tableIndex {
	for _, i := range list {
		if strings.EqualFold(i.name, name) {
			return i
		}
	}
	return nil
}

// sameAs says whether an index is what is remembered; ONLINE is not kept.
func (r restoreIndex) sameAs(i *tableIndex, table string) bool {
	return r.Create == i.create(table, how{}) || r.Create == i.create(table, how{online: true})
}

// verify looks whether everything is as it was planned.
func (m Migration) verify(ctx context.Context, d *sqlserver.Dedicated, p *migrationPlan) error {
	return d.Use(ctx, m.op("look at the result"), func(conn *sql.Conn) error {
		c, err := m.readColumn(ctx, conn)
		if err != nil {
			return err
		}
		if got, want := c.before(), p.column.after(); !strings.EqualFold(got, want) {
			return fmt.Errorf("the column is %s, and should be %s", got, want)
		}
		return m.verifyRest(ctx, conn, p, c)
	})
}

func (m Migration) verifyRest(ctx context.Context, q querier, p *migrationPlan, c *migrationColumn) error {
	now, err := m.readIndexes(ctx, q)
	if err != nil {
		return err
	}
	for _, r := range p.indexes {
		i := findIndex(now, r.Index)
		if i == nil || i.definition(m.Events()) != r.original.definition(m.Events()) {
			return fmt.Errorf("the index %s is not as it was: %s", r.Index, r.original.definition(m.Events()))
		}
	}
	d, err := m.readDefault(ctx, q, c)
	if err != nil {
		return err
	}
	if (d == nil) != (p.deflt == nil) || d != nil && *d != *p.deflt {
		return errors.New("the default of the column is not as it was")
	}
	return nil
}

// stands says where a run left the table that did not come to its end.
func (m Migration) stands(ctx context.Context, d *sqlserver.Dedicated, p *migrationPlan) string {
	var c *migrationColumn
	var left error
	err := m.patiently(ctx, func() error {
		return d.Use(ctx, m.op("look at the result"), func(conn *sql.Conn) (err error) {
			if c, err = m.readColumn(ctx, conn); err == nil {
				left = m.verifyRest(ctx, conn, p, c)
			}
			return err
		})
	})
	switch {
	case err != nil:
		return m.broken(p, err)
	case left != nil:
		return m.broken(p, left)
	}
	return fmt.Sprintf("%s.%s is %s, its indexes are as they were, and no guard is left", m.Names, m.Column, c.before())
}

// broken says what a person has to run.
func (m Migration) broken(p *migrationPlan, err error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the table could not be left as it was: %v\nRun again with --execute, which puts it right first; or run what is missing of this by hand:", err)
	for _, step := range m.bringBack(p) {
		b.WriteString("\n  " + step.SQL)
	}
	if m.Guard == GuardTrigger {
		b.WriteString("\n  " + m.dropGuard(p.guard).SQL)
	}
	return b.String()
}
