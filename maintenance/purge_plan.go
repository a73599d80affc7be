package maintenance

import (
	"context"
	"database/sql"
	"fmt"

	"azsqloutbox/sqlserver"
)

// Plan finds out what a purge would delete, by a bounded number of reads, and
// changes nothing. Its error is a *Refusal where something forbids the purge,
// and wraps ErrSetting where the retention is too short for the workers' lease.
func (p Purge) Plan(ctx context.Context) (PurgePlan, error) {
	p = p.withDefaults()
	if err := p.Validate(); err != nil {
		return PurgePlan{}, fmt.Errorf("purge: %w", err)
	}
	conn := p.connectToRead()
	defer conn.close()
	plan, _, err := p.plan(ctx, conn)
	return plan, err
}

func (p Purge) plan(ctx context.Context, c *connection) (PurgePlan, purgeTexts, error) {
	plan := PurgePlan{Table: p.Names.String(), RetentionSeconds: int64(p.Retention.Seconds())}
	var texts purgeTexts
	err := c.do(ctx, "look at the table "+plan.Table, func(ctx context.Context, conn *sql.Conn) error {
		table, err := p.readTable(ctx, conn)
		if err != nil {
			return err
		}
		if err := p.refuse(table); err != nil {
			return err
		}
		texts = p.texts(table)
		return conn.QueryRowContext(ctx, purgeTableRowsSQL, sql.Named("table", p.Events())).Scan(&plan.TableRows)
	})
	if err != nil {
		return plan, texts, err
	}
	cut, err := p.cutoff(ctx, c, texts)
	if err != nil {
		return plan, texts, err
	}
	plan.Now = cut.now
	plan.hold(cut)
	plan.InWindow = p.Window.Left(cut.now) != 0
	if cut.held {
		err = c.do(ctx, "read the oldest receipt of "+plan.Table, func(ctx context.Context, conn *sql.Conn) (err error) {
			plan.HeldBackBy, err = readHolder(ctx, conn, texts)
			return err
		})
		if err != nil {
			return plan, texts, err
		}
	}
	for {
		at := plan.Cutoff
		if err := p.estimate(ctx, c, texts, &plan); err != nil {
			return plan, texts, err
		}
		if plan.hold(cut); plan.Cutoff.Equal(at) {
			return plan, texts, nil
		} // what was found on the way makes it an earlier one: once more
	}
}

// cutoff reads it and holds the retention to the lease.
func (p Purge) cutoff(ctx context.Context, c *connection, s purgeTexts) (cutoff, error) {
	var cut cutoff
	err := c.do(ctx, "read the receipts and workers of "+p.Names.String(), func(ctx context.Context, conn *sql.Conn) (err error) {
		cut, err = p.readCutoff(ctx, conn, s)
		return err
	})
	if err != nil {
		return cut, err
	}
	return cut, p.check(cut)
}

// estimate fills in the oldest row, the estimate, and the doubtful times at both
// ends of the table and wherever else it looks.
func (p Purge) estimate(ctx context.Context, c *connection, s purgeTexts, plan *PurgePlan) error {
	looking := func(ctx context.Context, from int64, rows int) (l look, err error) {
		l, err = p.lookAt(ctx, c, s, from, rows, plan)
		plan.doubt(p.Target, l.oddities)
		return l, err
	}
	first, err := looking(ctx, s.lowest, 1)
	if err != nil {
		return err
	}
	if first.seen == 0 {
		plan.Exact = true
		return nil
	}
	plan.Oldest = &OldestRow{ID: first.first, CreatedAt: first.oldest.Time}
	var last sql.NullInt64
	err = c.do(ctx, "look at the newest events of "+plan.Table, func(ctx context.Context, conn *sql.Conn) error {
		var o oddities
		row := conn.QueryRowContext(ctx, s.newest, sql.Named("from", s.lowest), sql.Named("rows", sqlserver.MaxBatch), sql.Named("cutoff", atUTC(plan.Cutoff)),
			sql.Named("skew_ms", clockSkew.Milliseconds()), sql.Named("zones_ms", zonesApart.Milliseconds()))
		if err := row.Scan(&o.shifted, &o.shiftedID, &o.stray, &o.strayID, &o.lastStrayID, &last); err != nil {
			return err
		}
		plan.doubt(p.Target, o)
		return nil
	})
	if err != nil {
		return err
	}
	plan.PurgeEstimate, err = s.estimate(ctx, first.first, last.Int64, plan.Cutoff, looking)
	if e := &plan.PurgeEstimate; !e.Exact && e.EstimatedRows > plan.TableRows {
		e.EstimatedBytes = int64(float64(e.EstimatedBytes) * float64(plan.TableRows) / float64(e.EstimatedRows))
		e.EstimatedRows = plan.TableRows
	}
	return err
}

func (p Purge) lookAt(ctx context.Context, c *connection, s purgeTexts, from int64, rows int, plan *PurgePlan) (l look, err error) {
	op := fmt.Sprintf("look at the events of %s from id %d on", plan.Table, from)
	err = c.do(ctx, op, func(ctx context.Context, conn *sql.Conn) (err error) {
		l, err = s.lookAt(ctx, conn, from, rows, plan.Cutoff)
		return err
	})
	return l, err
}
