package sqlserver

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/scripts"
)

// InspectOptions say what the tables are compared with.
type InspectOptions struct {
	Names
	// Types are those of columns that are missing, and the form of the claim
	// index; the names in them are not looked at. What is there may be of other
	// types.
	Types scripts.Options
	// BlockSize is how many ids a writer takes with one value of the sequence;
	// default 50.
	BlockSize int64
	// ScanStatus counts unknown values of status however large the table is:
	// without it a table of more than a million rows is not read.
	ScanStatus bool
}

// Inspection is what Inspect found.
type Inspection struct {
	// Findings are in the order in which they are mended best.
	Findings []Finding
	Edition  Edition
	// Notes are what is as it may be and yet not as Types have it: sentences.
	Notes []string
	// Rows of the event table, by the catalog; 0 where it is missing.
	Rows int64
}

// Inspect compares the tables, indexes and the sequence of an outbox with what
// the worker and the writers need, and finds all that is wrong; Store.Check, of
// the same rules, stops at the first that a worker cannot start with. It reads
// the catalog, one id, and where no constraint proves status the table once. It
// needs a right on the tables, and VIEW DEFINITION to see filters, checks and
// defaults.
func Inspect(ctx context.Context, conn *sql.Conn, o InspectOptions) (Inspection, error) {
	o.BlockSize = cmp.Or(o.BlockSize, 50)
	o.Names = o.Names.WithDefaults()
	o.Types.Schema, o.Types.Table, o.Types.ClaimIndex, o.Types.RetryIndex = o.Schema, o.Table, o.ClaimIndex, o.RetryIndex
	i := inspector{conn: conn, o: o}
	var err error
	if i.script, err = scripts.Define(o.Types); err != nil {
		return i.Inspection, err
	}
	for _, step := range []func(context.Context) error{i.database, i.events, i.receipts, i.workers, i.controls} {
		if err := step(ctx); err != nil {
			return i.Inspection, err
		}
	}
	return i.Inspection, nil
}

type inspector struct {
	Inspection
	conn   *sql.Conn
	o      InspectOptions
	script scripts.Definitions
}

func (i *inspector) add(defects ...defect) {
	for _, d := range defects {
		i.Findings = append(i.Findings, d.Finding)
	}
}

func (i *inspector) database(ctx context.Context) (err error) {
	if i.Edition, err = ReadEdition(ctx, i.conn); err != nil {
		return err
	}
	state, err := readDatabaseState(ctx, i.conn)
	if err != nil {
		return err
	}
	if state.readOnly {
		i.add(defect{Finding: Finding{
			Severity: Must, Object: "database", Problem: "the database is READ_ONLY here: a secondary, or the primary before a failover",
			Advice: "connect to the primary: no applicationintent=ReadOnly in the DSN",
		}})
	}
	if state.noOpenJSON {
		i.add(defect{Finding: Finding{
			Severity: Must, Object: "database", Problem: fmt.Sprintf("the database has compatibility level %d and OPENJSON needs %d", state.level, openJSONLevel),
			SQL: fmt.Sprintf("ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = %d;", openJSONLevel),
		}})
	}
	return nil
}

func (i *inspector) events(ctx context.Context) error {
	names := i.o.Names
	columns, err := readColumns(ctx, i.conn, names.Events())
	if err != nil {
		return err
	}
	seq, err := readSequence(ctx, i.conn, names)
	if err != nil {
		return err
	}
	if len(columns) == 0 {
		if seq == nil {
			i.missing("sequence "+names.String()+"_seq", NoSequence, i.script.Sequence, Should)
		}
		i.missing("table "+names.String(), "the event table is missing, or this login has no right on it", i.script.Events.Create, Must)
		i.missing("index "+names.ClaimIndex, "the index "+names.ClaimIndex+" is not there", i.script.ClaimIndex, Must)
		i.missing("index "+names.RetryIndex, "the index "+names.RetryIndex+" is not there", i.script.RetryIndex, Must)
		return nil
	}
	if i.Rows, err = tableRows(ctx, i.conn, names.Events()); err != nil {
		return err
	}
	defaults, err := readDefaults(ctx, i.conn, names.Events())
	if err != nil {
		return err
	}
	indexes, err := readIndexes(ctx, i.conn, names)
	if err != nil {
		return err
	}
	i.sequence(seq, columns)
	table := tableRef{names.String(), names.Events()}
	missing := i.missingColumns(table, columns, i.script.Events.Columns, i.Rows)
	i.add(misfits(columns, eventRules, table, i.script.Events.Columns)...)
	i.add(nullability(columns, table)...)
	i.add(defaultDefects(columns, defaults, names, i.script.Events.Columns)...)
	i.payload(columns)
	i.otherPayload(columns)
	if err := i.status(ctx, columns); err != nil {
		return err
	}
	i.indexes(indexes, missing)
	if seq == nil || !slices.ContainsFunc(slices.Collect(maps.Values(indexes)), func(x index) bool { return len(x.key) > 0 && x.key[0] == "id" && !x.filtered }) {
		return nil
	}
	highest, err := readHighestID(ctx, i.conn, names)
	if err != nil {
		return err
	}
	// Again, and after the rows: writers draw and insert while this looks, and ids
	// of a block that was drawn since would seem to be above the sequence.
	if seq, err = readSequence(ctx, i.conn, names); err != nil || seq == nil {
		return err
	}
	i.add(seq.defects(names, i.o.BlockSize, highest, columns["id"])...)
	return nil
}

// missing is an object that the script makes.
func (i *inspector) missing(object, problem, sql string, severity Severity) {
	i.add(defect{Finding: Finding{Severity: severity, Object: object, Problem: problem, SQL: sql, Adds: true}})
}

// NoSequence begins the problem of a sequence that is missing or that may not be seen:
// the catalog does not tell the two apart.
const NoSequence = "the sequence of ids is missing, or this login has no right on it"

func (i *inspector) sequence(seq *sequence, columns map[string]column) {
	if seq != nil || columns["id"].identity {
		return
	}
	name := "sequence " + i.o.String() + "_seq"
	problem := NoSequence + "; writers that take ids from another one do not need it"
	if i.Rows == 0 {
		i.missing(name, problem, i.script.Sequence, Should)
		return
	}
	i.add(defect{Finding: Finding{
		Severity: Should, Object: name, Problem: problem,
		SQL:    fmt.Sprintf("CREATE SEQUENCE %s AS BIGINT START WITH <above the highest id> INCREMENT BY %d MINVALUE 1 NO CYCLE CACHE 100;", i.o.Sequence(), i.o.BlockSize),
		Advice: "choose START WITH above every id that a writer may still hold, so that no id comes twice",
	}})
}

// missingColumns finds what is not there; what an ALTER TABLE cannot add by
// itself is left to a person. It returns the names of those.
func (i *inspector) missingColumns(table tableRef, columns map[string]column, definitions []scripts.ColumnDefinition, rows int64) (left []string) {
	for _, d := range definitions {
		if _, ok := columns[d.Name]; ok {
			continue
		}
		f := Finding{
			Severity: Must, Object: "column " + table.name + "." + d.Name, Problem: "the column " + d.Name + " is missing",
			SQL: "ALTER TABLE " + table.quoted + " ADD " + d.Definition + ";", Adds: true,
		}
		notNull := strings.Contains(d.Definition, " NOT NULL")
		_, _, hasDefault := strings.Cut(d.Definition, " DEFAULT ")
		switch {
		case rows == 0 || !notNull:
		case d.Name == "status":
			// The default is PENDING.
			f.Adds, f.SQL = false, strings.Replace(f.SQL, "DEFAULT (0)", "DEFAULT (1)", 1)
			f.Advice = fmt.Sprintf("what is there, %s, gets the default: with 0 all of it would be published. The statement calls it PROCESSED; drop that default after it and make it 0", quantity.Of(rows, "row"))
		case !hasDefault:
			f.Adds, f.SQL = false, ""
			f.Advice = fmt.Sprintf("the table has %s and only you know what should stand there: ALTER TABLE %s ADD %s needs a DEFAULT for that", quantity.Of(rows, "row"), table.quoted, d.Definition)
		case i.Edition.Online():
			// sql-docs, alter-table-transact-sql.md, "Add NOT NULL columns as an online
			// operation": the default is a runtime constant.
			f.Advice = "metadata only here: no row is written"
		default:
			f.Advice = fmt.Sprintf("this edition writes %s under a lock that lets nobody in", quantity.Of(rows, "row"))
		}
		if !f.Adds {
			left = append(left, d.Name)
		}
		i.add(defect{Finding: f})
	}
	return left
}

// payload says what the text columns cost, or lose.
func (i *inspector) payload(columns map[string]column) {
	for _, name := range []string{"payload", "headers"} {
		c, ok := columns[name]
		switch {
		case !ok || !c.isText():
		case c.isUnicode():
			i.add(defect{Finding: Finding{
				Severity: Should, Object: "column " + i.o.String() + "." + name,
				Problem: fmt.Sprintf("the column %s is %s: two bytes a character in the row and in the log", name, c.declaration()),
				Advice:  "outboxctl migrate-varchar says what a UTF-8 collation saves, and loses nothing",
			}})
		case !c.utf8():
			i.add(defect{Finding: Finding{
				Severity: Should, Object: "column " + i.o.String() + "." + name,
				Problem: fmt.Sprintf("the column %s has the collation %s: what its code page lacks becomes a question mark or a look-alike without an error", name, c.collation),
				Advice:  "a collation whose name ends in _UTF8 loses nothing",
			}})
		}
	}
}

// otherPayload says that Types are those of a new table: the column that is there
// stays as it is. An index that holds a column keeps its type (sql-docs,
// alter-table-transact-sql.md, "ALTER COLUMN").
func (i *inspector) otherPayload(columns map[string]column) {
	c, ok := columns["payload"]
	want := i.o.Types.Payload
	if !ok || want == "" || strings.EqualFold(want, c.declaration()) {
		return
	}
	null := " NOT NULL"
	if c.nullable {
		null = " NULL"
	}
	i.Notes = append(i.Notes, fmt.Sprintf("payload is %s and stays so: %s is for a table that is made. To change it: ALTER TABLE %s ALTER COLUMN payload %s%s%s; an index that holds the column may refuse that (error 5074): drop it, change the column, schema apply makes it again, and workers wait meanwhile",
		c.declaration(), want, i.o.Events(), want, c.collate(), null))
}

func (i *inspector) status(ctx context.Context, columns map[string]column) error {
	c, ok := columns["status"]
	if !ok || !c.isInteger() {
		return nil
	}
	limit := int64(statusScanRows)
	if i.o.ScanStatus {
		limit = math.MaxInt64
	}
	if _, ok := columns["id"]; !ok {
		limit = -1
	}
	v, err := readStatusValues(ctx, i.conn, i.o.Names, c.nullable, limit)
	if err != nil {
		return err
	}
	i.add(v.defects(i.o.Names, c.nullable)...)
	return nil
}

// indexes adds the SQL to what is wrong with them. left are columns that are
// missing and stay so: no index can be made over them.
func (i *inspector) indexes(indexes map[string]index, left []string) {
	i.add(idIndexDefects(indexes, i.o.Names)...)
	create := map[string]string{"index " + i.o.ClaimIndex: i.script.ClaimIndex, "index " + i.o.RetryIndex: i.script.RetryIndex}
	for _, d := range indexDefects(indexes, i.o.Names) {
		batch := create[d.Object]
		switch {
		case d.number == 308:
			d.SQL, d.Adds = i.online(batch, ""), len(left) == 0
			if !d.Adds {
				d.Advice = "after its columns are there: " + strings.Join(left, ", ")
			}
		case d.number == 315:
			d.SQL = fmt.Sprintf("ALTER INDEX %s ON %s REBUILD%s;", quoteName(strings.TrimPrefix(d.Object, "index ")), i.o.Events(), i.with(""))
		case d.SQL == "":
			_, statement, _ := strings.Cut(batch, "\n")
			d.SQL = i.online(strings.TrimSpace(statement), "DROP_EXISTING = ON")
		}
		i.add(d)
	}
	i.add(moreIndexDefects(indexes, i.o.Names)...)
}

// online adds the options to a CREATE INDEX.
func (i *inspector) online(batch, option string) string {
	with := i.with(option)
	if with == "" {
		return batch
	}
	return strings.TrimSuffix(strings.TrimSpace(batch), ";") + "\n       " + with + ";"
}

func (i *inspector) with(option string) string {
	var options []string
	if option != "" {
		options = append(options, option)
	}
	if i.Edition.Online() {
		options = append(options, "ONLINE = ON")
	}
	if len(options) == 0 {
		return ""
	}
	return " WITH (" + strings.Join(options, ", ") + ")"
}

func (i *inspector) receipts(ctx context.Context) error {
	return i.side(ctx, tableRef{i.o.String() + "_claim", i.o.Receipts()}, "the receipt table", i.script.Receipts, receiptRules)
}

func (i *inspector) workers(ctx context.Context) error {
	return i.side(ctx, tableRef{i.o.String() + "_worker", i.o.Workers()}, "the table of heartbeats", i.script.Workers, workerRules)
}

func (i *inspector) controls(ctx context.Context) error {
	return i.side(ctx, tableRef{i.o.String() + "_control", i.o.Controls()}, "the table of what workers are told", i.script.Controls, controlRules)
}

// side is one of the small tables.
func (i *inspector) side(ctx context.Context, table tableRef, what string, definition scripts.TableDefinition, rules []columnRule) error {
	columns, err := readColumns(ctx, i.conn, table.quoted)
	if err != nil {
		return err
	}
	if len(columns) == 0 {
		i.missing("table "+table.name, what+" is missing, or this login has no right on it", definition.Create, Must)
		return nil
	}
	rows, err := tableRows(ctx, i.conn, table.quoted)
	if err != nil {
		return err
	}
	i.missingColumns(table, columns, definition.Columns, rows)
	i.add(misfits(columns, rules, table, definition.Columns)...)
	return nil
}

func sortedNames(columns map[string]column) []string { return slices.Sorted(maps.Keys(columns)) }
