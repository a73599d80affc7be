package storage

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/tidwall/btree"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// KeyPart is one column of an index key.
type KeyPart struct {
	Column int
	Desc   bool
	// Compare orders two values of the column, NULL included (SQL Server puts
	// it first), under the column's collation. Values that are the same in all
	// their fields are equal without it.
	Compare func(a, b sqltype.Value) int
	// ByNumber says that values other than NULL are in the order of their N. It
	// saves most calls of Compare.
	ByNumber bool
}

// compare orders two values.
func (p *KeyPart) compare(a, b *sqltype.Value) int {
	if p.ByNumber && a.Kind != sqltype.Null && b.Kind != sqltype.Null {
		return cmp.Compare(a.N, b.N)
	}
	if *a == *b {
		return 0
	}
	return p.Compare(*a, *b)
}

// IndexSpec describes an index. Its functions are called with mutexes held and
// must not call back into storage.
type IndexSpec struct {
	Name   string
	Key    []KeyPart
	Unique bool
	// Include are the columns stored beside the key. Changing one locks the
	// index entry, as changing a key column does.
	Include []int
	// Filter says which rows the index holds; nil means all.
	Filter func(row []sqltype.Value) bool
	// Fits refuses a row whose key the index cannot hold; nil means that it can hold
	// all. CreateIndex asks it for every row; who writes rows has to ask it before.
	Fits func(row []sqltype.Value) error
}

// Index is a B-tree over a table's rows. Entries with equal keys follow the
// clustered key, as in SQL Server.
type Index struct {
	table *Table
	// slot is the index's place in Table.indexes, which no other index ever
	// takes; 0 is the clustered index or the heap.
	slot int
	spec IndexSpec
	// order is the key, then what the clustered key adds to it.
	order []KeyPart
	tree  *btree.BTreeG[*entry]
	live  atomic.Int64
	ops   operations
	// near is where the last write was: the next one is mostly beside it. probes
	// spare equals its allocations. Both are for who holds the table's mutex for
	// writing.
	near   btree.PathHint
	probes [2]entry
	probed version
}

// newIndex makes an empty index. base is the clustered key, nil for a heap and
// for the clustered index itself.
func newIndex(t *Table, slot int, spec IndexSpec, base []KeyPart) *Index {
	ix := &Index{table: t, slot: slot, spec: spec, order: slices.Clone(spec.Key)}
	for _, p := range base {
		if !slices.ContainsFunc(ix.order, func(o KeyPart) bool { return o.Column == p.Column }) {
			ix.order = append(ix.order, p)
		}
	}
	ix.tree = btree.NewBTreeGOptions(ix.less, btree.Options{NoLocks: true})
	return ix
}

// Spec is what the index was made from.
func (ix *Index) Spec() IndexSpec { return ix.spec }

// Table is the table that the index belongs to.
func (ix *Index) Table() *Table { return ix.table }

// Rows counts the entries, those of uncommitted rows included and ghosts not.
// It is cheap, as sys.partitions.rows is.
func (ix *Index) Rows() int64 { return ix.live.Load() }

// Ghosts counts the entries whose row has left them, but which an open
// transaction or a snapshot may still need.
func (ix *Index) Ghosts() int64 {
	ix.table.mu.RLock()
	defer ix.table.mu.RUnlock()
	return int64(ix.tree.Len()) - ix.live.Load()
}

func (ix *Index) heap() bool { return ix.slot == 0 && len(ix.spec.Key) == 0 }

// less orders entries by key, and entries of one key by row.
func (ix *Index) less(a, b *entry) bool {
	n := len(ix.order)
	if a.edge != 0 {
		n = int(a.parts)
	}
	if b.edge != 0 {
		n = min(n, int(b.parts))
	}
	for i := range n {
		p := &ix.order[i]
		if c := p.compare(a.part(p, i), b.part(p, i)); c != 0 {
			return (c < 0) != p.Desc
		}
	}
	if a.edge != b.edge {
		return a.edge < b.edge
	}
	return a.edge == 0 && a.rec.id < b.rec.id
}

// holds says whether the index holds a row of these values.
func (ix *Index) holds(values []sqltype.Value) bool {
	return ix.spec.Filter == nil || ix.spec.Filter(values)
}

// sameKey says whether two rows have the same place in the index.
func (ix *Index) sameKey(a, b []sqltype.Value) bool {
	for i := range ix.order {
		p := &ix.order[i]
		if p.compare(&a[p.Column], &b[p.Column]) != 0 {
			return false
		}
	}
	return true
}

// touched says whether rows of one key differ in what the index stores.
func (ix *Index) touched(a, b []sqltype.Value) bool {
	differs := func(column int) bool { return a[column] != b[column] }
	for i := range ix.order {
		if differs(ix.order[i].Column) {
			return true
		}
	}
	return slices.ContainsFunc(ix.spec.Include, differs)
}

// sees says whether a version of an entry's row belongs to that entry.
func (ix *Index) sees(v *version, e *entry) bool {
	if v == nil || v.values == nil {
		return false
	}
	if v == e.rec.head {
		return e.ghost == nil
	}
	return ix.holds(v.values) && ix.sameKey(v.values, e.of.values)
}

// equals walks the entries, ghosts too, whose key is that of values. The
// table's mutex is held for writing.
func (ix *Index) equals(values []sqltype.Value, visit func(*entry) bool) {
	from, to := &ix.probes[0], &ix.probes[1]
	ix.probed.values = values
	*from = entry{of: &ix.probed, edge: -1, parts: uint16(len(ix.spec.Key))}
	*to = entry{of: &ix.probed, edge: +1, parts: uint16(len(ix.spec.Key))}
	ix.tree.AscendHint(from, func(e *entry) bool { return ix.less(e, to) && visit(e) }, &ix.near)
	ix.probed.values = nil
}

// key is the key of a row, part by part.
func (ix *Index) key(values []sqltype.Value) []sqltype.Value {
	key := make([]sqltype.Value, len(ix.spec.Key))
	for i, p := range ix.spec.Key {
		key[i] = values[p.Column]
	}
	return key
}

// add puts a new entry into the tree.
func (ix *Index) add(e *entry) { ix.tree.SetHint(e, &ix.near) }

// remove takes an entry out of the tree.
func (ix *Index) remove(e *entry) {
	e.removed = true
	ix.tree.DeleteHint(e, &ix.near)
}
