package storage

import (
	"sync/atomic"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// RowID identifies a row of a table for as long as it lives.
type RowID uint64

// RowRef is a RowID together with the way to the row.
type RowRef struct {
	ID RowID
	// rec may be nil: the row is looked for then.
	rec *record
}

// Row is a row as a scan saw it. Values are never changed in place: whoever
// keeps them keeps that version.
type Row struct {
	RowRef
	Values []sqltype.Value
}

// record is a row through time: its versions, newest first, and the index
// entries of the newest one. The table's mutex guards it; whoever holds the X
// lock on the row's base entry, or Sch-M on the table, may read head and slots
// without it, since nobody else may write them.
type record struct {
	id   RowID
	head *version
	// slots are the entries of head by index slot, nil where an index does not
	// hold the row. Slot 0 is the base entry, nil once the row is deleted.
	slots []*entry
	// ghosts are entries that older versions left in the trees.
	ghosts int
}

// version is one state of a row; values nil says that the row is deleted.
type version struct {
	values []sqltype.Value
	by     *txnStatus
	prev   *version
}

// txnStatus is what versions and ghosts remember of the transaction that made
// them: 0 while it runs, then the commit clock. All of a transaction becomes
// visible by one store.
type txnStatus struct{ committed atomic.Uint64 }

// settled says that what by made is not another transaction's open change.
func (own *txnStatus) settled(by *txnStatus) bool {
	return by == own || by.committed.Load() != 0
}

func (r *record) slot(i int) *entry {
	if i < len(r.slots) {
		return r.slots[i]
	}
	return nil
}

func (r *record) setSlot(i int, e *entry) {
	for len(r.slots) <= i {
		r.slots = append(r.slots, nil)
	}
	r.slots[i] = e
}

// newRow is what a row needs when it is new, in one piece: tables are large,
// and the collector walks every piece.
type newRow struct {
	rec     record
	version version
	base    entry
	slots   [3]*entry
}

// newest is the last version that is committed or own.
func (r *record) newest(own *txnStatus) *version {
	v := r.head
	for v != nil && !own.settled(v.by) {
		v = v.prev
	}
	return v
}

// at is the version that a snapshot sees: the last one that is own or was
// committed by then.
func (r *record) at(snapshot uint64, own *txnStatus) *version {
	for v := r.head; v != nil; v = v.prev {
		if v.by == own {
			return v
		}
		if c := v.by.committed.Load(); c != 0 && c <= snapshot {
			return v
		}
	}
	return nil
}

// entry is one key of one index. A row that leaves the key leaves the entry as
// a ghost; a row that comes back to it revives it. It is also what a scan
// seeks by (edge).
type entry struct {
	index *Index
	rec   *record
	// of is a version of rec with this key.
	of   *version
	lock resource
	// ghost is who emptied the entry, nil while the newest version is in it.
	// Whoever holds a lock on the entry may read it without the table's mutex.
	ghost *txnStatus
	// removed says that the entry is not in the tree any more.
	removed bool

	// edge is not 0 for a place between entries: just before (-1) or after (+1)
	// all whose first parts key parts equal those of of; keyed says that of holds
	// the parts of the key instead of the columns of the table.
	edge  int8
	keyed bool
	parts uint16
}

func (e *entry) lockable() *resource { return &e.lock }

func (e *entry) describe(info *LockInfo) {
	info.Resource, info.Table, info.Row = KeyLock, e.index.table, e.rec.id
	if e.index.heap() {
		info.Resource = RIDLock
		return
	}
	info.Index = e.index
}

// live says whether a row is in the entry, for one who holds a lock on it.
func (e *entry) live() bool { return e.ghost == nil && !e.removed }

func (e *entry) part(p *KeyPart, i int) *sqltype.Value {
	if e.keyed {
		return &e.of.values[i]
	}
	return &e.of.values[p.Column]
}
