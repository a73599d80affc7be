package tds

import (
	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

const tableKind = sqltype.TableType

const (
	tvpRow     = 0x01
	tvpEnd     = 0x00
	tvpOrder   = 0x10
	tvpColumns = 0x11
	tvpNoData  = 0xffff
	// tvpDefault marks a column whose values are left out: every row has the
	// column's default.
	tvpDefault = 0x0200
	// maxColumns is the limit of a table (maximum-capacity-specifications).
	maxColumns = 1024
	// maxTableCells bounds what a table-valued parameter takes in memory: on the
	// wire a NULL is one byte and a default nothing.
	maxTableCells = 4 << 20
)

// table reads a table-valued parameter (MS-TDS 2.2.5.5.5), its type id having
// been read. Columns that the client leaves to their defaults have NULL in
// every row.
func (m *message) table() *Table {
	m.shortText() // database: must be empty
	schema, name := m.shortText(), m.shortText()
	t := &Table{TypeName: name}
	if schema != "" {
		t.TypeName = schema + "." + name
	}
	n := int(m.u16())
	if n == tvpNoData {
		n = 0
	}
	if n > maxColumns {
		m.malformed("a table type of %d columns", n)
	}
	var types []wireType
	var defaulted []bool
	for range n {
		m.u32() // user type
		flags := m.u16()
		w := m.typeInfo()
		name := m.shortText()
		if m.err != nil {
			return nil
		}
		types = append(types, w)
		defaulted = append(defaulted, flags&tvpDefault != 0)
		t.Columns = append(t.Columns, Column{Name: name, Type: w.typ, Nullable: flags&flagNullable != 0})
	}
	m.tableMetadata()
	for m.err == nil {
		switch token := m.u8(); token {
		case tvpEnd:
			return t
		case tvpRow:
			if n == 0 {
				m.malformed("a row in a table type without columns")
				return nil
			}
			if len(t.Rows)*n > maxTableCells {
				m.malformed("a table-valued parameter of more than %d values", maxTableCells)
				return nil
			}
			row := make([]sqltype.Value, n)
			for i := range types {
				if !defaulted[i] {
					row[i] = m.value(&types[i], false)
				}
			}
			t.Rows = append(t.Rows, row)
		default:
			m.malformed("token 0x%02X in a table-valued parameter", token)
		}
	}
	return nil
}

// tableMetadata skips the optional order and column ordinals, up to and with
// the end token.
func (m *message) tableMetadata() {
	for m.err == nil {
		switch token := m.u8(); token {
		case tvpEnd:
			return
		case tvpOrder:
			m.bytes(3 * int(m.u16())) // column number and flags each
		case tvpColumns:
			m.malformed("a table-valued parameter with its columns in another order")
		default:
			m.malformed("token 0x%02X in the head of a table-valued parameter", token)
		}
	}
}
