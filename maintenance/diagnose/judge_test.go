package diagnose

import (
	"strings"
	"testing"
	"time"
)

// The judgements, with the numbers of the Azure SQL article where it has some.

// says holds a section to texts, by verdict.
func says(t *testing.T, s Section, verdict Verdict, want ...string) {
	t.Helper()
	s = s.sorted()
	if s.Verdict != verdict {
		t.Errorf("the verdict is %s, want %s: %+v", s.Verdict, verdict, s.Evidence.Findings)
	}
	var all strings.Builder
	for _, f := range s.Evidence.Findings {
		all.WriteString(string(f.Verdict) + ": " + f.Text + " → " + f.Remedy + "\n")
	}
	for _, n := range s.Evidence.Notes {
		all.WriteString(n + "\n")
	}
	for _, w := range want {
		if !strings.Contains(all.String(), w) {
			t.Errorf("nothing says %q:\n%s", w, all.String())
		}
	}
}

func figure(t *testing.T, s Section, name string) any {
	t.Helper()
	for _, f := range s.Evidence.Figures {
		if f.Name == name {
			return f.Value
		}
	}
	t.Fatalf("no figure %q in %+v", name, s.Evidence.Figures)
	return nil
}

const driverOptions = 1 | 8 | 16 | 32 | 64 | 128 // what the ODBC flag of a login turns on

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// ran is a cached statement with totals of n runs.
func ran(name, text string, n, worker, reads, rows int64) cachedStatement {
	return cachedStatement{
		name: name, text: text, sqlHandle: name + text, queryHash: "h" + name + text, planHash: "p1", options: driverOptions | 4096,
		created: noon.Add(-time.Hour), last: noon, executions: n, worker: n * worker, elapsed: n * worker, reads: n * reads, got: n * rows,
	}
}

const (
	claimText  = "SELECT /* outbox:ClaimEvents */ TOP (@batch) e.id FROM [dbo].[outbox_event] AS e"
	flipText   = "UPDATE e SET status = 1 FROM OPENJSON(@ids)"
	outputText = "UPDATE TOP (100) dbo.outbox_event SET status = 1 OUTPUT inserted.id WHERE status = 0"
)

func TestJudgeStatements(t *testing.T) {
	claim, flip := ran("ClaimEvents", claimText, 1000, 2840, 34, 100), ran("FlipClaim", flipText, 1000, 1500, 720, 100)
	for _, c := range []struct {
		name    string
		facts   statementFacts
		verdict Verdict
		want    []string
	}{
		{"nothing ran", statementFacts{}, Unknown, []string{"No statement in the plan cache names this table"}},
		{
			"the worker alone",
			statementFacts{statements: []cachedStatement{claim, flip, ran("PurgeLook", "SELECT /* outbox:PurgeLook */ 1", 1000, 900_000, 9000, 1)}},
			OK,
			[]string{"An event costs 0.34 pages to claim and 7.2 to flip, and 43.4 µs of CPU"},
		},
		{
			"the article: 0.06 estimated, 142 ms measured, 50 times dearer",
			statementFacts{statements: []cachedStatement{claim, flip, ran("", outputText, 400, 142_000, 9000, 100)}},
			Bad,
			[]string{"An UPDATE … OUTPUT claims in one statement: 142 ms of CPU", "eager spool", "outbox:ClaimEvents takes 2.84 ms: that is 50 times cheaper"},
		},
		{
			"the claim scans",
			statementFacts{statements: []cachedStatement{ran("ClaimEvents", claimText, 10, 900_000, 61_400, 100)}},
			Bad,
			[]string{"An event costs 614 pages to claim", "something scans"},
		},
		{
			"more than a few seeks",
			statementFacts{statements: []cachedStatement{claim, ran("FlipClaim", flipText, 1000, 1500, 4000, 100)}},
			Warn,
			[]string{"An event costs 0.34 pages to claim and 40 to flip"},
		},
		{
			"OFFSET",
			statementFacts{statements: []cachedStatement{claim, ran("", "SELECT id FROM dbo.outbox_event ORDER BY id OFFSET 500000 ROWS FETCH NEXT 100 ROWS ONLY", 9, 1, 83_000, 100)}},
			Warn,
			[]string{"OFFSET pages through the table: 83,000 pages each time", "keyset"},
		},
		{
			"COUNT",
			statementFacts{statements: []cachedStatement{claim, ran("", "SELECT COUNT(*) FROM dbo.outbox_event WHERE status = 0", 1440, 1, 7_000_000, 1)}},
			Warn,
			[]string{"A COUNT reads 7,000,000 pages each time, 1,440 times so far"},
		},
		{
			"nothing was claimed",
			statementFacts{statements: []cachedStatement{ran("ClaimEvents", claimText, 9, 10, 3, 0)}, logReason: "No log bytes per statement: Query Store is OFF."},
			OK,
			[]string{"No event was claimed", "Query Store is OFF"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.facts.top, c.facts.now = 20, noon
			says(t, judgeStatements(c.facts, newSection("statements", "")), c.verdict, c.want...)
		})
	}
}

func TestLogPerEventIsWeightedByRuns(t *testing.T) {
	claim, flip := ran("ClaimEvents", claimText, 100, 2840, 34, 100), ran("FlipClaim", flipText, 100, 1500, 720, 100)
	s := judgeStatements(statementFacts{
		statements: []cachedStatement{claim, flip}, top: 20, now: noon,
		logBytes: map[string]float64{claim.queryHash: 0, flip.queryHash: 240_000},
	}, newSection("statements", ""))
	if got := figure(t, s, "log per event, all of the worker's statements"); got != 2400.0 {
		t.Errorf("log per event is %v", got)
	}
}

// A plan that was compiled again counts from then on: the same load gives the
// same cost.
func TestCostsOfPlansOfUnlikeAge(t *testing.T) {
	claim, flip := ran("ClaimEvents", claimText, 1000, 2840, 34, 100), ran("FlipClaim", flipText, 250, 1500, 720, 100)
	flip.created = noon.Add(-15 * time.Minute)
	s := judgeStatements(statementFacts{statements: []cachedStatement{claim, flip}, top: 20, now: noon}, newSection("statements", ""))
	if got := figure(t, s, "pages read per flipped event"); got != 7.2 {
		t.Errorf("a flip reads %v pages", got)
	}
}

func TestJudgePlanCache(t *testing.T) {
	seek := ran("", "SELECT TOP 100 id FROM dbo.outbox_event WHERE status = 0", 500, 900, 34, 100)
	seek.options = driverOptions | 4096
	scan := seek
	scan.options, scan.planHash, scan.reads, scan.executions = driverOptions, "p2", 5000*61_400, 5000
	same := seek
	same.options = driverOptions
	quoted := seek
	quoted.options = seek.options &^ 64
	parallel := seek
	parallel.options |= 2
	forced := seek
	forced.options |= bitForced
	var many []cachedStatement
	for i := range 30 {
		c := seek
		c.sqlHandle = strings.Repeat("x", i)
		c.text = "SELECT id FROM dbo.outbox_event WHERE id = " + strings.Repeat("1", i+1)
		many = append(many, c)
	}
	for _, c := range []struct {
		name    string
		list    []cachedStatement
		verdict Verdict
		want    []string
	}{
		{"nothing ran", nil, Unknown, []string{"No statement"}},
		{"one entry", []cachedStatement{seek}, OK, []string{"1 text is cached once"}},
		{"threads are no option of a session", []cachedStatement{seek, parallel}, OK, nil},
		{
			"the article: seek in SSMS, scan in the application",
			[]cachedStatement{seek, scan},
			Bad,
			[]string{"runs by 2 plans: with ARITHABORT OFF it reads 61,400 pages each time, with ARITHABORT ON only 34", "it is a key of the plan cache", "connection-init-sql"},
		},
		{"two compilations, one plan", []cachedStatement{seek, same}, Warn, []string{"is compiled 2 times over. They differ in ARITHABORT"}},
		{"QUOTED_IDENTIFIER OFF", []cachedStatement{quoted}, Bad, []string{"ran with QUOTED_IDENTIFIER OFF", "1934"}},
		{"literals in the text", many, Warn, []string{"One query is cached in 30 texts"}},
		{"forced parameterization", []cachedStatement{forced}, Warn, []string{"forced parameterization", "PARAMETERIZATION SIMPLE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := judgePlanCache(planCacheFacts{statements: c.list, compat: 150, top: 20}, newSection("plan_cache", ""))
			says(t, s, c.verdict, c.want...)
		})
	}
}

func TestSetOptions(t *testing.T) {
	// The example of sys-dm-exec-plan-attributes-transact-sql.md.
	if got := strings.Join(decodeOptions(251), " "); got != "ANSI_PADDING ParallelPlan CONCAT_NULL_YIELDS_NULL ANSI_WARNINGS ANSI_NULLS QUOTED_IDENTIFIER ANSI_NULL_DFLT_ON" {
		t.Errorf("251 is %s", got)
	}
	if got := strings.Join(differing([]int{251, 251 | 4096 | 2, 251 &^ 2}), " "); got != "ARITHABORT" {
		t.Errorf("they differ in %s", got)
	}
	if got := wrongForFiltered(driverOptions); len(got) != 0 {
		t.Errorf("a driver's options are wrong: %v", got)
	}
	if got := strings.Join(wrongForFiltered(driverOptions&^64|8192), ", "); got != "QUOTED_IDENTIFIER OFF, NUMERIC_ROUNDABORT ON" {
		t.Errorf("wrong are %s", got)
	}
}
