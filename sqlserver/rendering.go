package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Rendering fills the names of an outbox, and what its statements depend on in
// the columns of its event table, into texts. It is for programs that send the
// Store's own statements to another table, to measure them.
type Rendering struct {
	names    Names
	table    *table
	replacer *strings.Replacer
}

// ReadRendering looks at the columns of the event table. A table that is not
// there, that lacks a column, or that has one of a type no statement can work
// with, is an error that says so.
func ReadRendering(ctx context.Context, conn *sql.Conn, names Names) (*Rendering, error) {
	t, err := readTable(ctx, conn, names)
	if err != nil {
		return nil, err
	}
	if wrong := misfits(t.columns, eventRules, tableRef{names.String(), names.Events()}, nil); len(wrong) > 0 {
		return nil, fmt.Errorf("%s: %s; outboxctl schema check says more", wrong[0].Object, wrong[0].Problem)
	}
	if err := t.readReceiptType(ctx, conn, names); err != nil {
		return nil, err
	}
	return &Rendering{names: names, table: t, replacer: names.renderer(t)}, nil
}

// Replace fills in what Names.Replacer does, the types of columns ({id_t},
// {event_type_t}) and those that texts are read as ({payload_read_t},
// {headers_read_t}).
func (r *Rendering) Replace(text string) string { return r.replacer.Replace(text) }

// ClaimEvents and FlipClaim are the two requests of Store.Claim. The first takes
// @batch, @max_bytes, @event_type and @from and returns the id first; the second
// takes @ids, @claim_id, @owner, @event_type and @lease_ms and returns how many
// rows it flipped first.
func (r *Rendering) ClaimEvents() string { return r.Replace(claimEventsSQL) }
func (r *Rendering) FlipClaim() string   { return r.Replace(flipClaimSQL) }

// ColumnType is the type of a column that the statements use.
type ColumnType struct {
	Name string
	// Declaration is the type as T-SQL writes it, without the collation; an alias
	// type is its base type. Collation is empty for what is no text.
	Declaration, Collation string
	Nullable, Identity     bool
	// Bytes is what a text has room for, two bytes a character in NVARCHAR; 0 for
	// what is no text, math.MaxInt for MAX.
	Bytes   int
	Unicode bool
	// Highest is the largest value of a whole number; 0 for others.
	Highest int64
}

// Columns are those that the statements use, in the order of the script.
func (r *Rendering) Columns() []ColumnType {
	list := make([]ColumnType, len(neededColumns))
	for i, name := range neededColumns {
		c := r.table.columns[name]
		list[i] = ColumnType{Name: name, Declaration: c.declaration(), Collation: c.collation, Nullable: c.nullable, Identity: c.identity, Unicode: c.isUnicode()}
		switch {
		case c.isText() && c.bytes < 0:
			list[i].Bytes = math.MaxInt
		case c.isText():
			list[i].Bytes = c.bytes
		case c.isInteger():
			_, list[i].Highest = c.span()
		}
	}
	return list
}

// Others are the names of the table's other columns, sorted.
func (r *Rendering) Others() []string {
	return slices.DeleteFunc(sortedNames(r.table.columns), func(name string) bool { return slices.Contains(neededColumns, name) })
}
