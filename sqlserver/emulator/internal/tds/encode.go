package tds

import (
	"encoding/binary"
	"fmt"
	"math"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// column is how the values of one result column or output parameter are
// written. It is worked out once a result, so that a row costs a switch a
// value and no allocation.
type column struct {
	id    uint8
	form  form
	size  int
	typ   sqltype.Type
	page  *codePage // char and varchar; nil: UTF-16
	named string
}

// columnFor chooses the wire's form of a type. utf8Client says that the client
// asked for UTF8_SUPPORT.
//
// A char or varchar under a UTF-8 collation goes to all other clients as nchar
// or nvarchar, in UTF-16, with the collation unchanged: that is what SQL Server
// 2022 was seen to do with a client that does not send the feature extension
// (github.com/hugr-lab/mssql-extension, issue 225, which shows the type and
// collation bytes of each column). MS-TDS 2.2.7.11 only says that the extension
// exists. A declared length above 4,000 becomes nvarchar(max) then, because no
// other nvarchar holds it; that is our inference.
func columnFor(name string, t sqltype.Type, utf8Client bool) (column, error) {
	c := column{typ: t, form: formByte, named: name}
	if fixed, ok := fixedColumns[t.Kind]; ok {
		c.id, c.size = fixed.id, fixed.size
		return c, nil
	}
	switch t.Kind {
	case sqltype.Null:
		c.typ.Kind = sqltype.Int // as SELECT NULL is an int
		c.id, c.size = idIntN, 4
	case sqltype.Decimal:
		c.id, c.size = idDecimalN, decimalBytes(t.Precision)+1
	case sqltype.Time:
		c.id, c.size = idTime, timeBytes(t.Scale)
	case sqltype.DateTime2:
		c.id, c.size = idDateTime2, timeBytes(t.Scale)+3
	case sqltype.DateTimeOffset:
		c.id, c.size = idDateTimeOffset, timeBytes(t.Scale)+5
	case sqltype.XML:
		c.id, c.form = idXML, formPLP
	case sqltype.SQLVariant:
		c.id, c.form = idVariant, formVariant
	default:
		if err := c.textOrBinary(utf8Client); err != nil {
			return c, err
		}
	}
	return c, nil
}

// fixedColumns are the types whose length follows from their name.
var fixedColumns = map[sqltype.Kind]struct {
	id   uint8
	size int
}{
	sqltype.Bit:              {idBitN, 1},
	sqltype.TinyInt:          {idIntN, 1},
	sqltype.SmallInt:         {idIntN, 2},
	sqltype.Int:              {idIntN, 4},
	sqltype.BigInt:           {idIntN, 8},
	sqltype.Real:             {idFloatN, 4},
	sqltype.Float:            {idFloatN, 8},
	sqltype.Money:            {idMoneyN, 8},
	sqltype.SmallDateTime:    {idDateTimeN, 4},
	sqltype.DateTime:         {idDateTimeN, 8},
	sqltype.Date:             {idDate, 3},
	sqltype.UniqueIdentifier: {idGUID, 16},
}

func (c *column) textOrBinary(utf8Client bool) error {
	c.form, c.size = formShort, c.typ.Length
	longest := longestBytes
	switch c.typ.Kind {
	case sqltype.Char, sqltype.VarChar:
		c.id = idBigVarChar
		if c.typ.Kind == sqltype.Char {
			c.id = idBigChar
		}
		c.page = pageOf(c.typ.Collation)
		switch {
		case c.page == nil:
			return fmt.Errorf("column %q: code page %d is not modelled", c.named, c.typ.Collation.CodePage)
		case c.page.utf8 && !utf8Client:
			c.page, longest = nil, longestChars
			c.id = idNVarChar
			if c.typ.Kind == sqltype.Char {
				c.id = idNChar
			}
		}
	case sqltype.NChar, sqltype.NVarChar:
		longest = longestChars
		c.id = idNVarChar
		if c.typ.Kind == sqltype.NChar {
			c.id = idNChar
		}
	case sqltype.Binary:
		c.id = idBigBinary
	case sqltype.VarBinary:
		c.id = idBigVarBinary
	default:
		return fmt.Errorf("column %q: a type of kind %d has no form on the wire", c.named, c.typ.Kind)
	}
	if c.size == sqltype.Max || c.size > longest {
		c.form, c.size = formPLP, maxShort
		switch c.id {
		case idBigChar:
			c.id = idBigVarChar
		case idNChar:
			c.id = idNVarChar
		}
		return nil
	}
	// A length of 0 on the wire would be read as MAX by go-mssqldb.
	c.size = max(c.size, 1)
	if c.id == idNVarChar || c.id == idNChar {
		c.size *= 2
	}
	return nil
}

// appendInfo appends the TYPE_INFO.
func (c *column) appendInfo(b []byte) []byte {
	b = append(b, c.id)
	switch c.form {
	case formByte:
		switch c.id {
		case idDate:
		case idTime, idDateTime2, idDateTimeOffset:
			b = append(b, c.typ.Scale)
		case idDecimalN:
			b = append(b, byte(c.size), c.typ.Precision, c.typ.Scale)
		default:
			b = append(b, byte(c.size))
		}
	case formVariant:
		b = binary.LittleEndian.AppendUint32(b, longestBytes+9)
	default:
		if c.id == idXML {
			return append(b, 0) // no schema
		}
		b = append(b, byte(c.size), byte(c.size>>8))
		if c.id != idBigVarBinary && c.id != idBigBinary {
			b = appendCollation(b, c.typ.Collation)
		}
	}
	return b
}

// nullBytes is what a NULL of this column takes in a ROW.
func (c *column) nullBytes() int {
	switch c.form {
	case formShort:
		return 2
	case formPLP:
		return 8
	case formVariant:
		return 4
	}
	return 1
}

func (c *column) appendNull(b []byte) []byte {
	switch c.form {
	case formShort:
		return append(b, 0xff, 0xff)
	case formPLP:
		return binary.LittleEndian.AppendUint64(b, plpNull)
	case formVariant:
		return append(b, 0, 0, 0, 0)
	}
	return append(b, 0)
}

// family groups the kinds whose values lie in the same field of a Value in the
// same meaning, so that an engine may hand an int to a bigint column but never
// a varchar.
var family = [...]uint8{
	sqltype.Bit: 1, sqltype.TinyInt: 1, sqltype.SmallInt: 1, sqltype.Int: 1, sqltype.BigInt: 1,
	sqltype.Decimal: 2, sqltype.Money: 3, sqltype.Real: 4, sqltype.Float: 4,
	sqltype.Date: 5, sqltype.Time: 6,
	sqltype.DateTime: 7, sqltype.SmallDateTime: 7, sqltype.DateTime2: 7, sqltype.DateTimeOffset: 7,
	sqltype.Char: 8, sqltype.VarChar: 8, sqltype.NChar: 8, sqltype.NVarChar: 8, sqltype.XML: 8,
	sqltype.Binary: 9, sqltype.VarBinary: 9, sqltype.UniqueIdentifier: 10,
	sqltype.SQLVariant: 0, sqltype.TableType: 0,
}

// append appends one value as a ROW carries it.
func (c *column) append(b []byte, v *sqltype.Value) ([]byte, error) {
	if v.Kind == sqltype.Null {
		return c.appendNull(b), nil
	}
	if c.form == formVariant {
		return appendVariant(b, v)
	}
	if family[v.Kind] != family[c.typ.Kind] || family[v.Kind] == 0 {
		return b, fmt.Errorf("column %q: a value of kind %d where the column is of kind %d", c.named, v.Kind, c.typ.Kind)
	}
	switch c.form {
	case formShort:
		at := len(b)
		b = c.appendBytes(append(b, 0, 0), v)
		n := len(b) - at - 2
		if n > longestBytes {
			return b, fmt.Errorf("column %q: a value of %d bytes", c.named, n)
		}
		binary.LittleEndian.PutUint16(b[at:], uint16(n))
		return b, nil
	case formPLP:
		// One chunk; the total in front says the same length.
		at := len(b)
		b = c.appendBytes(append(b, make([]byte, 12)...), v)
		n := len(b) - at - 12
		binary.LittleEndian.PutUint64(b[at:], uint64(n))
		binary.LittleEndian.PutUint32(b[at+8:], uint32(n))
		if n == 0 {
			return b, nil // the empty chunk is the terminator already
		}
		return append(b, 0, 0, 0, 0), nil
	}
	return c.appendSmall(b, v)
}

// appendBytes appends text or binary without a length.
func (c *column) appendBytes(b []byte, v *sqltype.Value) []byte {
	switch {
	case c.id == idBigVarBinary || c.id == idBigBinary:
		return append(b, v.S...)
	case c.page != nil:
		return c.page.append(b, v.S)
	default:
		return appendUTF16(b, v.S)
	}
}

// appendSmall appends a value of a type whose length is one byte.
func (c *column) appendSmall(b []byte, v *sqltype.Value) ([]byte, error) {
	if c.id == idDecimalN {
		b, err := appendDecimal(b, v, c.typ.Precision, c.typ.Scale)
		if err != nil {
			err = fmt.Errorf("column %q: %w", c.named, err)
		}
		return b, err
	}
	b = append(b, byte(c.size))
	switch c.id {
	case idMoneyN:
		return appendMoney(b, v)
	case idTime:
		return appendTime(b, v.N, c.typ.Scale), nil
	case idDateTime2, idDateTimeOffset:
		days, ticks := splitTicks(v.N)
		b = appendDate(appendTime(b, ticks, c.typ.Scale), days)
		if c.id == idDateTimeOffset {
			b = binary.LittleEndian.AppendUint16(b, uint16(v.Offset))
		}
		return b, nil
	}
	return appendFixed(b, c.typ.Kind, v), nil
}

// appendFixed appends the bytes of a fixed-length value, without a length.
func appendFixed(b []byte, kind sqltype.Kind, v *sqltype.Value) []byte {
	switch kind {
	case sqltype.Bit:
		if v.N != 0 {
			return append(b, 1)
		}
		return append(b, 0)
	case sqltype.TinyInt:
		return append(b, byte(v.N))
	case sqltype.SmallInt:
		return binary.LittleEndian.AppendUint16(b, uint16(v.N))
	case sqltype.Int:
		return binary.LittleEndian.AppendUint32(b, uint32(v.N))
	case sqltype.BigInt:
		return binary.LittleEndian.AppendUint64(b, uint64(v.N))
	case sqltype.Real:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v.Float())))
	case sqltype.Float:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Float()))
	case sqltype.Date:
		return appendDate(b, v.N)
	case sqltype.DateTime:
		days, units := datetimeUnits(v.N)
		b = binary.LittleEndian.AppendUint32(b, uint32(days))
		return binary.LittleEndian.AppendUint32(b, units)
	case sqltype.SmallDateTime:
		days, ticks := splitTicks(v.N)
		b = binary.LittleEndian.AppendUint16(b, uint16(days-daysTo1900))
		return binary.LittleEndian.AppendUint16(b, uint16(ticks/ticksPerMinute))
	case sqltype.UniqueIdentifier:
		var g [16]byte
		copy(g[:], v.S)
		g = swapGUID(g)
		return append(b, g[:]...)
	}
	return b
}

func appendMoney(b []byte, v *sqltype.Value) ([]byte, error) {
	u, negative, err := magnitude(v, moneyScale, moneyScale)
	switch {
	case err != nil:
		return b, err
	case u.hi != 0 || u.lo > 1<<63 || u.lo == 1<<63 && !negative:
		return b, fmt.Errorf("%w: money", errDecimal)
	}
	n := u.lo
	if negative {
		n = -n
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(n>>32))
	return binary.LittleEndian.AppendUint32(b, uint32(n)), nil
}
