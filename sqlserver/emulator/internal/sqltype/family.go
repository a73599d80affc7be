package sqltype

import "strconv"

// IsInteger is bit and the integer types.
func (k Kind) IsInteger() bool { return k >= Bit && k <= BigInt }

// IsNumeric is every number.
func (k Kind) IsNumeric() bool { return k >= Bit && k <= Float }

// IsApproximate is real and float.
func (k Kind) IsApproximate() bool { return k == Real || k == Float }

// IsText is every character type.
func (k Kind) IsText() bool { return k >= Char && k <= NVarChar }

// IsUnicode is nchar and nvarchar.
func (k Kind) IsUnicode() bool { return k == NChar || k == NVarChar }

// IsBinary is binary and varbinary.
func (k Kind) IsBinary() bool { return k == Binary || k == VarBinary }

// IsTemporal is every date and time type.
func (k Kind) IsTemporal() bool { return k >= Date && k <= DateTimeOffset }

// precedence orders the types as sql-docs "Data type precedence" does: of two
// operands the one of lower precedence is converted.
var precedence = map[Kind]int{
	SQLVariant: 30, XML: 29, DateTimeOffset: 28, DateTime2: 27, DateTime: 26, SmallDateTime: 25,
	Date: 24, Time: 23, Float: 22, Real: 21, Decimal: 20, Money: 19, BigInt: 17, Int: 16,
	SmallInt: 15, TinyInt: 14, Bit: 13, UniqueIdentifier: 10, NVarChar: 9, NChar: 8,
	VarChar: 7, Char: 6, VarBinary: 5, Binary: 4, Null: 0,
}

var kindNames = map[Kind]string{
	Null: "NULL", Bit: "bit", TinyInt: "tinyint", SmallInt: "smallint", Int: "int", BigInt: "bigint",
	Decimal: "decimal", Money: "money", Real: "real", Float: "float", Date: "date", Time: "time",
	DateTime: "datetime", SmallDateTime: "smalldatetime", DateTime2: "datetime2",
	DateTimeOffset: "datetimeoffset", Char: "char", VarChar: "varchar", NChar: "nchar",
	NVarChar: "nvarchar", Binary: "binary", VarBinary: "varbinary",
	UniqueIdentifier: "uniqueidentifier", XML: "xml", SQLVariant: "sql_variant", TableType: "table type",
}

func (k Kind) String() string { return kindNames[k] }

// Name is the type's name without its length, as the error messages and
// sys.types spell it.
func (t Type) Name() string { return kindNames[t.Kind] }

// String is the type as T-SQL declares it.
func (t Type) String() string {
	name := t.Name()
	switch t.Kind {
	case Char, VarChar, NChar, NVarChar, Binary, VarBinary:
		if t.Length == Max {
			return name + "(max)"
		}
		return name + "(" + strconv.Itoa(t.Length) + ")"
	case Decimal:
		return name + "(" + strconv.Itoa(int(t.Precision)) + "," + strconv.Itoa(int(t.Scale)) + ")"
	case DateTime2, Time, DateTimeOffset:
		return name + "(" + strconv.Itoa(int(t.Scale)) + ")"
	}
	return name
}

// integerDigits is what an integer type needs as a decimal.
var integerDigits = map[Kind]uint8{Bit: 1, TinyInt: 3, SmallInt: 5, Int: 10, BigInt: 19, Money: 19}

// Common is the type that two operands are brought to, by precedence.
func Common(a, b Type) Type {
	if precedence[a.Kind] < precedence[b.Kind] {
		a, b = b, a
	}
	if b.Kind == Null {
		return a
	}
	switch {
	case a.Kind.IsText() && b.Kind.IsText(), a.Kind.IsBinary() && b.Kind.IsBinary():
		if a.Kind == NChar && b.Kind != NChar {
			a.Kind = NVarChar
		}
		if a.Kind == Char && a.Length != b.Length {
			a.Kind = VarChar
		}
		if a.Length != Max && (b.Length == Max || b.Length > a.Length) {
			a.Length = b.Length
		}
		if a.Collation == nil {
			a.Collation = b.Collation
		}
	case a.Kind == Decimal && b.Kind.IsNumeric():
		p, s := b.Precision, b.Scale
		if b.Kind != Decimal {
			p, s = integerDigits[b.Kind], 0
			if b.Kind == Money {
				s = 4
			}
		}
		whole := max(a.Precision-a.Scale, p-s)
		a.Scale = max(a.Scale, s)
		a.Precision = min(whole+a.Scale, 38)
	case a.Kind == b.Kind && a.Kind.IsTemporal():
		a.Scale = max(a.Scale, b.Scale)
	}
	return a
}
