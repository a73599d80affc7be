package tds

import (
	"bytes"
	"encoding/binary"
	"math"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// value reads one value of a type, as rows and parameters carry it. inRow
// says that text, ntext and image come with a text pointer (MS-TDS 2.2.5.2.1).
func (m *message) value(w *wireType, inRow bool) sqltype.Value {
	var b []byte
	switch w.form {
	case formFixed:
		if w.id == idNull {
			return sqltype.Value{}
		}
		b = m.bytes(w.size)
	case formByte:
		n := int(m.u8())
		if n == 0 {
			return sqltype.Value{}
		}
		if n > w.size && w.size != 0 {
			m.malformed("%d bytes in a data type 0x%02X of %d", n, w.id, w.size)
		}
		b = m.bytes(n)
	case formShort:
		n := int(m.u16())
		if n == maxShort {
			return sqltype.Value{}
		}
		if n > w.size {
			m.malformed("%d bytes in a data type 0x%02X of %d", n, w.id, w.size)
		}
		b = m.bytes(n)
	case formPLP:
		var ok bool
		if b, ok = m.chunks(); !ok {
			return sqltype.Value{}
		}
	case formLong:
		if inRow {
			pointer := int(m.u8())
			if pointer == 0 {
				return sqltype.Value{}
			}
			m.bytes(pointer + 8) // the text pointer and its timestamp
		}
		n := m.u32()
		if n == noLength {
			return sqltype.Value{}
		}
		b = m.bytes(int(n))
	case formVariant:
		return m.variant()
	}
	if m.err != nil {
		return sqltype.Value{}
	}
	v, ok := w.decode(b)
	if !ok {
		m.malformed("a value of %d bytes that is none of data type 0x%02X", len(b), w.id)
	}
	return v
}

// chunks reads a partially length-prefixed value; false is NULL. The bytes are
// good until discard or the next message.
func (m *message) chunks() ([]byte, bool) {
	total := m.u64()
	if total == plpNull || m.err != nil {
		return nil, false
	}
	n := int(m.u32())
	if n == 0 {
		return nil, true
	}
	all := m.bytes(n)
	n = int(m.u32())
	if n != 0 {
		all = bytes.Clone(all) // the next chunk is not its neighbour
	}
	for n != 0 && m.err == nil {
		all = append(all, m.bytes(n)...)
		n = int(m.u32())
	}
	if m.err == nil && total != plpUnknown && total != uint64(len(all)) {
		m.malformed("a value of %d bytes that was announced with %d", len(all), total)
	}
	return all, m.err == nil
}

// decode turns the bytes of a value that is not NULL into a value.
func (w *wireType) decode(b []byte) (sqltype.Value, bool) {
	v := sqltype.Value{Kind: w.typ.Kind}
	switch w.typ.Kind {
	case sqltype.Bit:
		if len(b) != 1 {
			return v, false
		}
		if b[0] != 0 {
			v.N = 1
		}
	case sqltype.TinyInt, sqltype.SmallInt, sqltype.Int, sqltype.BigInt:
		return decodeInteger(b)
	case sqltype.Real, sqltype.Float:
		switch len(b) {
		case 4:
			return sqltype.FloatValue(w.typ.Kind, float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))), true
		case 8:
			return sqltype.FloatValue(w.typ.Kind, math.Float64frombits(binary.LittleEndian.Uint64(b))), true
		default:
			return v, false
		}
	case sqltype.Decimal:
		return decodeDecimal(b, w.typ.Scale)
	case sqltype.Money:
		return decodeMoney(b)
	case sqltype.Date, sqltype.Time, sqltype.DateTime2, sqltype.DateTimeOffset:
		return decodeDateTime(w.typ.Kind, b, w.typ.Scale)
	case sqltype.DateTime, sqltype.SmallDateTime:
		return decodeOldDateTime(b)
	case sqltype.UniqueIdentifier:
		if len(b) != 16 {
			return v, false
		}
		g := swapGUID([16]byte(b))
		v.S = string(g[:])
	case sqltype.Char, sqltype.VarChar:
		v.S = w.page.decode(b)
	case sqltype.NChar, sqltype.NVarChar:
		v.S = decodeUTF16(b)
		return v, len(b)%2 == 0
	case sqltype.XML:
		v.S = decodeUTF16(bytes.TrimPrefix(b, []byte{0xff, 0xfe}))
		return v, len(b)%2 == 0
	case sqltype.Binary, sqltype.VarBinary:
		v.S = string(b)
	default:
		return v, false
	}
	return v, true
}

// decodeInteger takes the kind from the length: INTN may carry any of them,
// whatever its TYPE_INFO allows at most. Only tinyint has no sign.
func decodeInteger(b []byte) (sqltype.Value, bool) {
	switch len(b) {
	case 1:
		return sqltype.Value{Kind: sqltype.TinyInt, N: int64(b[0])}, true
	case 2:
		return sqltype.Value{Kind: sqltype.SmallInt, N: int64(int16(binary.LittleEndian.Uint16(b)))}, true
	case 4:
		return sqltype.Value{Kind: sqltype.Int, N: int64(int32(binary.LittleEndian.Uint32(b)))}, true
	case 8:
		return sqltype.Value{Kind: sqltype.BigInt, N: int64(binary.LittleEndian.Uint64(b))}, true
	}
	return sqltype.Value{}, false
}

// moneyScale is fixed: money counts ten-thousandths.
const moneyScale = 4

// decodeMoney reads money, whose two halves come high first, and smallmoney.
func decodeMoney(b []byte) (sqltype.Value, bool) {
	var n int64
	switch len(b) {
	case 4:
		n = int64(int32(binary.LittleEndian.Uint32(b)))
	case 8:
		n = int64(binary.LittleEndian.Uint32(b))<<32 | int64(binary.LittleEndian.Uint32(b[4:]))
	default:
		return sqltype.Value{}, false
	}
	u := uint64(n)
	if n < 0 {
		u = -u
	}
	return fromMagnitude(sqltype.Money, uint128{lo: u}, n < 0, moneyScale), true
}

// swapGUID turns the wire's order, in which the first three groups are
// little-endian, into the order of the text form, and back.
func swapGUID(g [16]byte) [16]byte {
	g[0], g[1], g[2], g[3] = g[3], g[2], g[1], g[0]
	g[4], g[5] = g[5], g[4]
	g[6], g[7] = g[7], g[6]
	return g
}

// variant reads a sql_variant (MS-TDS 2.2.5.5.4): the whole length, the base
// type, how many bytes of properties follow, those, the value.
func (m *message) variant() sqltype.Value {
	total := int(m.u32())
	if total == 0 || m.err != nil {
		return sqltype.Value{}
	}
	w := wireType{id: m.u8()}
	properties := int(m.u8())
	n := total - 2 - properties
	if fixed, ok := fixedTypes[w.id]; ok && w.id != idNull {
		w.typ.Kind, w.size = fixed.kind, fixed.size
	} else {
		m.variantProperties(&w)
	}
	if m.err != nil {
		return sqltype.Value{}
	}
	if n < 0 || n > longestBytes+16 || variantPropertyBytes[w.typ.Kind] != properties {
		m.malformed("a sql_variant of %d bytes with %d of properties, base type 0x%02X", total, properties, w.id)
		return sqltype.Value{}
	}
	b := m.bytes(n)
	if m.err != nil {
		return sqltype.Value{}
	}
	v, ok := w.decode(b)
	if !ok {
		m.malformed("a sql_variant of %d bytes that is none of base type 0x%02X", n, w.id)
	}
	return v
}

var variantPropertyBytes = map[sqltype.Kind]int{
	sqltype.Time: 1, sqltype.DateTime2: 1, sqltype.DateTimeOffset: 1,
	sqltype.Decimal: 2, sqltype.Binary: 2, sqltype.VarBinary: 2,
	sqltype.Char: 7, sqltype.VarChar: 7, sqltype.NChar: 7, sqltype.NVarChar: 7,
}

func (m *message) variantProperties(w *wireType) {
	switch w.id {
	case idGUID:
		w.typ.Kind = sqltype.UniqueIdentifier
	case idDate, idTime, idDateTime2, idDateTimeOffset:
		m.dateTimeInfo(w)
	case idDecimalN, idNumericN:
		w.typ.Kind, w.typ.Precision, w.typ.Scale = sqltype.Decimal, m.u8(), m.u8()
	case idBigVarBinary, idBigBinary:
		w.typ.Kind = sqltype.VarBinary
		m.u16() // the length that the type was declared with
	case idBigVarChar, idBigChar, idNVarChar, idNChar:
		w.typ.Kind = sqltype.NVarChar
		if w.id == idBigVarChar || w.id == idBigChar {
			w.typ.Kind = sqltype.VarChar
		}
		m.collation(w)
		m.u16()
	default:
		m.malformed("a sql_variant of base type 0x%02X", w.id)
	}
}
