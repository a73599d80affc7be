package tds

import (
	"encoding/binary"
	"fmt"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// variantPrecision is given for every decimal in a sql_variant: a Value knows
// its scale, not its precision.
const variantPrecision = 38

// appendVariant appends a value as a sql_variant: total length, base type,
// length of the properties, properties, value (MS-TDS 2.2.5.5.4).
func appendVariant(b []byte, v *sqltype.Value) ([]byte, error) {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	var err error
	switch v.Kind {
	case sqltype.Bit:
		b = append(b, idBit, 0)
	case sqltype.TinyInt:
		b = append(b, idInt1, 0)
	case sqltype.SmallInt:
		b = append(b, idInt2, 0)
	case sqltype.Int:
		b = append(b, idInt4, 0)
	case sqltype.BigInt:
		b = append(b, idInt8, 0)
	case sqltype.Real:
		b = append(b, idFloat4, 0)
	case sqltype.Float:
		b = append(b, idFloat8, 0)
	case sqltype.Date:
		b = append(b, idDate, 0)
	case sqltype.DateTime:
		b = append(b, idDateTime, 0)
	case sqltype.SmallDateTime:
		b = append(b, idDateTime4, 0)
	case sqltype.UniqueIdentifier:
		b = append(b, idGUID, 0)
	case sqltype.Money:
		b, err = appendMoney(append(b, idMoney, 0), v)
	case sqltype.Time:
		b = appendTime(append(b, idTime, 1, 7), v.N, 7)
	case sqltype.DateTime2, sqltype.DateTimeOffset:
		days, ticks := splitTicks(v.N)
		id := byte(idDateTime2)
		if v.Kind == sqltype.DateTimeOffset {
			id = idDateTimeOffset
		}
		b = appendDate(appendTime(append(b, id, 1, 7), ticks, 7), days)
		if v.Kind == sqltype.DateTimeOffset {
			b = binary.LittleEndian.AppendUint16(b, uint16(v.Offset))
		}
	case sqltype.Decimal:
		b = append(b, idDecimalN, 2, variantPrecision, v.Scale)
		lengthAt := len(b)
		if b, err = appendDecimal(b, v, variantPrecision, v.Scale); err == nil {
			b = append(b[:lengthAt], b[lengthAt+1:]...) // the total says it
		}
	case sqltype.Binary, sqltype.VarBinary:
		b = append(append(b, idBigVarBinary, 2, 0x40, 0x1f), v.S...) // 8000
	case sqltype.Char, sqltype.VarChar, sqltype.NChar, sqltype.NVarChar:
		// As nvarchar: a Value does not know its collation.
		b = appendCollation(append(b, idNVarChar, 7), sqltype.DefaultCollation)
		b = appendUTF16(append(b, 0x40, 0x1f), v.S)
	default:
		err = fmt.Errorf("a sql_variant of kind %d", v.Kind)
	}
	if err != nil {
		return b, err
	}
	b = appendFixed(b, v.Kind, v)
	total := len(b) - at - 4
	if total > longestBytes+9 {
		return b, fmt.Errorf("a sql_variant of %d bytes", total)
	}
	binary.LittleEndian.PutUint32(b[at:], uint32(total))
	return b, nil
}
