// Package sqltype holds the SQL Server types and values that the emulator's
// protocol, engine and storage hand to each other.
package sqltype

import "math"

// Kind is a SQL Server type family. Length, precision and scale are in Type.
type Kind uint8

const (
	Null Kind = iota // the type of an untyped NULL; never a column's
	Bit
	TinyInt
	SmallInt
	Int
	BigInt
	Decimal
	Money
	Real
	Float
	Date
	Time
	DateTime
	SmallDateTime
	DateTime2
	DateTimeOffset
	Char
	VarChar
	NChar
	NVarChar
	Binary
	VarBinary
	UniqueIdentifier
	XML
	SQLVariant
	// TableType is a table-valued parameter or a table variable.
	TableType
)

// Max is the Length of VARCHAR(MAX), NVARCHAR(MAX) and VARBINARY(MAX).
const Max = -1

// Type is a full type.
type Type struct {
	Kind Kind
	// Length is bytes for char, varchar, binary and varbinary, characters
	// (UTF-16 units) for nchar and nvarchar, Max for MAX.
	Length int
	// Precision and Scale are for decimal; Scale is fractional digits of the
	// seconds for time, datetime2 and datetimeoffset.
	Precision uint8
	Scale     uint8
	// Collation is nil for types that have none.
	Collation *Collation
}

// Collation is what a collation's name says about comparing and storing text.
type Collation struct {
	Name string
	// LCID, Flags and SortID are the five bytes MS-TDS puts on the wire:
	// LCID is 20 bits, Flags the 8 bits above it, Version the next 4.
	LCID    uint32
	Flags   uint8
	Version uint8
	SortID  uint8
	// UTF8 says that varchar holds UTF-8; otherwise it holds CodePage.
	UTF8     bool
	CodePage int
	// Binary compares code units (BIN2); otherwise the two below count.
	Binary          bool
	CaseSensitive   bool
	AccentSensitive bool
}

// Value is one SQL value. The zero Value is NULL.
//
// Text of every kind is a Go string in UTF-8 in S; char and varchar hold only
// what their code page can hold, because conversion put it there. Binary is
// the bytes in S. Bit and the integers are in N. Dates and times are in N as
// 100 ns ticks: since 0001-01-01 for those with a date (UTC for
// datetimeoffset), since midnight for time; for date it is days. Decimal and
// money are N scaled by the type's scale when they fit (at most 18 digits),
// else S holds the decimal text and Big is true. Float and real are in N as the
// bits of a float64: FloatValue and Float.
// A uniqueidentifier is 16 bytes in S in the order of its text form.
type Value struct {
	Kind   Kind
	Big    bool
	Offset int16 // datetimeoffset: minutes east of UTC
	Scale  uint8 // decimal: digits behind the point in N
	N      int64
	S      string
}

// FloatValue is a float or real.
func FloatValue(k Kind, f float64) Value { return Value{Kind: k, N: int64(math.Float64bits(f))} }

// IsNull says whether the value is NULL.
func (v Value) IsNull() bool { return v.Kind == Null }
