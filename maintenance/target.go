package maintenance

import (
	"cmp"
	"database/sql"
	"errors"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/sqlserver"
)

// Target is the outbox that a task works on.
type Target struct {
	// DB is from sqlserver.Open, with LongStatements for rebuild and migration.
	DB *sql.DB
	sqlserver.Names
	// LockTimeout is what a statement waits for a lock; default 2 s, so that
	// nobody queues behind maintenance for longer.
	LockTimeout time.Duration
	// Logger gets each step that changes something; default none.
	Logger *zap.Logger
	// Progress, where it is not nil, is called between the steps of a run, from
	// the task's goroutine.
	Progress func(Progress)
}

func (t Target) withDefaults() Target {
	t.LockTimeout = cmp.Or(t.LockTimeout, 2*time.Second)
	t.Logger = cmp.Or(t.Logger, zap.NewNop())
	if t.Progress == nil {
		t.Progress = func(Progress) {}
	}
	return t
}

// Validate names the field that cannot be.
func (t Target) Validate() error {
	if t.DB == nil {
		return errors.New("field DB is nil")
	}
	return t.Names.Validate()
}

// Progress is how far a task has come.
type Progress struct {
	// Stage is what is being done: "delete", "check", "rebuild IX_outbox_claim".
	Stage string
	// Done of Total, in Unit ("rows", "pages"). Total is 0 where nobody knows;
	// it may be an estimate that Done overtakes.
	Done, Total int64
	Unit        string
}

// WithDefaults is the target as the tasks of this package use it, for those of
// others.
func (t Target) WithDefaults() Target { return t.withDefaults() }
