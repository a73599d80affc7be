package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"go.uber.org/zap"

	"azsqloutbox/sqlserver"
)

const (
	// aftermath is for finding out what a stopped rebuild has left. With the two
	// seconds that the connection has to answer the stop, it is well below the 30
	// that a job has from SIGTERM to SIGKILL (azure-container-apps #1669).
	aftermath = 10 * time.Second
	// lockTries is how often a statement that waits LockTimeout for the table is
	// sent. Those who queued behind it go in the pause between.
	lockTries = 5
)

// Run does what Plan says: first what was paused, then the options, then the
// rebuilds, those that free most first. One at a time on a table. It stops when
// ctx ends: a resumable rebuild is left PAUSED and goes on with the next Run, any
// other is rolled back by the server. The report says what became of each index,
// with an error too.
func (r Rebuild) Run(ctx context.Context) (RebuildReport, error) {
	r = r.withDefaults()
	if err := r.Validate(); err != nil {
		return RebuildReport{}, fmt.Errorf("rebuild: %w", err)
	}
	d := sqlserver.NewDedicated(r.DB, r.LockTimeout, func(ctx context.Context, conn *sql.Conn) error {
		return r.takeAppLock(ctx, conn, "rebuild")
	})
	defer d.Close()
	report, err := r.plan(ctx, d)
	if err != nil {
		return report, err
	}
	report.Executed = true
	run := rebuildRun{Rebuild: r, watch: d, begun: time.Now()}
	return report, run.all(ctx, report.Indexes)
}

// freesPages is 0 where it is not known: such an index comes last.
func (i *RebuildIndex) freesPages() int64 {
	if i.FreesBytes == nil {
		return 0
	}
	return *i.FreesBytes / pageBytes
}

type rebuildRun struct {
	Rebuild
	// watch is the connection that holds the application lock, sends what is
	// short, and looks how far the rebuild is.
	watch *sqlserver.Dedicated
	begun time.Time
}

func (r rebuildRun) all(ctx context.Context, indexes []RebuildIndex) error {
	order := make([]*RebuildIndex, 0, len(indexes))
	for i := range indexes {
		if len(indexes[i].SQL) > 0 {
			order = append(order, &indexes[i])
		}
	}
	rank := map[RebuildAction]int{RebuildResume: 0, RebuildSet: 1, RebuildWhole: 2}
	slices.SortStableFunc(order, func(a, b *RebuildIndex) int {
		if rank[a.Action] != rank[b.Action] {
			return rank[a.Action] - rank[b.Action]
		}
		return int(b.freesPages() - a.freesPages())
	})
	for at, i := range order {
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("rebuild of %s was stopped before %s: %w", r.Names, i.Name, context.Cause(ctx))
		case i.Action != RebuildSet && time.Since(r.begun) >= r.MaxDuration:
			i.Outcome = RebuildSkipped
			continue
		}
		r.shorten(i)
		begun := time.Now()
		err := r.one(ctx, i)
		i.Seconds = time.Since(begun).Seconds()
		if err != nil {
			return err
		}
		if i.Outcome == RebuildPaused { // other changes of the table are refused now (error 10637)
			for _, later := range order[at+1:] {
				later.Outcome = RebuildSkipped
			}
			return nil
		}
	}
	return nil
}

// shorten gives a resumable rebuild what is left of MaxDuration, in whole minutes.
func (r rebuildRun) shorten(i *RebuildIndex) {
	left := r.Rebuild
	left.MaxDuration = max(time.Minute, (r.MaxDuration - time.Since(r.begun) + time.Minute - 1).Truncate(time.Minute))
	if i.Resumable && left.MaxDuration < r.MaxDuration {
		left.decide(i, !r.Offline)
	}
}

// one sends the statements of an index.
func (r rebuildRun) one(ctx context.Context, i *RebuildIndex) error {
	for at, text := range i.SQL {
		if at < len(i.SQL)-1 || i.Action == RebuildSet {
			if err := r.short(ctx, "set OPTIMIZE_FOR_SEQUENTIAL_KEY of "+i.Name, text); err != nil {
				i.Outcome = RebuildFailed
				return err
			}
			r.Logger.Info("set OPTIMIZE_FOR_SEQUENTIAL_KEY", zap.String("index", i.Name))
			continue
		}
		if err := r.long(ctx, i, text); err != nil || i.Outcome != "" {
			return err
		}
	}
	i.Outcome = RebuildDone
	if i.Action != RebuildSet {
		r.measure(ctx, i)
	}
	return nil
}

// short sends a statement that takes no time once it has its lock.
func (r rebuildRun) short(ctx context.Context, op, text string) error {
	return r.locked(ctx, func() error {
		return r.watch.Use(ctx, op+" of "+r.Names.String(), func(conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, text)
			return err
		})
	})
}

// locked tries again what did not get its lock within LockTimeout.
func (r rebuildRun) locked(ctx context.Context, fn func() error) error {
	for try := 1; ; try++ {
		err := fn()
		if err == nil || try == lockTries || sqlserver.ClassOf(err) != sqlserver.Contention {
			return err
		}
		r.Logger.Info("the table is in use, trying again", zap.Int("try", try), zap.Error(err))
		select {
		case <-ctx.Done():
			return err
		case <-time.After(r.Poll):
		}
	}
}

// long rebuilds or resumes. Its outcome stays empty where it ran to its end.
func (r rebuildRun) long(ctx context.Context, i *RebuildIndex, text string) error {
	r.Logger.Info("rebuilding", zap.String("index", i.Name), zap.String("action", string(i.Action)), zap.Bool("resumable", i.Resumable), zap.String("sql", text))
	op := fmt.Sprintf("rebuild %s of %s", i.Name, r.Names)
	begun := time.Now()
	send := func() error { return r.send(ctx, i, op, text) }
	var err error
	if r.Offline && i.Action == RebuildWhole {
		err = r.locked(ctx, send)
	} else {
		err = send()
	}
	if err == nil {
		r.Logger.Info("rebuilt", zap.String("index", i.Name), zap.Duration("took", time.Since(begun)))
		return nil
	}
	return r.ended(ctx, i, op, err, time.Since(begun))
}

// send runs the statement on a connection of its own and reports how far it is
// meanwhile.
func (r rebuildRun) send(ctx context.Context, i *RebuildIndex, op, text string) error {
	// LOCK_TIMEOUT must not end a wait that lets others pass.
	wait := r.LockTimeout
	if !r.Offline {
		wait += r.LowPriorityWait
	}
	work := sqlserver.NewDedicated(r.DB, wait, nil)
	defer work.Close()
	session, done := make(chan int, 1), make(chan error, 1)
	go func() {
		done <- work.Use(ctx, op, func(conn *sql.Conn) error {
			var id int
			if err := conn.QueryRowContext(ctx, sessionIDSQL).Scan(&id); err != nil {
				return fmt.Errorf("ask for the session's id: %w", err)
			}
			session <- id
			_, err := conn.ExecContext(ctx, text)
			return err
		})
	}()
	tick := time.NewTicker(r.Poll)
	defer tick.Stop()
	id := 0
	for {
		select {
		case err := <-done:
			return err
		case id = <-session:
		case <-tick.C:
			if ctx.Err() == nil {
				r.report(ctx, i, id)
			}
		}
	}
}

// ended finds out what is left of a rebuild that did not come to its end: the
// catalog knows, whatever the error says.
func (r rebuildRun) ended(ctx context.Context, i *RebuildIndex, op string, failed error, took time.Duration) error {
	i.Outcome = RebuildFailed
	if ctx.Err() != nil {
		i.Outcome = RebuildStopped
	}
	if !i.Resumable {
		if ctx.Err() != nil {
			return fmt.Errorf("%s was stopped: the server rolls it back, the index is as before: %w", op, failed)
		}
		return fmt.Errorf("%s: nothing was changed: %w%s", op, failed, r.hint(failed))
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), aftermath)
	defer cancel()
	left, err := r.leftOf(after, i)
	switch {
	case err != nil:
		return fmt.Errorf("%s did not come to its end, and what is left of it could not be read; the next run goes on with it if it is paused: %w", op, errors.Join(failed, err))
	case left == nil:
		return fmt.Errorf("%s: nothing was changed: %w%s", op, failed, r.hint(failed))
	}
	i.Outcome, i.Operation = RebuildPaused, left
	r.Logger.Info("paused", zap.String("index", i.Name), zap.Float64("percent", left.PercentComplete))
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s was stopped and is paused at %.0f %%: the next run goes on, --abort gives it up: %w", op, left.PercentComplete, context.Cause(ctx))
	case took >= r.MaxDuration || timeIsOver(failed):
		return nil
	}
	return fmt.Errorf("%s is paused at %.0f %%: the next run goes on, --abort gives it up: %w%s", op, left.PercentComplete, failed, r.hint(failed))
}

// timeIsOver says whether the server has ended a statement at its MAX_DURATION:
// error 3643, and perhaps 596 behind it, as the session is ended too.
func timeIsOver(err error) bool {
	var answer mssql.Error
	if !errors.As(err, &answer) {
		return false
	}
	return answer.Number == 3643 || slices.ContainsFunc(answer.All, func(e mssql.Error) bool { return e.Number == 3643 })
}

// hint adds what the class of the error means here.
func (r rebuildRun) hint(err error) string {
	if sqlserver.ClassOf(err) != sqlserver.Contention {
		return ""
	}
	return fmt.Sprintf("; it did not get the table within %s: choose a quieter time, look for open transactions (sys.dm_tran_session_transactions), or wait longer with --low-priority-wait", r.LockTimeout+r.LowPriorityWait)
}

// leftOf is the operation on an index, nil where there is none. One that the
// server has not stopped yet is paused.
func (r rebuildRun) leftOf(ctx context.Context, i *RebuildIndex) (left *ResumableOperation, err error) {
	read := func() error {
		return r.watch.Use(ctx, "look what is left of the rebuild of "+i.Name, func(conn *sql.Conn) error {
			operations, err := readOperations(ctx, conn, r.Events())
			left = nil
			for _, o := range operations {
				if o.indexID == i.state.id {
					left = &o.ResumableOperation
				}
			}
			return err
		})
	}
	if err := read(); err != nil || left == nil || left.State != "RUNNING" {
		return left, err
	}
	if err := r.short(ctx, "pause the rebuild of "+i.Name, r.render(pauseRebuildSQL, i.Name, "")); err != nil {
		return left, err
	}
	return left, read()
}

// measure says what the rebuild has freed, where that can be seen.
func (r rebuildRun) measure(ctx context.Context, i *RebuildIndex) {
	if !i.state.measured {
		return
	}
	err := r.watch.Use(ctx, "measure "+i.Name, func(conn *sql.Conn) error {
		sizes, err := readSizes(ctx, conn, i.state.object, sql.NullInt64{Int64: int64(i.state.id), Valid: true})
		if s, ok := sizes[i.state.id]; ok && s.seen {
			bytes := (s.pages + s.otherPages) * pageBytes
			i.BytesAfter, i.DensityAfter = &bytes, pointer(s.density)
		}
		return err
	})
	if err != nil {
		r.Logger.Debug("the index could not be measured", zap.String("index", i.Name), zap.Error(err))
	}
}

// Abort gives up the paused rebuilds of the table, or of Index: what they have
// built is dropped, the indexes stay as they were. Without execute it only says
// which.
func (r Rebuild) Abort(ctx context.Context, execute bool) (RebuildReport, error) {
	r = r.withDefaults()
	if err := r.Validate(); err != nil {
		return RebuildReport{}, fmt.Errorf("rebuild: %w", err)
	}
	d := sqlserver.NewDedicated(r.DB, r.LockTimeout, func(ctx context.Context, conn *sql.Conn) error {
		if !execute {
			return nil
		}
		return r.takeAppLock(ctx, conn, "rebuild")
	})
	defer d.Close()
	report, err := r.plan(ctx, d)
	var refusal *Refusal
	if err != nil && !errors.As(err, &refusal) {
		return report, err
	}
	report.Executed, report.Warnings = execute, []string{}
	report.FreesBytes, report.LogBytes, report.Log.LeastSeconds = new(int64), new(int64), nil
	report.Indexes = slices.DeleteFunc(report.Indexes, func(i RebuildIndex) bool { return i.Operation == nil })
	run := rebuildRun{Rebuild: r, watch: d, begun: time.Now()}
	for at := range report.Indexes {
		i := &report.Indexes[at]
		i.Action, i.Reason, i.FreesBytes, i.LogBytes = RebuildAbort, fmt.Sprintf("%s at %.0f %%", i.Operation.State, i.Operation.PercentComplete), new(int64), new(int64)
		i.SQL = []string{r.render(abortRebuildSQL, i.Name, "")}
		if !execute {
			continue
		}
		if err := run.short(ctx, "abort the rebuild of "+i.Name, i.SQL[0]); err != nil {
			i.Outcome = RebuildFailed
			return report, err
		}
		i.Outcome = RebuildDone
		r.Logger.Info("aborted", zap.String("index", i.Name))
	}
	return report, nil
}
