package engine

import (
	"encoding/xml"
	"fmt"
	"hash/fnv"
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// showplanNamespace is that of Microsoft's showplanxml.xsd.
const showplanNamespace = "http://schemas.microsoft.com/sqlserver/2004/07/showplan"

// showplan describes a plan in the words of SQL Server's showplan: what each
// statement reads, by which index, by seek or scan, and the warnings. Costs,
// estimates and the operators above the reads are absent: the engine has none.
func (e *Engine) showplan(p plan) string { return e.showplanOf(p, p.statements) }

// showplanOf is that of some of the plan's statements.
func (e *Engine) showplanOf(p plan, statements []*measured) string {
	d := &showplanDoc{database: e.config.Database}
	d.open("ShowPlanXML", "xmlns", showplanNamespace, "Version", "1.564", "Build", "emulator")
	d.open("BatchSequence")
	d.open("Batch")
	d.open("Statements")
	for i, m := range statements {
		m.mu.Lock()
		shape := m.shape
		m.mu.Unlock()
		if shape == nil {
			shape = m.unit.shape()
		}
		if shape == nil { // not compiled yet
			continue
		}
		d.statement(i+1, m, shape, p.options())
	}
	d.closeAll()
	return d.b.String()
}

type showplanDoc struct {
	b        strings.Builder
	database string
	stack    []string
	node     int
}

// open begins an element; attrs are names and values in turn.
func (d *showplanDoc) open(name string, attrs ...string) {
	d.begin(name, attrs)
	d.b.WriteByte('>')
	d.stack = append(d.stack, name)
}

func (d *showplanDoc) empty(name string, attrs ...string) {
	d.begin(name, attrs)
	d.b.WriteString("/>")
}

func (d *showplanDoc) begin(name string, attrs []string) {
	d.b.WriteString("<" + name)
	for i := 0; i < len(attrs); i += 2 {
		d.b.WriteString(" " + attrs[i] + `="`)
		_ = xml.EscapeText(&d.b, []byte(attrs[i+1])) // a Builder does not fail
		d.b.WriteByte('"')
	}
}

func (d *showplanDoc) close() {
	last := len(d.stack) - 1
	d.b.WriteString("</" + d.stack[last] + ">")
	d.stack = d.stack[:last]
}

func (d *showplanDoc) closeAll() {
	for len(d.stack) > 0 {
		d.close()
	}
}

func (d *showplanDoc) statement(id int, m *measured, s *planShape, options int32) {
	text := m.text()
	d.open("StmtSimple", "StatementText", text, "StatementId", fmt.Sprint(id), "StatementType", m.kind,
		"QueryHash", hexText(queryHash(text)), "QueryPlanHash", hexText(s.hash()))
	d.setOptions(options)
	d.open("QueryPlan")
	d.unmatched(s)
	d.warnings(s)
	d.node = 0
	d.reads(s.accesses)
	d.close()
	d.close()
}

func (d *showplanDoc) setOptions(options int32) {
	var attrs []string
	for _, o := range []struct {
		name string
		bit  int32
	}{
		{"QUOTED_IDENTIFIER", 64},
		{"ARITHABORT", 4096},
		{"CONCAT_NULL_YIELDS_NULL", 8},
		{"ANSI_NULLS", 32},
		{"ANSI_PADDING", 1},
		{"ANSI_WARNINGS", 16},
		{"NUMERIC_ROUNDABORT", 8192},
	} {
		attrs = append(attrs, o.name, fmt.Sprint(options&o.bit != 0))
	}
	d.empty("StatementSetOptions", attrs...)
}

// unmatched are the filtered indexes that parameterization kept out.
func (d *showplanDoc) unmatched(s *planShape) {
	if !s.hasUnmatched() {
		return
	}
	d.open("UnmatchedIndexes")
	d.open("Parameterization")
	for _, a := range s.accesses {
		for _, ix := range a.unmatched {
			d.object(a.table, ix)
		}
	}
	d.close()
	d.close()
}

func (s *planShape) hasUnmatched() bool {
	for _, a := range s.accesses {
		if len(a.unmatched) > 0 {
			return true
		}
	}
	return false
}

func (d *showplanDoc) warnings(s *planShape) {
	if !s.hasUnmatched() && len(s.converts) == 0 {
		return
	}
	var attrs []string
	if s.hasUnmatched() {
		attrs = []string{"UnmatchedIndexes", "true"}
	}
	d.open("Warnings", attrs...)
	for _, c := range s.converts {
		d.empty("PlanAffectingConvert", "ConvertIssue", "Seek Plan", "Expression", c.expression(d.database))
	}
	d.close()
}

func (c implicitConvert) expression(database string) string {
	return fmt.Sprintf("CONVERT_IMPLICIT(%s,%s.[%s],0)", convertText(c.to), tableText(database, c.table), c.table.columns[c.column].name)
}

func convertText(t sqltype.Type) string {
	name := strings.ToLower(t.Name())
	switch {
	case !isLong(t):
		return name
	case t.Length == sqltype.Max:
		return name + "(max)"
	}
	return fmt.Sprintf("%s(%d)", name, t.Length)
}

func tableText(database string, t *tableDef) string {
	return fmt.Sprintf("[%s].[%s].[%s]", database, t.schema, t.name)
}

// reads are nested loops over the tables in the order of the text.
func (d *showplanDoc) reads(list []*planAccess) {
	switch len(list) {
	case 0:
		return
	case 1:
		d.read(list[0])
		return
	}
	d.relOp("Nested Loops", "Inner Join")
	d.open("NestedLoops", "Optimized", "false")
	d.reads(list[:len(list)-1])
	d.read(list[len(list)-1])
	d.close()
	d.close()
}

func (d *showplanDoc) read(a *planAccess) {
	if a.lookup {
		d.relOp("Nested Loops", "Inner Join")
		d.open("NestedLoops", "Optimized", "false")
		d.indexScan(a, a.index, false)
		d.lookup(a)
		d.close()
		d.close()
		return
	}
	d.indexScan(a, a.index, false)
}

func (d *showplanDoc) lookup(a *planAccess) {
	if cl := a.table.clustered(); cl != nil {
		d.indexScan(a, cl, true)
		return
	}
	d.relOp("RID Lookup", "RID Lookup")
	d.open("IndexScan", "Lookup", "true", "Ordered", "true")
	d.object(a.table, nil)
	d.close()
	d.close()
}

func (d *showplanDoc) indexScan(a *planAccess, ix *indexDef, lookup bool) {
	if ix == nil {
		d.relOp("Table Scan", "Table Scan")
		d.open("TableScan", "Ordered", "false")
		d.object(a.table, nil)
		d.close()
		d.close()
		return
	}
	what := "Index "
	if ix.clustered {
		what = "Clustered Index "
	}
	how := "Scan"
	if lookup || a.seeks() {
		how = "Seek"
	}
	d.relOp(what+how, what+how)
	direction := "FORWARD"
	if a.reverse && !lookup {
		direction = "BACKWARD"
	}
	attrs := []string{"Ordered", fmt.Sprint(lookup || a.ordered || a.seeks()), "ScanDirection", direction}
	if lookup {
		attrs = append(attrs, "Lookup", "true")
	}
	d.open("IndexScan", attrs...)
	d.object(a.table, ix)
	if !lookup && a.seeks() {
		d.seekPredicates(a)
	}
	d.close()
	d.close()
}

func (d *showplanDoc) seekPredicates(a *planAccess) {
	d.open("SeekPredicates")
	d.open("SeekPredicateNew")
	d.open("SeekKeys")
	column := func(k indexColumn) {
		d.open("RangeColumns")
		d.empty("ColumnReference", "Database", "["+d.database+"]", "Schema", "["+a.table.schema+"]", "Table", "["+a.table.name+"]", "Column", a.table.columns[k.column].name)
		d.close()
	}
	if a.equal > 0 {
		d.open("Prefix", "ScanType", "EQ")
		for _, k := range a.index.key[:a.equal] {
			column(k)
		}
		d.close()
	}
	for _, end := range []struct {
		name      string
		at        *rangeEnd
		open, too string
	}{{"StartRange", a.lower, "GT", "GE"}, {"EndRange", a.upper, "LT", "LE"}} {
		if end.at == nil {
			continue
		}
		scan := end.open
		if end.at.inclusive {
			scan = end.too
		}
		d.open(end.name, "ScanType", scan)
		column(a.index.key[a.equal])
		d.close()
	}
	d.close()
	d.close()
	d.close()
}

func (d *showplanDoc) relOp(physical, logical string) {
	d.open("RelOp", "NodeId", fmt.Sprint(d.node), "PhysicalOp", physical, "LogicalOp", logical, "Parallel", "false")
	d.node++
}

func (d *showplanDoc) object(t *tableDef, ix *indexDef) {
	attrs := []string{"Database", "[" + d.database + "]", "Schema", "[" + t.schema + "]", "Table", "[" + t.name + "]"}
	if ix != nil {
		kind := "NonClustered"
		if ix.clustered {
			kind = "Clustered"
		}
		attrs = append(attrs, "Index", "["+ix.name+"]", "IndexKind", kind)
	} else {
		attrs = append(attrs, "IndexKind", "Heap")
	}
	d.empty("Object", attrs...)
}

// hash is query_plan_hash: the same for plans that reach the same tables in the
// same way.
func (s *planShape) hash() string {
	d := &showplanDoc{}
	d.reads(s.accesses)
	h := fnv.New64a()
	h.Write([]byte(d.b.String()))
	return hashBytes(h.Sum64())
}

func hexText(s string) string { return fmt.Sprintf("0x%X", s) }
