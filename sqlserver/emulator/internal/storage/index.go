package storage

import (
	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// KeyPart is one column of an index key.
type KeyPart struct {
	Column int
	Desc   bool
	// Compare orders two values of the column, NULL included (SQL Server puts
	// it first), under the column's collation.
	Compare func(a, b sqltype.Value) int
}

// IndexSpec describes an index. Its functions are called with locks held and
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
}

// Index is a B-tree over a table's rows. Entries with equal keys follow the
// clustered key, as in SQL Server.
type Index struct{}

// Spec is what the index was made from.
func (ix *Index) Spec() IndexSpec { panic("storage: not yet") }

// Table is the table that the index belongs to.
func (ix *Index) Table() *Table { panic("storage: not yet") }

// Rows counts the entries, those of uncommitted rows included and ghosts not.
// It is cheap, as sys.partitions.rows is.
func (ix *Index) Rows() int64 { panic("storage: not yet") }
