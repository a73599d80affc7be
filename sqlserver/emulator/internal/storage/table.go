package storage

import (
	"fmt"
	"sync"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// Table is a heap or a clustered table with its indexes.
type Table struct {
	db   *DB
	lock resource
	// base is the clustered index or the heap, indexes[0].
	base *Index

	// mu guards the trees, the records and everything below. Nobody holds it
	// while waiting for a lock.
	mu      sync.RWMutex
	columns int
	nextRow RowID
	// indexes are by slot; a dropped one leaves nil. Who holds any lock on the
	// table may read it, because only Sch-M allows to change it.
	indexes []*Index
}

// CreateTable makes a table whose rows have that many columns. clustered nil
// makes a heap. It is not transactional: the table exists for whoever holds
// the pointer.
func (db *DB) CreateTable(columns int, clustered *IndexSpec) *Table {
	t := &Table{db: db, columns: columns}
	spec := IndexSpec{}
	if clustered != nil {
		spec = *clustered
	}
	t.base = newIndex(t, 0, spec, nil)
	t.indexes = []*Index{t.base}
	return t
}

// Clustered is nil for a heap.
func (t *Table) Clustered() *Index {
	if t.base.heap() {
		return nil
	}
	return t.base
}

// Indexes are the nonclustered indexes in the order of their creation.
func (t *Table) Indexes() []*Index {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var all []*Index
	for _, ix := range t.indexes[1:] {
		if ix != nil {
			all = append(all, ix)
		}
	}
	return all
}

// Rows counts the rows, uncommitted ones included. It is cheap.
func (t *Table) Rows() int64 { return t.base.Rows() }

// Ghosts is that of the clustered index or heap.
func (t *Table) Ghosts() int64 { return t.base.Ghosts() }

func (t *Table) lockable() *resource { return &t.lock }

func (t *Table) describe(info *LockInfo) { info.Resource, info.Table = ObjectLock, t }

// checkWidth panics on rows of another width: the engine made a mistake.
func (t *Table) checkWidth(values []sqltype.Value) {
	if len(values) != t.columns {
		panic(fmt.Sprintf("storage: a row of %d values for a table of %d columns", len(values), t.columns))
	}
}
