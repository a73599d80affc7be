package emulator

import (
	"errors"
	"fmt"

	"azsqloutbox/sqlserver/emulator/internal/engine"
)

// FakeView is an answer that a test makes up for a system view, or for a function
// of sys that gives rows, in place of the engine's own: for what an engine in
// memory cannot have and a tool must be tested against, such as LOG_RATE_GOVERNOR
// waits, page density, rows of Query Store, or a permission that is missing.
// Nothing is ever made up without one.
type FakeView struct {
	// Name of the view or function, "sys.dm_db_wait_stats". It has to exist on the
	// server's Edition. Statements that read it in any session get the fake.
	Name string
	// Columns that Rows give values for. A column that the engine knows is its
	// name alone; one that it does not know is "name TYPE": take both from the
	// view's page of Microsoft's documentation. Columns that are left out are NULL.
	Columns []string
	// Rows are all that the view has: the real ones are hidden. Values are nil,
	// bool, int, int32, int64, float64, string, []byte and time.Time (as UTC).
	// Of a function's rows those are given where a column that is named like a
	// parameter (database_id, object_id, index_id, partition_number) has the
	// argument's value.
	Rows [][]any
	// Denied answers as to somebody without the permission: error 262 or 300,
	// which names what is missing, and then 297.
	Denied bool
	// Error is reported instead of rows.
	Error *Error
}

// Faked is a FakeView that is in place.
type Faked struct{ undo func() }

// Remove brings the engine's own answer back.
func (f *Faked) Remove() { f.undo() }

// FakeView puts a made-up answer in place until it is removed or another one of
// the same name replaces it. It outlives Restart. An error is a mistake in v.
func (s *Server) FakeView(v FakeView) (*Faked, error) {
	if v.Denied && v.Error != nil || (v.Denied || v.Error != nil) && len(v.Rows) > 0 {
		return nil, errors.New("emulator: a FakeView has Rows, Denied or Error, one of them")
	}
	f := engine.FakeView{Name: v.Name, Columns: v.Columns, Rows: v.Rows, Denied: v.Denied}
	if v.Error != nil {
		f.Error = v.Error.wire()
	}
	undo, err := s.engine.FakeView(f)
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	return &Faked{undo}, nil
}
