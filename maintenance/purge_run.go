package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/sqlserver"
)

var (
	errMaxDuration  = errors.New("the longest duration is over")
	errWindowClosed = errors.New("the window closed")
)

// Run makes the plan and then deletes, batch by batch, each a transaction of its
// own. When ctx ends it stops after the batch in hand and returns an error. One
// purge at a time works on a table; another one is a *Refusal. Deadlocks, lock
// timeouts, lost connections and failovers are tried again. What was done is in
// the result also where there is an error; without a plan, as its zero Now shows,
// that is nothing.
func (p Purge) Run(ctx context.Context) (PurgeResult, error) {
	begun := time.Now()
	p = p.withDefaults()
	if err := p.Validate(); err != nil {
		return PurgeResult{}, fmt.Errorf("purge: %w", err)
	}
	r := &purgeRun{Purge: p, conn: p.connect("purge")}
	defer r.conn.close()
	r.conn.keepWaiting = true
	r.result.Notes = []string{}
	r.result.Table, r.result.RetentionSeconds = p.Names.String(), int64(p.Retention.Seconds())
	bounded := ctx
	if p.MaxDuration > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithDeadlineCause(ctx, begun.Add(p.MaxDuration), errMaxDuration)
		defer cancel()
	}
	stop, err := r.run(bounded)
	return r.end(ctx, stop, err, time.Since(begun))
}

// purgeRun is one Run.
type purgeRun struct {
	Purge
	conn   *connection
	texts  purgeTexts
	cutAt  time.Time
	gauge  logGauge
	odd    oddities // of the windows walked
	result PurgeResult
	freed  float64 // bytes
}

func (r *purgeRun) run(ctx context.Context) (Stop, error) {
	plan, texts, err := r.plan(ctx, r.conn)
	if err != nil {
		return "", err
	}
	r.result.PurgePlan, r.texts = plan, texts
	if !r.result.InWindow {
		return StopOutside, nil
	}
	if left := r.Window.Left(r.result.Now); left > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, left, errWindowClosed)
		defer cancel()
	}
	if r.result.Oldest == nil {
		return StopDone, nil
	}
	return StopDone, r.walk(ctx)
}

// walk deletes from the oldest row on. The rows before it were deleted by
// earlier runs, and may have left ghosts that a seek from the lowest id on has to
// cross; within a run no window is read twice.
func (r *purgeRun) walk(ctx context.Context) error {
	policy := pacer{maxRows: r.Batch, minPause: r.Pause}
	now := policy.start()
	w := walk{from: r.result.Oldest.ID}
	r.report()
	for more := true; more; {
		if err := r.refresh(ctx); err != nil {
			return err
		}
		before := r.conn.retries
		rows := now.rows
		l, err := r.lookAt(ctx, r.conn, r.texts, w.from, rows, &r.result.PurgePlan)
		if err != nil {
			return err
		}
		if l.shifted > 0 && !r.result.shifted() {
			// It may make the cutoff an earlier one, for this window too.
			r.result.doubt(r.Target, l.oddities)
			r.cutAt = time.Time{}
			continue
		}
		s := signs{}
		if l.due > 0 {
			if s.took, err = r.delete(ctx, w.from, l); err != nil {
				return err
			}
		}
		r.count(l)
		if s.news, err = r.lookAtLog(ctx); err != nil {
			return err
		}
		s.short = r.gauge.short
		s.contended = r.conn.retries > before
		now = policy.next(now, s)
		if more = w.step(r.texts, l, rows, r.result.Cutoff); more && l.due > 0 && !sleep(ctx, jittered(now.pause)) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// refresh reads the cutoff again now and then.
func (r *purgeRun) refresh(ctx context.Context) error {
	if !r.cutAt.IsZero() && time.Since(r.cutAt) < cutoffEvery {
		return nil
	}
	cut, err := r.cutoff(ctx, r.conn, r.texts)
	if err != nil {
		return err
	}
	r.cutAt = time.Now()
	r.result.hold(cut)
	return nil
}

// delete deletes what a look found due, and says how long it took.
func (r *purgeRun) delete(ctx context.Context, from int64, l look) (took time.Duration, err error) {
	var deleted int64
	op := fmt.Sprintf("delete %s of %s from id %d on", quantity.Of(l.due, "event"), r.result.Table, from)
	// READPAST passes by what is locked; whether it passes by the transaction id
	// that a writer holds under optimized locking, no page says. A writer that
	// hangs must not hold up all that is behind it.
	r.conn.keepWaiting = false
	defer func() { r.conn.keepWaiting = true }()
	err = r.conn.do(ctx, op, func(ctx context.Context, conn *sql.Conn) (err error) {
		begun := time.Now()
		deleted, err = r.texts.deleteIn(ctx, conn, l.first, l.last, r.result.Cutoff)
		took = time.Since(begun)
		return err
	})
	if sqlserver.ClassOf(err) == sqlserver.Contention {
		r.result.LockedWindows++
		r.Logger.Warn("someone holds events for long; they and those beside them are left to the next run", zap.Error(err))
		return took, nil
	}
	if err != nil {
		return took, err
	}
	r.result.Batches++
	r.result.Rows += deleted
	// Where someone held rows of the window, the rest stands for its share.
	r.freed += float64(deleted) * (float64(l.textBytes)/float64(l.due) + float64(r.texts.rowBytes))
	r.Logger.Debug("deleted a batch", zap.Int64("rows", deleted), zap.Int64("from_id", l.first), zap.Int64("to_id", l.last), zap.Duration("took", took))
	r.report()
	return took, nil
}

func (r *purgeRun) count(l look) {
	r.result.Windows++
	r.result.PendingRows += l.pending
	r.result.FailedRows += l.failed
	r.result.UnstampedRows += l.unstamped
	r.odd.add(l.oddities)
	r.result.doubt(r.Target, r.odd)
}

// lookAtLog says whether there is news.
func (r *purgeRun) lookAtLog(ctx context.Context) (news bool, err error) {
	now := time.Now()
	if !r.gauge.due(now) {
		return false, nil
	}
	var notes []string
	err = r.conn.do(ctx, "look at the log rate", func(ctx context.Context, conn *sql.Conn) (err error) {
		notes, err = r.gauge.look(ctx, conn, now)
		return err
	})
	for _, note := range notes {
		r.Logger.Info(note)
	}
	r.result.Notes = append(r.result.Notes, notes...)
	if err == nil && r.gauge.short {
		r.result.LogShortages++
	}
	return err == nil, err
}

func (r *purgeRun) report() {
	r.Progress(Progress{Stage: "purge", Done: r.result.Rows, Total: max(r.result.EstimatedRows, r.result.Rows), Unit: "rows"})
}

// end makes the result of what was done, and tells an end that was asked for
// from an error.
func (r *purgeRun) end(ctx context.Context, stop Stop, err error, took time.Duration) (PurgeResult, error) {
	var refusal *Refusal
	switch {
	case err == nil:
	case errors.Is(err, errMaxDuration):
		stop, err = StopMaxDuration, nil
	case errors.Is(err, errWindowClosed):
		stop, err = StopWindow, nil
	case errors.As(err, &refusal), errors.Is(err, ErrSetting):
		stop = StopRefused
	case ctx.Err() != nil:
		stop, err = StopInterrupted, fmt.Errorf("the purge of %s was interrupted: %w", r.Names, err)
	default:
		stop = StopFailed
	}
	r.result.Stopped = stop
	r.result.Retries = r.conn.retries
	r.result.BytesFreed = int64(r.freed)
	r.result.Seconds = took.Seconds()
	if took > 0 {
		r.result.RowsPerSecond = float64(r.result.Rows) / took.Seconds()
	}
	return r.result, err
}

// jittered is d by a fifth more or less, so that it keeps no step with others.
func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}
