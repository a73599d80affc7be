package engine

import (
	"errors"
	"strings"
	"time"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// rebuildOptions are the options of ALTER INDEX REBUILD and RESUME that say how
// it is done and not what comes of it.
type rebuildOptions struct {
	online, resumable, sortInTempdb bool
	maxDOP                          int64
	// maxDuration is in minutes, 0 for none.
	maxDuration int64
	lowPriority *lowPriority
}

// lowPriority is WAIT_AT_LOW_PRIORITY.
type lowPriority struct {
	minutes int64
	abort   string // None, Self or Blockers
}

func errUsage(option, statement string) error {
	return raise(153, 15, 1, "Invalid usage of the option %s in the %s statement.", option, statement)
}

// errTogether is 11438: two options that exclude each other.
func errTogether(option, state, other, otherState string) error {
	return raise(11438, 15, 1, "The %s option cannot be set to '%s' when the %s option is set to '%s'.", option, state, other, otherState)
}

// maxDurations in minutes: a resumable operation runs at most a week, a lock is
// waited for at low priority at most 71,582 minutes (sql-docs, "ALTER INDEX").
const (
	maxResumableMinutes   = 10080
	maxLowPriorityMinutes = 71582
)

// readRebuild reads the options of a REBUILD or RESUME.
func readRebuild(list []ast.IndexOption, statement string) (r rebuildOptions, err error) {
	for _, o := range list {
		switch o := o.(type) {
		case *ast.OnlineIndexOption:
			r.online = o.OptionState == "On"
			if o.LowPriorityLockWaitOption != nil {
				if r.lowPriority, err = readLowPriority(o.LowPriorityLockWaitOption.Options, statement); err != nil {
					return r, err
				}
			}
		case *ast.WaitAtLowPriorityOption:
			if statement == "ALTER INDEX REBUILD" {
				return r, errUsage("WAIT_AT_LOW_PRIORITY", statement)
			}
			if r.lowPriority, err = readLowPriority(o.Options, statement); err != nil {
				return r, err
			}
		case *ast.IndexStateOption:
			on := o.OptionState == "On"
			switch o.OptionKind {
			case "Resumable":
				r.resumable = on
			case "SortInTempDB":
				r.sortInTempdb = on
			}
		case *ast.MaxDurationOption:
			if r.maxDuration, err = wholeNumber(o.MaxDuration); err != nil {
				return r, err
			}
			if r.maxDuration < 1 || r.maxDuration > maxResumableMinutes {
				return r, errUsage("MAX_DURATION", statement)
			}
		case *ast.IndexExpressionOption:
			if o.OptionKind == "MaxDop" {
				if r.maxDOP, err = wholeNumber(o.Expression); err != nil {
					return r, err
				}
			}
		}
	}
	return r, nil
}

func readLowPriority(list []ast.LowPriorityLockWaitOption, statement string) (*lowPriority, error) {
	low := &lowPriority{minutes: -1}
	for _, o := range list {
		switch o := o.(type) {
		case *ast.LowPriorityLockWaitMaxDurationOption:
			n, err := wholeNumber(o.MaxDuration)
			if err != nil {
				return nil, err
			}
			if n < 0 || n > maxLowPriorityMinutes {
				return nil, errUsage("MAX_DURATION", statement)
			}
			low.minutes = n
		case *ast.LowPriorityLockWaitAbortAfterWaitOption:
			low.abort = o.AbortAfterWait
		}
	}
	if low.minutes < 0 || low.abort == "" {
		return nil, errSyntax("WAIT_AT_LOW_PRIORITY") // both are required
	}
	return low, nil
}

// check refuses what does not go together (sql-docs, "ALTER INDEX" and
// "Guidelines for online index operations").
func (r rebuildOptions) check(x *exec, st *ast.AlterIndexStatement) error {
	switch {
	case r.resumable && !r.online:
		return errTogether("RESUMABLE", "ON", "ONLINE", "OFF")
	case r.maxDuration > 0 && !r.resumable:
		return errUsage("MAX_DURATION", "ALTER INDEX REBUILD")
	case r.resumable && r.sortInTempdb:
		return errTogether("SORT_IN_TEMPDB", "ON", "RESUMABLE", "ON")
	case r.resumable && st.All:
		return notModelled("the error of ALTER INDEX ALL with RESUMABLE = ON, which SQL Server does not do")
	case r.resumable && x.s.tran != nil:
		return raise(574, 16, 0, "ALTER INDEX statement with RESUMABLE option cannot be used inside a user transaction.")
	case r.online && strings.HasPrefix(st.OnName.BaseIdentifier.Value, "#"):
		return notModelled("the error of ONLINE = ON for a local temporary table, which SQL Server does not do")
	}
	return nil
}

// lock waits for Sch-M on the index's table, first at low priority where that
// is asked for. LOCK_TIMEOUT bounds the wait of normal priority only.
func (r rebuildOptions) lock(x *exec, sc *statementScope, t *tableDef) error {
	if r.lowPriority == nil {
		return x.exclusively(sc, t)
	}
	err := sc.tx.LockTableLow(x.ctx, t.store, storage.SchM, time.Duration(r.lowPriority.minutes)*time.Minute)
	if !errors.Is(err, storage.ErrLockTimeout) {
		return err
	}
	switch r.lowPriority.abort {
	case "Self":
		return err
	case "Blockers":
		return notModelled("ABORT_AFTER_WAIT = BLOCKERS where there are blockers to kill")
	}
	return x.exclusively(sc, t)
}
