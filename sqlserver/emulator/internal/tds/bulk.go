package tds

import (
	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// bulkReader reads the rows of a bulk load while they arrive: COLMETADATA,
// ROWs and a DONE (MS-TDS 2.2.6.1). FreeTDS sends no DONE: its last row ends the
// message (tds_bcp_done in its src/tds/bulk.c), and SQL Server takes that. A
// message that ends within a row is refused.
type bulkReader struct {
	m       *message
	types   []wireType
	columns []Column
	row     []sqltype.Value
	ended   bool
}

// readBulk reads the COLMETADATA in front of the rows.
func readBulk(m *message) *bulkReader {
	r := &bulkReader{m: m}
	if token := m.u8(); m.err == nil && token != tokenColMetadata {
		m.malformed("token 0x%02X at the head of a bulk load", token)
		return r
	}
	n := int(m.u16())
	if m.err == nil && (n < 1 || n > maxColumns) {
		m.malformed("a bulk load of %d columns", n)
	}
	for i := 0; i < n && m.err == nil; i++ {
		m.u32() // user type
		flags := m.u16()
		w := m.typeInfo()
		if w.id == idText || w.id == idNText || w.id == idImage {
			m.text() // the table's name
		}
		r.types = append(r.types, w)
		r.columns = append(r.columns, Column{
			Name:     m.shortText(),
			Type:     w.typ,
			Nullable: flags&flagNullable != 0,
			Identity: flags&flagIdentity != 0,
		})
	}
	r.row = make([]sqltype.Value, len(r.types))
	return r
}

// next returns the next row, which is good until the next call; false is the
// end.
func (r *bulkReader) next() ([]sqltype.Value, bool, error) {
	m := r.m
	if r.ended || m.err != nil {
		return nil, false, m.err
	}
	m.discard()
	if !m.more() {
		r.ended = m.err == nil
		return nil, false, m.err
	}
	switch token := m.u8(); {
	case token == tokenRow:
		for i := range r.types {
			r.read(i)
		}
	case token == tokenNBCRow:
		// The bitmap is copied: reading on may move the buffer.
		var nulls [(maxColumns + 7) / 8]byte
		copy(nulls[:], m.bytes((len(r.types)+7)/8))
		for i := range r.types {
			if nulls[i/8]&(1<<(i%8)) == 0 {
				r.read(i)
			} else {
				r.row[i] = sqltype.Value{}
			}
		}
	case token == tokenDone:
		m.bytes(12)
		m.rest()
		r.ended = true
		return nil, false, m.err
	default:
		m.malformed("token 0x%02X among the rows of a bulk load", token)
	}
	return r.row, m.err == nil, m.err
}

// read reads the value of a column. Columns of bulk loads often say the same row
// after row: a million rows then hold one copy.
func (r *bulkReader) read(column int) {
	v := r.m.value(&r.types[column], true)
	if last := &r.row[column]; v.S == last.S {
		v.S = last.S
	}
	r.row[column] = v
}

// drain reads what an engine left unread, so that the next message is found.
func (r *bulkReader) drain() error {
	for r.m.err == nil && !r.m.last {
		r.m.pos = len(r.m.buf)
		r.m.discard()
		r.m.fill()
	}
	return r.m.err
}
