package engine

import "azsqloutbox/sqlserver/emulator/internal/storage"

// exclusively locks a table for DDL, to the end of the transaction.
func (x *exec) exclusively(sc *statementScope, t *tableDef) error {
	return sc.tx.LockTable(x.ctx, t.store, storage.SchM)
}

// lockForDDL finds a table and locks it. While it waits another session may
// replace or drop the table, so it looks again.
func (x *exec) lockForDDL(sc *statementScope, find func() (*tableDef, error)) (*tableDef, error) {
	for {
		def, err := find()
		if err != nil {
			return nil, err
		}
		if err := x.exclusively(sc, def); err != nil {
			return nil, err
		}
		if now, err := find(); err != nil || now.store == def.store {
			return now, err
		}
	}
}
