package sizing

import "math"

// Sizes on a page, from sql-docs, pages-and-extents-architecture-guide.md and
// estimate-the-size-of-a-clustered-index.md.
const (
	// PageBytes is what a page takes on disk and in memory.
	PageBytes = 8192
	// pageRoom is what is left for rows and their slots.
	pageRoom = 8096
	// slotBytes is the entry of a row in the page's slot array.
	slotBytes = 2
	// versionTagBytes is what row versioning adds to a row. On a database that has
	// READ_COMMITTED_SNAPSHOT on, as Azure SQL always had, it is there from the
	// insert on (sql-server-transaction-locking-and-row-versioning-guide.md).
	versionTagBytes = 14
)

// Row is the shape of a row in a clustered index.
type Row struct {
	// Columns counts all of them; FixedBytes is the sum of those of fixed length.
	Columns, FixedBytes int
	// VariableColumns are VARCHAR, NVARCHAR and VARBINARY; VariableBytes is what
	// they hold on average: two bytes a character in NVARCHAR.
	VariableColumns int
	VariableBytes   float64
	// Versioned adds the tag of row versioning.
	Versioned bool
}

// Bytes is the size of a row in the page, without its slot
// (estimate-the-size-of-a-clustered-index.md, steps 3 to 5).
func (r Row) Bytes() float64 {
	size := float64(r.FixedBytes) + 4 // the row header
	size += float64(2 + (r.Columns+7)/8)
	if r.VariableColumns > 0 {
		size += float64(2+2*r.VariableColumns) + r.VariableBytes
	}
	if r.Versioned {
		size += versionTagBytes
	}
	return size
}

// rowsPerPage is how many rows of that size a page takes that is filled to
// fillFactor percent when it is built; 0 is 100, as in SQL Server. At least one:
// a longer row goes off the page.
func rowsPerPage(rowBytes, fillFactor float64) int {
	if fillFactor == 0 {
		fillFactor = 100
	}
	return max(1, int(pageRoom*fillFactor/100/(rowBytes+slotBytes)))
}

// TableBytes is what rows of that size take in a clustered index's leaf pages.
func TableBytes(rows int64, rowBytes, fillFactor float64) float64 {
	return math.Ceil(float64(rows)/float64(rowsPerPage(rowBytes, fillFactor))) * PageBytes
}

// Emptiness is how much of pages is nothing that a rebuild with fillFactor
// would give back: usedPercent is how full they are now.
func Emptiness(bytes, usedPercent, fillFactor float64) float64 {
	if fillFactor == 0 {
		fillFactor = 100
	}
	return max(0, bytes*(1-usedPercent/fillFactor))
}
