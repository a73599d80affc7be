package emulator

import (
	"context"
	"fmt"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// ResultSet is the rows of one statement that Exec ran. Values are nil, bool,
// int64, float64, string (text, decimal, money), []byte (binary, and a
// uniqueidentifier in the order of its text) and time.Time (UTC; a time of
// day on 0001-01-01).
type ResultSet struct {
	Columns []string
	Rows    [][]any
}

// Exec runs a batch in a session of its own, past the network, the login, the
// statement log and the faults, and returns its result sets. The first error
// that the batch reports is returned as *Error.
func (s *Server) Exec(ctx context.Context, batch string) ([]ResultSet, error) {
	session, err := s.engine.Login(ctx, tds.Login{Database: s.config.Database, App: "emulator", ODBC: true})
	if err != nil {
		return nil, fmt.Errorf("emulator: open a session: %w", err)
	}
	defer session.Close()
	c := &collector{}
	if err := session.Batch(ctx, batch, c); err != nil {
		return c.sets, fmt.Errorf("emulator: run the batch: %w", err)
	}
	if c.failed != nil {
		return c.sets, c.failed
	}
	return c.sets, ctx.Err()
}

// collector is a ResultWriter that keeps what it is told.
type collector struct {
	discard
	types  []sqltype.Type
	sets   []ResultSet
	failed error
}

func (c *collector) Columns(cols []tds.Column) error {
	set := ResultSet{}
	c.types = c.types[:0]
	for _, col := range cols {
		set.Columns = append(set.Columns, col.Name)
		c.types = append(c.types, col.Type)
	}
	c.sets = append(c.sets, set)
	return nil
}

func (c *collector) Row(values []sqltype.Value) error {
	row := make([]any, len(values))
	for i := range values {
		row[i] = goValue(&values[i])
	}
	set := &c.sets[len(c.sets)-1]
	set.Rows = append(set.Rows, row)
	return nil
}

func (c *collector) Error(e *tds.Error) error {
	if c.failed == nil {
		c.failed = &Error{Number: e.Number, State: e.State, Class: e.Class, Message: e.Message}
	}
	return nil
}

const ticksPerDay = 24 * 60 * 60 * 10_000_000

// goValue is the Go value of an SQL value.
func goValue(v *sqltype.Value) any {
	switch v.Kind {
	case sqltype.Null:
		return nil
	case sqltype.Bit:
		return v.N != 0
	case sqltype.TinyInt, sqltype.SmallInt, sqltype.Int, sqltype.BigInt:
		return v.N
	case sqltype.Real, sqltype.Float:
		return v.Float()
	case sqltype.Decimal:
		return v.Decimal().StringFixed(int32(v.Scale))
	case sqltype.Money:
		return v.Decimal().StringFixed(4)
	case sqltype.Date:
		return timeOf(v.N * ticksPerDay)
	case sqltype.Time, sqltype.DateTime, sqltype.SmallDateTime, sqltype.DateTime2, sqltype.DateTimeOffset:
		return timeOf(v.N)
	case sqltype.Binary, sqltype.VarBinary, sqltype.UniqueIdentifier:
		return []byte(v.S)
	default:
		return v.S
	}
}

func timeOf(ticks int64) time.Time {
	const ticksPerSecond = 10_000_000
	start := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	return time.Unix(start+ticks/ticksPerSecond, ticks%ticksPerSecond*100).UTC()
}
