package tds

import (
	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// Type ids of MS-TDS 2.2.5.4.
const (
	idNull           = 0x1f
	idImage          = 0x22
	idText           = 0x23
	idGUID           = 0x24
	idOldVarBinary   = 0x25
	idIntN           = 0x26
	idOldVarChar     = 0x27
	idDate           = 0x28
	idTime           = 0x29
	idDateTime2      = 0x2a
	idDateTimeOffset = 0x2b
	idOldBinary      = 0x2d
	idOldChar        = 0x2f
	idInt1           = 0x30
	idBit            = 0x32
	idInt2           = 0x34
	idInt4           = 0x38
	idDateTime4      = 0x3a
	idFloat4         = 0x3b
	idMoney          = 0x3c
	idDateTime       = 0x3d
	idFloat8         = 0x3e
	idOldDecimal     = 0x37
	idOldNumeric     = 0x3f
	idVariant        = 0x62
	idNText          = 0x63
	idBitN           = 0x68
	idDecimalN       = 0x6a
	idNumericN       = 0x6c
	idFloatN         = 0x6d
	idMoneyN         = 0x6e
	idDateTimeN      = 0x6f
	idMoney4         = 0x7a
	idInt8           = 0x7f
	idBigVarBinary   = 0xa5
	idBigVarChar     = 0xa7
	idBigBinary      = 0xad
	idBigChar        = 0xaf
	idNVarChar       = 0xe7
	idNChar          = 0xef
	idUDT            = 0xf0
	idXML            = 0xf1
	idTable          = 0xf3
)

const (
	// maxShort as a declared size means MAX; as a length it means NULL.
	maxShort = 0xffff
	// Lengths of partially length-prefixed values (MS-TDS 2.2.5.2.3).
	plpNull    = 0xffffffffffffffff
	plpUnknown = 0xfffffffffffffffe
	// noLength is the NULL of the four-byte lengths.
	noLength = 0xffffffff

	longestBytes = 8000 // of char, varchar, binary and varbinary
	longestChars = 4000 // of nchar and nvarchar
)

// form is how a value says its length.
type form uint8

const (
	formFixed form = iota
	formByte       // one byte; 0 is NULL
	formShort      // two bytes; 0xFFFF is NULL
	formPLP        // eight bytes and chunks
	formLong       // text, ntext, image
	formVariant
)

// wireType is a TYPE_INFO that a client sent.
type wireType struct {
	id   uint8
	form form
	// size is the bytes of a formFixed value and the most bytes of the others.
	size int
	typ  sqltype.Type
	// page is set for char, varchar and text.
	page *codePage
}

var fixedTypes = map[uint8]struct {
	kind sqltype.Kind
	size int
}{
	idNull:      {sqltype.Null, 0},
	idInt1:      {sqltype.TinyInt, 1},
	idBit:       {sqltype.Bit, 1},
	idInt2:      {sqltype.SmallInt, 2},
	idInt4:      {sqltype.Int, 4},
	idInt8:      {sqltype.BigInt, 8},
	idDateTime4: {sqltype.SmallDateTime, 4},
	idDateTime:  {sqltype.DateTime, 8},
	idFloat4:    {sqltype.Real, 4},
	idFloat8:    {sqltype.Float, 8},
	idMoney4:    {sqltype.Money, 4},
	idMoney:     {sqltype.Money, 8},
}

// typeInfo reads a TYPE_INFO. A table type is read by table instead.
func (m *message) typeInfo() wireType {
	w := wireType{id: m.u8()}
	if m.err != nil {
		return w
	}
	if fixed, ok := fixedTypes[w.id]; ok {
		w.typ.Kind, w.size = fixed.kind, fixed.size
		return w
	}
	switch w.id {
	case idDate, idTime, idDateTime2, idDateTimeOffset:
		m.dateTimeInfo(&w)
	case idGUID, idIntN, idBitN, idFloatN, idMoneyN, idDateTimeN,
		idDecimalN, idNumericN, idOldDecimal, idOldNumeric,
		idOldChar, idOldVarChar, idOldBinary, idOldVarBinary:
		m.byteLengthInfo(&w)
	case idBigVarBinary, idBigVarChar, idBigBinary, idBigChar, idNVarChar, idNChar:
		m.shortLengthInfo(&w)
	case idText, idNText, idImage, idVariant:
		m.longLengthInfo(&w)
	case idXML:
		w.typ.Kind, w.form = sqltype.XML, formPLP
		w.typ.Length = sqltype.Max
		if m.u8() != 0 {
			m.malformed("an XML schema collection, which this server does not model")
		}
	default:
		m.malformed("data type 0x%02X, which this server does not model", w.id)
	}
	return w
}

// kindsBySize are the types that only their length tells apart.
var kindsBySize = map[uint8]map[int]sqltype.Kind{
	idGUID:      {16: sqltype.UniqueIdentifier, 0: sqltype.UniqueIdentifier},
	idIntN:      {1: sqltype.TinyInt, 2: sqltype.SmallInt, 4: sqltype.Int, 8: sqltype.BigInt},
	idBitN:      {1: sqltype.Bit},
	idFloatN:    {4: sqltype.Real, 8: sqltype.Float},
	idMoneyN:    {4: sqltype.Money, 8: sqltype.Money},
	idDateTimeN: {4: sqltype.SmallDateTime, 8: sqltype.DateTime},
}

func (m *message) dateTimeInfo(w *wireType) {
	w.form = formByte
	switch w.id {
	case idDate:
		w.typ.Kind, w.size = sqltype.Date, 3
		return
	case idTime:
		w.typ.Kind = sqltype.Time
	case idDateTime2:
		w.typ.Kind, w.size = sqltype.DateTime2, 3
	case idDateTimeOffset:
		w.typ.Kind, w.size = sqltype.DateTimeOffset, 5
	}
	w.typ.Scale = m.u8()
	if w.typ.Scale > 7 {
		m.malformed("a time of scale %d", w.typ.Scale)
		return
	}
	w.size += timeBytes(w.typ.Scale)
}

func (m *message) byteLengthInfo(w *wireType) {
	w.form, w.size = formByte, int(m.u8())
	kind := kindsBySize[w.id][w.size]
	switch w.id {
	case idDecimalN, idNumericN, idOldDecimal, idOldNumeric:
		kind = sqltype.Decimal
		w.typ.Precision, w.typ.Scale = m.u8(), m.u8()
		if m.err == nil && (w.typ.Precision < 1 || w.typ.Precision > 38 || w.typ.Scale > w.typ.Precision) {
			m.malformed("a decimal(%d,%d)", w.typ.Precision, w.typ.Scale)
		}
	case idOldChar, idOldVarChar:
		kind = sqltype.VarChar
		w.typ.Length, w.page = w.size, windows1252
	case idOldBinary, idOldVarBinary:
		kind = sqltype.VarBinary
		w.typ.Length = w.size
	}
	if kind == sqltype.Null {
		m.malformed("data type 0x%02X of %d bytes", w.id, w.size)
	}
	w.typ.Kind = kind
}

func (m *message) shortLengthInfo(w *wireType) {
	w.form, w.size = formShort, int(m.u16())
	w.typ.Length = w.size
	switch w.id {
	case idBigVarBinary:
		w.typ.Kind = sqltype.VarBinary
	case idBigBinary:
		w.typ.Kind = sqltype.Binary
	case idBigVarChar, idBigChar:
		w.typ.Kind = sqltype.VarChar
		if w.id == idBigChar {
			w.typ.Kind = sqltype.Char
		}
		m.collation(w)
	case idNVarChar, idNChar:
		w.typ.Kind = sqltype.NVarChar
		if w.id == idNChar {
			w.typ.Kind = sqltype.NChar
		}
		w.typ.Length /= 2
		m.collation(w)
	}
	switch {
	case w.size == maxShort:
		w.form, w.typ.Length = formPLP, sqltype.Max
	case w.size > longestBytes:
		m.malformed("a data type 0x%02X of %d bytes", w.id, w.size)
	}
}

func (m *message) longLengthInfo(w *wireType) {
	w.form, w.size = formLong, int(m.u32())
	w.typ.Length = sqltype.Max
	switch w.id {
	case idText:
		w.typ.Kind = sqltype.VarChar
		m.collation(w)
	case idNText:
		w.typ.Kind = sqltype.NVarChar
		m.collation(w)
	case idImage:
		w.typ.Kind = sqltype.VarBinary
	case idVariant:
		w.typ.Kind, w.typ.Length, w.form = sqltype.SQLVariant, 0, formVariant
	}
}

// lcidEnglish is the locale of Latin1_General and of SQL_Latin1_General_CP1.
const lcidEnglish = 0x0409

const (
	collationIgnoreCase   = 0x01
	collationIgnoreAccent = 0x02
	collationBinary       = 0x10
	collationBinary2      = 0x20
	collationUTF8         = 0x40
)

// collation reads the five bytes of MS-TDS 2.2.5.1.2. All zeros, which
// go-mssqldb sends, is the default of the database and leaves Type.Collation
// nil. A client can only name a collation that the server told it.
func (m *message) collation(w *wireType) {
	bits, sortID := m.u32(), m.u8()
	if m.err != nil {
		return
	}
	if bits == 0 && sortID == 0 {
		w.page = windows1252
		return
	}
	c := &sqltype.Collation{
		LCID:    bits & 0xfffff,
		Flags:   uint8(bits >> 20),
		Version: uint8(bits >> 28),
		SortID:  sortID,
	}
	c.UTF8 = c.Flags&collationUTF8 != 0
	c.Binary = c.Flags&(collationBinary|collationBinary2) != 0
	c.CaseSensitive = c.Flags&collationIgnoreCase == 0
	c.AccentSensitive = c.Flags&collationIgnoreAccent == 0
	if c.CodePage = 1252; c.UTF8 {
		c.CodePage = 65001
	}
	wide := w.id == idNVarChar || w.id == idNChar || w.id == idNText
	if c.LCID != lcidEnglish && !wide && !c.UTF8 {
		m.malformed("a varchar whose collation has locale 0x%05X, which this server does not model", c.LCID)
	}
	w.typ.Collation, w.page = c, pageOf(c)
}

func appendCollation(b []byte, c *sqltype.Collation) []byte {
	if c == nil {
		return append(b, 0, 0, 0, 0, 0)
	}
	bits := c.LCID&0xfffff | uint32(c.Flags)<<20 | uint32(c.Version)<<28
	return append(b, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24), c.SortID)
}
