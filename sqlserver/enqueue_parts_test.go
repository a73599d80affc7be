package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
)

// partial is a driver that says of each INSERT in turn how many rows it wrote.
type partial struct {
	silent
	wrote []int64
}

func (d *partial) Connect(context.Context) (driver.Conn, error) {
	return &partialConn{silentConn{&d.silent}, d}, nil
}

type partialConn struct {
	silentConn
	d *partial
}

func (c *partialConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c, nil }
func (c *partialConn) Commit() error                                                { return nil }
func (c *partialConn) Rollback() error                                              { return nil }
func (c *partialConn) CheckNamedValue(*driver.NamedValue) error                     { return nil }

func (c *partialConn) ExecContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Result, error) {
	for _, a := range args {
		if out, ok := a.Value.(sql.Out); ok {
			*out.Dest.(*int64), c.d.wrote = c.d.wrote[0], c.d.wrote[1:]
		}
	}
	return driver.RowsAffected(0), nil
}

// Only where nothing at all is written may Enqueue begin again: after the first part
// it would write that twice.
func TestOnlyTheFirstPartBeginsAgain(t *testing.T) {
	rows := make([]newRow, enqueueRows+1)
	for name, c := range map[string]struct {
		wrote []int64
		again bool
	}{
		"the first": {[]int64{0}, true},
		"a later":   {[]int64{enqueueRows, 0}, false},
	} {
		t.Run(name, func(t *testing.T) {
			db := sql.OpenDB(&partial{wrote: c.wrote})
			defer db.Close()
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			err = new(Writer).write(t.Context(), tx, shapes["default"], rows, false)
			if err == nil || errors.Is(err, errColumnChanged) != c.again {
				t.Errorf("%s part wrote nothing: %v", name, err)
			}
		})
	}
}
