package sqlserver

import (
	"fmt"
	"strings"

	"azsqloutbox/scripts"
)

// columnRule is what the statements need of one column.
type columnRule struct {
	name string
	fits func(column) bool
	want string
}

// eventRules are those of the event table. Length and collation are free.
var eventRules = []columnRule{
	{"id", column.isInteger, "a whole number"},
	{"status", column.isInteger, "a whole number"},
	{"retry_count", column.isInteger, "a whole number"},
	{"event_type", func(c column) bool { return c.isText() || c.isInteger() }, "VARCHAR, NVARCHAR or a whole number"},
	{"aggregate_type", column.isText, "VARCHAR or NVARCHAR"},
	{"aggregate_id", column.isText, "VARCHAR or NVARCHAR"},
	{"payload", column.isText, "VARCHAR or NVARCHAR"},
	{"headers", column.isText, "VARCHAR or NVARCHAR"},
	{"last_error", column.isText, "VARCHAR or NVARCHAR"},
	{"created_at", column.isTime, "DATETIME2"},
	{"retry_at", column.isTime, "DATETIME2"},
	// The fence compares it with the receipt's claimed_at. DATETIME rounds to
	// 1/300 s: no row would ever match its receipt.
	{"processed_at", column.holdsMilliseconds, "DATETIME2(3) or finer"},
}

// receiptRules are those of the receipt table.
var receiptRules = []columnRule{
	{"claim_id", func(c column) bool { return c.kind == "uniqueidentifier" }, "UNIQUEIDENTIFIER"},
	{"owner", column.isText, "VARCHAR"},
	{"event_type", column.isText, "VARCHAR or NVARCHAR"},
	{"claimed_at", column.holdsMilliseconds, "DATETIME2(3) or finer: the fence compares it with processed_at"},
	{"lease_until", column.isTime, "DATETIME2"},
	{"event_count", column.isInteger, "a whole number"},
	// 4,000 ids of 19 digits.
	{"event_ids", func(c column) bool { return c.isText() && c.bytes < 0 }, "VARCHAR(MAX)"},
}

// workerRules are those of the heartbeats.
var workerRules = []columnRule{
	{"owner", column.isText, "VARCHAR"},
	{"version", column.isText, "VARCHAR"},
	{"source", column.isText, "VARCHAR"},
	{"lease_ms", column.isInteger, "a whole number"},
	{"lanes", column.isInteger, "a whole number"},
	{"in_flight", column.isInteger, "a whole number"},
	{"breakers", column.isText, "VARCHAR(MAX)"},
	{"rates", column.isText, "VARCHAR(MAX)"},
	{"state", column.isText, "VARCHAR(MAX)"},
	{"started_at", column.isTime, "DATETIME2"},
	{"seen_at", column.isTime, "DATETIME2"},
}

// controlRules are those of what workers are told.
var controlRules = []columnRule{
	{"scope", column.isText, "VARCHAR"},
	{"name", column.isText, "NVARCHAR"},
	{"paused", func(c column) bool { return c.kind == "bit" || c.isInteger() }, "BIT"},
	{"changed_by", column.isText, "NVARCHAR"},
	{"reason", column.isText, "NVARCHAR"},
	{"changed_at", column.isTime, "DATETIME2"},
}

func (c column) isTime() bool { return c.kind == "datetime2" || c.kind == "datetime" }

func (c column) holdsMilliseconds() bool { return c.kind == "datetime2" && c.scale >= 3 }

// tableRef is a table's name for people and for statements.
type tableRef struct{ name, quoted string }

// misfits are the columns of a wrong type; those that are missing are not its
// business.
func misfits(columns map[string]column, rules []columnRule, table tableRef, definitions []scripts.ColumnDefinition) []defect {
	var found []defect
	for _, r := range rules {
		c, ok := columns[r.name]
		if !ok || r.fits(c) {
			continue
		}
		found = append(found, defect{stops: true, Finding: Finding{
			Severity: Must, Object: "column " + table.name + "." + r.name,
			Problem: fmt.Sprintf("the column %s is %s, must be %s", r.name, c.declaration(), r.want),
			SQL:     alterColumn(table.quoted, r.name, definitions),
			Advice:  "look at its values first; the indexes and the default that hold it stand in the way (error 5074 names them)",
		}})
	}
	return found
}

// nullRules say which columns must not be NULL, or must take it.
var nullRules = []struct {
	name     string
	nullable bool
	because  string
}{
	// Nobody would ever ask for its rows.
	{"event_type", false, "an event without a type would wait for ever"},
	{"id", false, "an event without an id cannot be claimed"},
	{"retry_count", false, "a claim cannot read an event without one"},
	{"created_at", false, "it is part of the MessageID"},
	{"processed_at", true, "an event that goes back to PENDING must have none"},
	{"retry_at", true, "an event that is parked must have none"},
}

// nullability is what breaks by a NULL, or by the lack of one.
func nullability(columns map[string]column, table tableRef) []defect {
	var found []defect
	for _, r := range nullRules {
		c, ok := columns[r.name]
		if !ok || c.nullable == r.nullable {
			continue
		}
		problem := fmt.Sprintf("the column %s may be NULL, and %s: make it NOT NULL", r.name, r.because)
		if r.nullable {
			problem = fmt.Sprintf("the column %s is NOT NULL, and %s: make it NULL", r.name, r.because)
		}
		found = append(found, defect{stops: true, Finding: Finding{
			Severity: Must, Object: "column " + table.name + "." + r.name, Problem: problem,
			SQL: alterTo(table.quoted, c, r.nullable),
		}})
	}
	return found
}

// alterTo keeps the type and collation of a column and changes whether it may
// be NULL.
func alterTo(table string, c column, nullable bool) string {
	null := " NOT NULL"
	if nullable {
		null = " NULL"
	}
	return "ALTER TABLE " + table + " ALTER COLUMN " + c.name + " " + c.declaration() + c.collate() + null + ";"
}

// alterColumn gives a column the script's type.
func alterColumn(table, name string, definitions []scripts.ColumnDefinition) string {
	for _, d := range definitions {
		if d.Name == name && name != "id" {
			without, _, _ := strings.Cut(d.Definition, " CONSTRAINT ")
			return "ALTER TABLE " + table + " ALTER COLUMN " + without + ";"
		}
	}
	return ""
}

// problem says which column a worker cannot start with, whatever its values.
func (t *table) problem() error {
	return stopping(append(misfits(t.columns, eventRules, tableRef{}, nil), nullability(t.columns, tableRef{})...))
}
