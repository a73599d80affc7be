package diagnose

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// claimFacts are what section 3 judges.
type claimFacts struct {
	claims []claim
	index  string // the claim index by its configured name
	slim   bool   // it leaves the payload out
	exists bool
	// wide are the other indexes beside the primary key that have no filter.
	wide   map[string]bool
	compat int
	// more is how many plans were not read.
	more int
}

// claim is one cached statement that claims or looks for events, with its plan.
type claim struct {
	cachedStatement
	facts planFacts
	// problem is why there is no plan, remedy the GRANT where a right is missing.
	problem, remedy string
}

// plansRead is how many plans are asked for: a plan can be megabytes.
const plansRead = 12

func claimPlanSection(ctx context.Context, s *source, sec Section) (Section, error) {
	list, err := s.cached.read(ctx)
	if err != nil {
		return sec, err
	}
	catalog, err := s.indexes.read(ctx)
	if err != nil {
		return sec, err
	}
	f := claimFacts{index: s.claimIndex(), compat: s.env.compat, wide: make(map[string]bool)}
	for _, d := range catalog.indexes {
		f.wide[d.name] = d.id > 1 && !d.filtered
	}
	if ix, ok := catalog.find(f.index); ok {
		f.exists, f.slim = true, !ix.has("payload")
	}
	wanted := claimsOf(list)
	if len(wanted) > plansRead {
		f.more = len(wanted) - plansRead
		wanted = wanted[:plansRead]
	}
	for _, c := range wanted {
		text, err := s.readPlan(ctx, c)
		one := claim{cachedStatement: c}
		switch {
		case err != nil && ctx.Err() != nil:
			return sec, err
		case err != nil:
			one.problem, one.remedy = s.env.reason(ofServer, err)
		case text == "":
			one.problem = "The server gives no plan for it: it was evicted, or the text was parameterized."
		default:
			if one.facts, err = readShowplan(text, s.bareTable()); err != nil {
				one.problem = err.Error()
			}
		}
		f.claims = append(f.claims, one)
	}
	return judgeClaimPlan(f, sec), nil
}

// claimsOf are the statements whose plan decides what a claim costs: those of
// the worker that seek the claim index, and others that read pending events.
func claimsOf(list []cachedStatement) []cachedStatement {
	var out []cachedStatement
	for _, c := range list {
		if c.name == "ClaimEvents" && verb(c.text) == "SELECT" {
			out = append(out, c)
		}
	}
	for _, c := range list {
		if c.name == "FlipClaim" && verb(c.text) == "UPDATE" {
			out = append(out, c)
		}
	}
	others := len(out)
	for _, c := range list {
		if c.name == "" && readsStatus.MatchString(c.text) && slices.Contains([]string{"SELECT", "UPDATE", "WITH", "DELETE"}, verb(c.text)) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out[others:], func(a, b cachedStatement) int { return sign(float64(b.worker - a.worker)) })
	return out
}

// readsStatus is what asks for pending events: a text that names 1 or 2 alone asks
// for others, which the claim index does not hold.
var readsStatus = regexp.MustCompile(`(?is)\bstatus\]?\s*(=\s*[(\s]*(0\b|[^\s(0-9])|IN\b)`)

// sys-dm-exec-query-plan-transact-sql.md: NULL where the plan was evicted, and
// where it nests 128 levels deep or more.
const diagnosePlanSQL = `SELECT /* outbox:DiagnosePlan */ CONVERT(NVARCHAR(MAX), p.query_plan) AS query_plan
FROM   sys.dm_exec_query_plan(@plan) AS p;`

// sys-dm-exec-text-query-plan-transact-sql.md: no limit of depth.
const diagnoseTextPlanSQL = `SELECT /* outbox:DiagnoseTextPlan */ p.query_plan
FROM   sys.dm_exec_text_query_plan(@plan, @start, @end) AS p;`

// readPlan is the showplan of one statement, empty where the server has none.
func (s *source) readPlan(ctx context.Context, c cachedStatement) (string, error) {
	var text sql.NullString
	scan := func(rows *sql.Rows) error { return rows.Scan(&text) }
	if err := s.each(ctx, "read the plan of a statement", diagnosePlanSQL, []any{sql.Named("plan", c.plan)}, scan); err != nil {
		return "", err
	}
	if text.String != "" {
		return text.String, nil
	}
	args := []any{sql.Named("plan", c.plan), sql.Named("start", c.start), sql.Named("end", c.end)}
	if err := s.each(ctx, "read the plan of a statement as text", diagnoseTextPlanSQL, args, scan); err != nil {
		return "", err
	}
	return text.String, nil
}

func judgeClaimPlan(f claimFacts, sec Section) Section {
	if len(f.claims) == 0 {
		return sec.unknown("No statement in the plan cache reads pending events of this table.", "run diagnose while a worker runs")
	}
	table := Table{
		Title:   "Plans of the statements that claim",
		Columns: []Column{{"statement", Text}, {"reads the table by", Text}, {"runs", Count}, {"pages each", Pages}, {"CPU each", Milliseconds}, {"warnings", Text}},
	}
	for _, c := range f.claims {
		before := len(sec.Evidence.Findings)
		judgeClaim(f, c, &sec)
		for i := before; i < len(sec.Evidence.Findings); i++ {
			sec.Evidence.Findings[i].Foreign = c.name == ""
		}
		table.Rows = append(table.Rows, []any{
			c.label(), c.path(), c.executions, ratio(float64(c.reads), float64(c.executions)),
			ratio(float64(c.worker), float64(c.executions)) / 1000, c.warnings(),
		})
	}
	if i := slices.IndexFunc(f.claims, func(c claim) bool { return c.problem == "" }); i < 0 {
		sec = sec.unknown(f.claims[0].problem, f.claims[0].remedy)
	}
	sec.table(table)
	sec.note("These are the plans by which the statements ran, with measured pages and CPU; the costs that an optimizer estimates are left out on purpose.")
	if f.more > 0 {
		sec.note(fmt.Sprintf("Not read: %s of other statements.", counted(float64(f.more), "plan")))
	}
	return sec
}

func (c claim) path() string {
	if c.problem != "" {
		return "not known"
	}
	var parts []string
	for _, a := range c.facts.accesses {
		if p := a.reads(); !slices.Contains(parts, p) {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ", ")
}

func (c claim) warnings() string {
	var list []string
	if len(c.facts.unmatched) > 0 {
		list = append(list, "UnmatchedIndexes")
	}
	if len(c.facts.converts) > 0 {
		list = append(list, "CONVERT_IMPLICIT")
	}
	if c.facts.eagerSpools > 0 {
		list = append(list, "eager spool")
	}
	if c.facts.sorts > 0 {
		list = append(list, "sort")
	}
	if c.problem != "" {
		list = append(list, c.problem)
	}
	return strings.Join(list, ", ")
}

// toUnicode is a conversion to NVARCHAR or NCHAR, which rank above VARCHAR
// (data-type-precedence-transact-sql.md).
var toUnicode = regexp.MustCompile(`(?i)\bCONVERT_IMPLICIT\(n(var)?char\b`)

// judgeClaim says what is wrong with one plan, a sentence a trap.
func judgeClaim(f claimFacts, c claim, sec *Section) {
	label, p := c.say(), c.facts
	if c.problem != "" {
		sec.note(strings.TrimSpace(label + ": " + c.problem + " " + c.remedy))
		return
	}
	trouble := len(sec.Evidence.Findings)
	if len(p.unmatched) > 0 {
		sec.find(Bad, fmt.Sprintf("%s passes over the filtered index %s (UnmatchedIndexes): status is a parameter in it. The plan would have to hold for any value, so the filter never matches.", label, strings.Join(unique(p.unmatched), ", ")),
			"write status = 0 as a literal in the statement; in an ORM that means a native query")
	}
	for _, e := range unique(p.converts) {
		why, remedy := "the value has a type that ranks above the column's", "send the parameter in the column's own type, or CAST it to that"
		if toUnicode.MatchString(e) {
			why = "a parameter arrives as NVARCHAR and the column is VARCHAR"
			remedy = "send the parameter as VARCHAR: sendStringParametersAsUnicode=false in JDBC, mssql.VarChar in Go, DbType.AnsiString in .NET"
		}
		sec.find(Bad, fmt.Sprintf("%s converts the column, not the value (%s): %s, so that the optimizer could not seek by it.", label, oneLine(e, 80), why), remedy)
	}
	if p.eagerSpools > 0 {
		sec.find(Bad, fmt.Sprintf("%s has an eager spool: it writes what it reads, status, so the whole set is copied to tempdb first (Halloween protection).", label),
			"claim by a SELECT and flip by primary key in a second statement")
	}
	lookups := false
	for _, a := range p.accesses {
		lookups = lookups || a.lookup
		if a.scans() {
			judgeScan(f, c, a, sec)
		}
	}
	if lookups && !(f.slim && c.name == "ClaimEvents") {
		sec.find(Warn, fmt.Sprintf("%s looks every row up in the primary key: its index lacks columns that it asks for.", label),
			"ask for fewer columns, or INCLUDE them in the index; for the claim compare both forms with outboxctl bench claim")
	}
	if len(sec.Evidence.Findings) > trouble || c.name == "FlipClaim" {
		return
	}
	if i := slices.IndexFunc(p.accesses, func(a planAccess) bool { return f.exists && f.wide[a.index] && !strings.EqualFold(a.index, f.index) }); i >= 0 {
		sec.find(Warn, fmt.Sprintf("%s seeks %s, not %s: an index without a filter holds every event that was ever published until it is purged.", label, p.accesses[i].index, f.index),
			fmt.Sprintf("name %s in an INDEX hint, or drop %s", f.index, p.accesses[i].index))
		return
	}
	if path := c.path(); path != "" {
		text := fmt.Sprintf("%s %s: %s each time.", label, path, counted(ratio(float64(c.reads), float64(c.executions)), "page"))
		if lookups {
			text += " The claim index is the slim one, so a lookup for each event is what is asked for."
		}
		sec.find(OK, text, "")
	}
}

// judgeScan explains a scan by what can be known.
func judgeScan(f claimFacts, c claim, a planAccess, sec *Section) {
	label := c.say()
	pages := fmt.Sprintf("%s each time", counted(ratio(float64(c.reads), float64(c.executions)), "page"))
	if strings.EqualFold(a.index, f.index) {
		sec.find(Warn, fmt.Sprintf("%s scans the claim index %s instead of seeking it, %s: it reads the backlog of every event type to find one.", label, a.index, pages),
			"compare the first key column with = and a value of its own type")
		return
	}
	text := fmt.Sprintf("%s scans %s, %s.", label, a.index, pages)
	remedy := "see the other findings on this plan"
	switch {
	case !f.exists:
		text += fmt.Sprintf(" There is no index %s for it to seek.", f.index)
		remedy = "outboxctl schema apply --execute"
	case len(wrongForFiltered(c.options)) > 0 && c.options >= 0:
		text += fmt.Sprintf(" Its session has %s, and so never uses a filtered index.", strings.Join(wrongForFiltered(c.options), ", "))
		remedy = "set the option right where the connection is opened"
	case len(c.facts.unmatched) == 0 && len(c.facts.converts) == 0:
		text += " The filtered index was not chosen although nothing here forbids it: look for a predicate that status = 0 does not imply, and for statistics that are stale."
		remedy = fmt.Sprintf("compare status with the literal 0, or name the index in a hint; UPDATE STATISTICS on the table; compatibility level is %d", f.compat)
	}
	sec.find(Bad, text, remedy)
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
