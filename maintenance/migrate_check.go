package maintenance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"azsqloutbox/internal/quantity"
)

// Check is the pre-check: it reads and changes nothing. The report is there also
// with an error, which is of the context where it was interrupted: it says how
// far the check came, and FromID goes on from there.
func (m Migration) Check(ctx context.Context) (*MigrationReport, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	m = m.withDefaults()
	d := m.session(false)
	defer d.Close()
	p, err := m.readPlan(ctx, d)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	r, err := m.report(p)
	if err != nil || p.already {
		return r, err
	}
	err = m.precheck(ctx, m.inSession(ctx, d), p, r, "check")
	r.Seconds = time.Since(begun).Seconds()
	if err != nil {
		r.State = MigrationInterrupted
		return r, m.goOnWith(r, err)
	}
	r.estimate()
	return r, nil
}

// report is one that has the plan in it, and nothing checked.
func (m Migration) report(p *migrationPlan) (*MigrationReport, error) {
	r := &MigrationReport{
		Table: m.Names.String(), Column: m.Column, From: p.column.before(), To: p.column.after(),
		State: MigrationChecked, Guard: m.Guard,
		Samples: []MigrationSample{}, Blockers: []MigrationBlocker{}, Plan: []MigrationStep{}, Notes: []string{},
	}
	r.Blockers = append(r.Blockers, p.blockers...)
	if p.already {
		r.State, r.To = MigrationAlready, r.From
		r.Notes = append(r.Notes, p.notes...)
		return r, nil
	}
	m.describe(p)
	r.Notes = append(r.Notes, p.notes...)
	if p.column.kind != "nvarchar" {
		return r, nil
	}
	var err error
	r.Plan, err = m.steps(p)
	return r, err
}

// precheck looks at every row and concludes. Text that the server cannot compare
// is not looked at.
func (m Migration) precheck(ctx context.Context, do run, p *migrationPlan, r *MigrationReport, stage string) error {
	if p.column.kind != "nvarchar" || p.column.encrypted {
		return nil
	}
	err := m.checkRows(ctx, do, p.column, r, stage)
	r.conclude(p.column, p.utf8)
	return err
}

// goOnWith says, with the error that ended a check, where to go on.
func (m Migration) goOnWith(r *MigrationReport, err error) error {
	if r.Rows == 0 {
		return fmt.Errorf("%s ended before it had looked at a row: %w", m.op("the check"), err)
	}
	return fmt.Errorf("%s ended after %s: go on with --from-id %d, and add what it finds to this: %w", m.op("the check"), quantity.Of(r.Rows, "row"), r.nextID, err)
}

// errNotClean ends a transaction whose check found something.
var errNotClean = errors.New("the check under the lock found rows that would lose text")
