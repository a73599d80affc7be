package engine

import (
	"strings"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// settings are a session's SET options.
type settings struct {
	planOptions
	noCount     bool
	xactAbort   bool
	arithIgnore bool
	cursorClose bool
	fmtOnly     bool

	isolation   storage.Isolation
	lockTimeout time.Duration
	rowCount    int64
	textSize    int64
}

// planOptions are those that a plan is made for.
type planOptions struct {
	quotedIdentifier  bool
	ansiNulls         bool
	ansiPadding       bool
	ansiWarnings      bool
	ansiNullDefault   bool
	concatNull        bool
	arithAbort        bool
	numericRoundAbort bool
}

// newSettings is what a login starts with. Drivers that set fODBC in LOGIN7
// get the ANSI options; DB-Library clients do not (sql-docs, "SET
// ANSI_DEFAULTS").
func newSettings(odbc bool) settings {
	return settings{
		planOptions: planOptions{
			quotedIdentifier: odbc, ansiNulls: odbc, ansiPadding: odbc, ansiWarnings: odbc,
			ansiNullDefault: odbc, concatNull: odbc,
		},
		lockTimeout: storage.Forever, textSize: -1,
	}
}

// wrongForFilteredIndex names the options that stand in the way of a filtered
// index, in the order of SQL Server's message. ARITHABORT does not count:
// ANSI_WARNINGS implies it at today's compatibility levels.
func (s *planOptions) wrongForFilteredIndex() string {
	var wrong []string
	for _, o := range []struct {
		name string
		ok   bool
	}{
		{"CONCAT_NULL_YIELDS_NULL", s.concatNull},
		{"ANSI_NULLS", s.ansiNulls},
		{"ANSI_PADDING", s.ansiPadding},
		{"ANSI_WARNINGS", s.ansiWarnings},
		{"QUOTED_IDENTIFIER", s.quotedIdentifier},
		{"NUMERIC_ROUNDABORT", !s.numericRoundAbort},
	} {
		if !o.ok {
			wrong = append(wrong, o.name)
		}
	}
	return strings.Join(wrong, ", ")
}

// option is where a SET … ON/OFF option lives; nil for those that change
// nothing that the emulator shows.
func (s *settings) option(name string) (target *bool, known bool) {
	switch name {
	case "NoCount":
		return &s.noCount, true
	case "XactAbort":
		return &s.xactAbort, true
	case "QuotedIdentifier":
		return &s.quotedIdentifier, true
	case "AnsiNulls":
		return &s.ansiNulls, true
	case "AnsiPadding":
		return &s.ansiPadding, true
	case "AnsiWarnings":
		return &s.ansiWarnings, true
	case "AnsiNullDfltOn":
		return &s.ansiNullDefault, true
	case "ConcatNullYieldsNull":
		return &s.concatNull, true
	case "ArithAbort":
		return &s.arithAbort, true
	case "NumericRoundAbort":
		return &s.numericRoundAbort, true
	case "FmtOnly":
		return &s.fmtOnly, true
	case "ArithIgnore":
		return &s.arithIgnore, true
	case "CursorCloseOnCommit":
		return &s.cursorClose, true
	case "NoBrowsetable", "ForcePlan", "Time", "IO":
		return nil, true
	}
	return nil, false
}

// setAnsiDefaults is SET ANSI_DEFAULTS, less IMPLICIT_TRANSACTIONS, which the
// emulator does not model.
func (s *settings) setAnsiDefaults(on bool) {
	s.quotedIdentifier, s.ansiNulls, s.ansiPadding, s.ansiWarnings, s.ansiNullDefault = on, on, on, on, on
}

var isolationLevels = map[string]storage.Isolation{
	"ReadUncommitted": storage.ReadUncommitted,
	"ReadCommitted":   storage.ReadCommitted,
	"RepeatableRead":  storage.RepeatableRead,
	"Serializable":    storage.Serializable,
	"Snapshot":        storage.Snapshot,
}
