package diagnose

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// planFacts are what a showplan says about how the outbox is read. The format is
// Microsoft's showplanxml.xsd
// (schemas.microsoft.com/sqlserver/2004/07/showplan).
type planFacts struct {
	accesses []planAccess
	// unmatched are filtered indexes that a parameter kept out.
	unmatched []string
	// converts are the expressions of implicit conversions that cost a seek.
	converts []string
	// eagerSpools and sorts count operators.
	eagerSpools, sorts int
}

// planAccess is one operator that reads the table.
type planAccess struct {
	operator string // Index Seek, Clustered Index Scan, …
	index    string
	lookup   bool
	seeks    bool
}

// readShowplan reads the statements of a plan that touch the table. It takes the
// plan apart token by token, because operators nest as deep as the query does.
func readShowplan(text, table string) (planFacts, error) {
	r := showplanReader{table: table, dec: xml.NewDecoder(strings.NewReader(text))}
	// A plan from dm_exec_text_query_plan is text that calls itself UTF-16.
	r.dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		token, err := r.dec.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return planFacts{}, fmt.Errorf("read the showplan: %w", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			r.start(token)
		case xml.EndElement:
			r.end(token.Name.Local)
		}
	}
	return r.facts, nil
}

type showplanReader struct {
	dec   *xml.Decoder
	table string
	facts planFacts
	// of the statement at hand: kept when it touches the table
	statement planFacts
	touches   bool
	// operators above the current element
	operators []string
	scan      *planAccess
	inside    map[string]int
}

func (r *showplanReader) start(e xml.StartElement) {
	if r.inside == nil {
		r.inside = make(map[string]int)
	}
	name := e.Name.Local
	r.inside[name]++
	switch name {
	case "StmtSimple", "StmtCursor":
		r.statement, r.touches = planFacts{}, false
	case "RelOp":
		r.operators = append(r.operators, attr(e, "PhysicalOp"))
		if attr(e, "LogicalOp") == "Eager Spool" {
			r.statement.eagerSpools++
		}
		if attr(e, "PhysicalOp") == "Sort" {
			r.statement.sorts++
		}
	case "IndexScan", "TableScan":
		r.scan = &planAccess{operator: r.operator(), lookup: isTrue(attr(e, "Lookup"))}
	case "SeekPredicates":
		if r.scan != nil {
			r.scan.seeks = true
		}
	case "Object":
		r.object(e)
	case "PlanAffectingConvert":
		if strings.EqualFold(attr(e, "ConvertIssue"), "Seek Plan") {
			r.statement.converts = append(r.statement.converts, attr(e, "Expression"))
		}
	}
}

func (r *showplanReader) end(name string) {
	r.inside[name]--
	switch name {
	case "RelOp":
		if n := len(r.operators); n > 0 {
			r.operators = r.operators[:n-1]
		}
	case "IndexScan", "TableScan":
		if r.scan != nil && r.scan.index != "" {
			r.statement.accesses = append(r.statement.accesses, *r.scan)
			r.touches = true
		}
		r.scan = nil
	case "StmtSimple", "StmtCursor":
		if r.touches || len(r.statement.unmatched) > 0 {
			r.facts = r.facts.with(r.statement)
		}
	}
}

// object is a table or index: of the operator at hand, or one that was passed
// over.
func (r *showplanReader) object(e xml.StartElement) {
	if !r.names(e) {
		return
	}
	index := unquote(attr(e, "Index"))
	switch {
	case r.inside["UnmatchedIndexes"] > 0:
		r.statement.unmatched = append(r.statement.unmatched, index)
	case r.scan != nil && r.scan.index == "":
		r.scan.index = index
		if index == "" {
			r.scan.index = "the heap"
		}
	}
}

// names says whether the element is about the event table.
func (r *showplanReader) names(e xml.StartElement) bool {
	return strings.EqualFold(unquote(attr(e, "Table")), r.table)
}

func (r *showplanReader) operator() string {
	if n := len(r.operators); n > 0 {
		return r.operators[n-1]
	}
	return "Scan"
}

func (f planFacts) with(o planFacts) planFacts {
	f.accesses = append(f.accesses, o.accesses...)
	f.unmatched = append(f.unmatched, o.unmatched...)
	f.converts = append(f.converts, o.converts...)
	f.eagerSpools += o.eagerSpools
	f.sorts += o.sorts
	return f
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// isTrue reads an xsd:boolean.
func isTrue(v string) bool { return v == "1" || strings.EqualFold(v, "true") }

// unquote takes the brackets off a name.
func unquote(name string) string {
	if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		return strings.ReplaceAll(name[1:len(name)-1], "]]", "]")
	}
	return name
}

// reads says how an access reaches its rows.
func (a planAccess) reads() string {
	switch {
	case a.lookup:
		return "looks up " + a.index
	case a.scans():
		return "scans " + a.index
	default:
		return "seeks " + a.index
	}
}

// scans: an ordered scan of a small filtered index is a scan all the same.
func (a planAccess) scans() bool {
	return !a.lookup && (strings.Contains(a.operator, "Scan") || !a.seeks && !strings.Contains(a.operator, "Seek"))
}
