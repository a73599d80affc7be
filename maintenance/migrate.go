package maintenance

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"azsqloutbox/sqlserver"
)

// Migration turns an NVARCHAR column of the outbox into VARCHAR: half the bytes
// of a row and half of its log, for text that a code page or UTF-8 can hold.
// What it cannot hold would become ? or a look-alike without any error, so Run
// begins with the pre-check of Check and goes on only when nothing is lost.
// The methods may not be called at the same time.
type Migration struct {
	Target
	// Column is payload (the default), headers, aggregate_type, aggregate_id or
	// last_error. event_type stays what it is: it is the key of the claim index,
	// and running workers bind it by the type they found at their start.
	Column string
	// Length is n of VARCHAR(n), 1 to 8000 bytes, or MAX; default the column's own
	// number, which counts characters.
	Length string
	// Collation is the column's from then on, database_default for the database's;
	// default the column's own. A …_UTF8 one loses nothing.
	Collation string
	// Guard covers what is written between the check and the change; default
	// GuardTrigger.
	Guard Guard
	// FromID begins Check at an id, to go on with one that was interrupted. Run
	// refuses it: it needs the whole.
	FromID *int64
	// ShowPayload puts the text of the samples into the report.
	ShowPayload bool
	// FinalLockWait is how long the ALTER and the builds of indexes may wait for
	// their locks, with everybody behind them; default 1 minute. It is longer
	// than LockTimeout, because the lock that ends an online change is asked for
	// after hours of work that would be lost.
	FinalLockWait time.Duration
}

// Guard is how rows written during a migration are kept from losing text.
type Guard string

const (
	// GuardTrigger is a trigger that refuses text which would be lost, from before
	// the check until the end. Writers and workers go on where the edition can
	// change a column online.
	GuardTrigger Guard = "trigger"
	// GuardLock holds the whole table for one transaction of a second check, the
	// change and the indexes.
	GuardLock Guard = "lock"
)

// migratable are the columns that may be changed under running workers.
var migratable = []string{"payload", "headers", "aggregate_type", "aggregate_id", "last_error"}

const (
	defaultFinalLockWait = time.Minute
	longestVarchar       = 8000 // bytes (sql-docs, char-and-varchar-transact-sql.md)
	// losesNothing is the collation that the project's own table has.
	losesNothing    = "Latin1_General_100_BIN2_UTF8"
	databaseDefault = "database_default"
)

var collationName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

func (m Migration) withDefaults() Migration {
	m.Target = m.Target.withDefaults()
	m.Column = strings.ToLower(cmp.Or(m.Column, "payload"))
	m.Length = strings.ToUpper(m.Length)
	m.Guard = cmp.Or(m.Guard, GuardTrigger)
	m.FinalLockWait = cmp.Or(m.FinalLockWait, defaultFinalLockWait)
	return m
}

// Validate names the field that cannot be.
func (m Migration) Validate() error {
	m = m.withDefaults()
	if err := m.Target.Validate(); err != nil {
		return err
	}
	switch {
	case m.Column == "event_type":
		return errors.New("field Column is event_type, the key of the claim index: it is not changed under running workers")
	case !slices.Contains(migratable, m.Column):
		return fmt.Errorf("field Column is %q, must be one of %s", m.Column, strings.Join(migratable, ", "))
	case m.Guard != GuardTrigger && m.Guard != GuardLock:
		return fmt.Errorf("field Guard is %q, must be %s or %s", m.Guard, GuardTrigger, GuardLock)
	case m.Collation != "" && !collationName.MatchString(m.Collation):
		return fmt.Errorf("field Collation is %q, which is no name of one", m.Collation)
	case m.FinalLockWait < 0:
		return fmt.Errorf("field FinalLockWait is %s, must not be negative", m.FinalLockWait)
	}
	if m.Length != "" && m.Length != "MAX" {
		if n, err := strconv.Atoi(m.Length); err != nil || n < 1 || n > longestVarchar {
			return fmt.Errorf("field Length is %q, must be 1 to %d (bytes) or MAX", m.Length, longestVarchar)
		}
	}
	return nil
}

// session is a connection for the whole of a migration. Sessions that change
// something hold the application lock.
func (m Migration) session(exclusive bool) *sqlserver.Dedicated {
	if !exclusive {
		return sqlserver.NewDedicated(m.DB, m.LockTimeout, nil)
	}
	// A connection that was dropped holds its lock until the server has noticed,
	// and, in the middle of a change, until it has rolled that back.
	patience := m.LockTimeout
	return sqlserver.NewDedicated(m.DB, m.LockTimeout, func(ctx context.Context, conn *sql.Conn) error {
		for deadline := time.Now().Add(patience); ; {
			err := m.takeAppLock(ctx, conn, "migrate-varchar")
			var taken *Refusal
			if !errors.As(err, &taken) {
				patience = putBackPatience
				return err
			}
			if time.Now().After(deadline) {
				return err
			}
			select {
			case <-time.After(lockPoll):
			case <-ctx.Done():
				return err
			}
		}
	})
}

// lockPoll is the pause between two looks at a lock that another session has.
const lockPoll = 100 * time.Millisecond

// op says what is tried on what, for errors.
func (m Migration) op(what string) string { return what + " of " + m.Names.String() + "." + m.Column }
