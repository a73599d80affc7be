package engine

import "azsqloutbox/sqlserver/emulator/internal/storage"

// exclusively locks a table for DDL, to the end of the transaction.
func (x *exec) exclusively(sc *statementScope, t *tableDef) error {
	return sc.tx.LockTable(x.ctx, t.store, storage.SchM)
}

// lockForDDL finds a table and locks it for a change.
func (x *exec) lockForDDL(sc *statementScope, find func() (*tableDef, error)) (*tableDef, error) {
	return x.lockTable(sc, find, func(t *tableDef) error { return x.exclusively(sc, t) })
}

// lockTable finds a table and locks it in a way. While it waits another session
// may replace or drop the table, so it looks again.
func (x *exec) lockTable(sc *statementScope, find func() (*tableDef, error), lock func(*tableDef) error) (*tableDef, error) {
	for {
		def, err := find()
		if err != nil {
			return nil, err
		}
		if err := x.s.engine.resumables.notPaused(def); err != nil {
			return nil, err
		}
		if err := lock(def); err != nil {
			return nil, err
		}
		if now, err := find(); err != nil || now.store == def.store {
			return now, err
		}
	}
}
