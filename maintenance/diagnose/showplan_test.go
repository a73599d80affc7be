package diagnose

import (
	"fmt"
	"strings"
	"testing"
)

// planOf wraps operators as SQL Server's showplan does.
func planOf(inner string) string {
	return `<?xml version="1.0" encoding="utf-16"?>
<ShowPlanXML xmlns="http://schemas.microsoft.com/sqlserver/2004/07/showplan" Version="1.564" Build="16.0.4135.4"><BatchSequence><Batch><Statements>
<StmtSimple StatementText="SELECT" StatementId="1" StatementType="SELECT"><StatementSetOptions QUOTED_IDENTIFIER="true" ARITHABORT="true" ANSI_NULLS="true"/>
<QueryPlan>` + inner + `</QueryPlan></StmtSimple></Statements></Batch></BatchSequence></ShowPlanXML>`
}

// read is one operator that reads an index, as SQL Server writes it.
func read(op, index, kind, extra, seek string) string {
	if seek != "" {
		seek = `<SeekPredicates><SeekPredicateNew><SeekKeys><Prefix ScanType="EQ"><RangeColumns><ColumnReference Table="[outbox_event]" Column="event_type"/></RangeColumns></Prefix></SeekKeys></SeekPredicateNew></SeekPredicates>`
	}
	return fmt.Sprintf(`<RelOp NodeId="1" PhysicalOp="%s" LogicalOp="%s" EstimateRows="100" Parallel="0"><OutputList><ColumnReference Table="[outbox_event]" Column="id"/></OutputList><IndexScan Ordered="1" ScanDirection="FORWARD"%s><DefinedValues><DefinedValue><ColumnReference Table="[outbox_event]" Column="id"/></DefinedValue></DefinedValues><Object Database="[db]" Schema="[dbo]" Table="[outbox_event]" Index="[%s]" IndexKind="%s"/>%s</IndexScan></RelOp>`, op, op, extra, index, kind, seek)
}

func TestReadShowplan(t *testing.T) {
	lookup := `<RelOp NodeId="0" PhysicalOp="Nested Loops" LogicalOp="Inner Join"><NestedLoops>` +
		read("Index Seek", "IX_outbox_claim", "NonClustered", "", "seek") +
		read("Clustered Index Seek", "PK_outbox_event", "Clustered", ` Lookup="1"`, "seek") + `</NestedLoops></RelOp>`
	for _, c := range []struct {
		name, plan string
		want       string
	}{
		{"a seek", planOf(read("Index Seek", "IX_outbox_claim", "NonClustered", "", "seek")), "seeks IX_outbox_claim"},
		{"a scan of the primary key", planOf(read("Clustered Index Scan", "PK_outbox_event", "Clustered", "", "")), "scans PK_outbox_event"},
		{"a key lookup", planOf(lookup), "seeks IX_outbox_claim, looks up PK_outbox_event"},
		{"a heap", planOf(`<RelOp PhysicalOp="Table Scan" LogicalOp="Table Scan"><TableScan Ordered="0"><Object Table="[outbox_event]" IndexKind="Heap"/></TableScan></RelOp>`), "scans the heap"},
		{
			"a parameter", planOf(`<UnmatchedIndexes><Parameterization><Object Database="[db]" Schema="[dbo]" Table="[outbox_event]" Index="[IX_outbox_claim]" IndexKind="NonClustered"/></Parameterization></UnmatchedIndexes><Warnings UnmatchedIndexes="1"/>` +
				read("Clustered Index Scan", "PK_outbox_event", "Clustered", "", "")),
			"scans PK_outbox_event; UnmatchedIndexes",
		},
		{
			"a conversion of the column", planOf(`<Warnings><PlanAffectingConvert ConvertIssue="Cardinality Estimate" Expression="CONVERT(int,x)"/><PlanAffectingConvert ConvertIssue="Seek Plan" Expression="CONVERT_IMPLICIT(nvarchar(100),[db].[dbo].[outbox_event].[event_type],0)=[@type]"/></Warnings>` +
				read("Index Scan", "IX_outbox_claim", "NonClustered", "", "")),
			"scans IX_outbox_claim; CONVERT_IMPLICIT",
		},
		{
			"Halloween protection", planOf(`<RelOp PhysicalOp="Clustered Index Update" LogicalOp="Update"><Update><Object Table="[outbox_event]" Index="[PK_outbox_event]"/><RelOp PhysicalOp="Table Spool" LogicalOp="Eager Spool"><Spool>` +
				read("Index Seek", "IX_outbox_claim", "NonClustered", "", "seek") + `</Spool></RelOp></Update></RelOp>`),
			"seeks IX_outbox_claim; eager spool",
		},
		{"another table", planOf(strings.ReplaceAll(read("Clustered Index Scan", "PK_x", "Clustered", "", ""), "outbox_event", "orders")), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts, err := readShowplan(c.plan, "outbox_event")
			if err != nil {
				t.Fatal(err)
			}
			one := claim{facts: facts}
			got := one.path()
			if w := one.warnings(); w != "" {
				got += "; " + w
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if _, err := readShowplan("<ShowPlanXML><Batch>", "outbox_event"); err == nil {
		t.Error("half a plan is no error")
	}
}

// FuzzReadShowplan: text that the server sends must not end the program.
func FuzzReadShowplan(f *testing.F) {
	f.Add(planOf(read("Index Seek", "IX", "NonClustered", "", "seek")))
	f.Add("</IndexScan></RelOp>")
	f.Add("<Object Table='[outbox_event]'/><IndexScan><Object Table='[outbox_event]'/></IndexScan>")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = readShowplan(text, "outbox_event")
	})
}

func TestJudgeClaimPlan(t *testing.T) {
	of := func(name, text, plan string, options int) claim {
		facts, err := readShowplan(plan, "outbox_event")
		if err != nil {
			t.Fatal(err)
		}
		c := ran(name, text, 100, 2840, 34, 100)
		c.options = options
		return claim{cachedStatement: c, facts: facts}
	}
	seek := planOf(read("Index Seek", "IX_outbox_claim", "NonClustered", "", "seek"))
	scan := planOf(read("Clustered Index Scan", "PK_outbox_event", "Clustered", "", ""))
	lookup := planOf(read("Index Seek", "IX_outbox_claim", "NonClustered", "", "seek") + read("Clustered Index Seek", "PK_outbox_event", "Clustered", ` Lookup="true"`, "seek"))
	const own = "SELECT TOP 100 id FROM dbo.outbox_event WHERE event_type = 'a' AND status = 0"
	good := driverOptions | 4096
	converts := func(expression string) claim {
		c := of("", own, seek, good)
		c.facts.converts = []string{expression}
		return c
	}
	for _, c := range []struct {
		name    string
		facts   claimFacts
		verdict Verdict
		want    []string
	}{
		{"nothing ran", claimFacts{}, Unknown, []string{"No statement in the plan cache reads pending events"}},
		{"a seek", claimFacts{exists: true, claims: []claim{of("ClaimEvents", claimText, seek, good)}}, OK, []string{"ClaimEvents SELECT seeks IX_outbox_claim: 34 pages each time."}},
		{"a scan that nothing explains", claimFacts{exists: true, compat: 160, claims: []claim{of("", own, scan, good)}}, Bad, []string{"scans PK_outbox_event, 34 pages each time", "not chosen although nothing here forbids it", "compatibility level is 160"}},
		{"a scan by wrong options", claimFacts{exists: true, claims: []claim{of("", own, scan, good&^64)}}, Bad, []string{"Its session has QUOTED_IDENTIFIER OFF, and so never uses a filtered index"}},
		{"a scan without an index", claimFacts{claims: []claim{of("", own, scan, good)}}, Bad, []string{"There is no index IX_outbox_claim for it to seek", "schema apply"}},
		{"a column converted to NVARCHAR", claimFacts{exists: true, claims: []claim{converts("CONVERT_IMPLICIT(nvarchar(100),[e].[event_type],0)=[@P1]")}}, Bad, []string{"a parameter arrives as NVARCHAR and the column is VARCHAR", "mssql.VarChar"}},
		{"a column converted to INT", claimFacts{exists: true, claims: []claim{converts("CONVERT_IMPLICIT(int,[e].[event_type],0)=[@P1]")}}, Bad, []string{"the value has a type that ranks above the column's", "in the column's own type"}},
		{"lookups of the slim index", claimFacts{exists: true, slim: true, claims: []claim{of("ClaimEvents", claimText, lookup, good)}}, OK, []string{"The claim index is the slim one"}},
		{"lookups nobody asked for", claimFacts{exists: true, claims: []claim{of("ClaimEvents", claimText, lookup, good)}}, Warn, []string{"looks every row up in the primary key"}},
		{"a wide index instead", claimFacts{exists: true, wide: map[string]bool{"IX_wide": true}, claims: []claim{of("", own, strings.ReplaceAll(seek, "IX_outbox_claim", "IX_wide"), good)}}, Warn, []string{"seeks IX_wide, not IX_outbox_claim"}},
		{"the claim index without its filter", claimFacts{exists: true, wide: map[string]bool{"IX_outbox_claim": true}, claims: []claim{of("", own, seek, good)}}, OK, []string{"seeks IX_outbox_claim: "}},
		{"no plan", claimFacts{exists: true, claims: []claim{{cachedStatement: ran("ClaimEvents", claimText, 1, 1, 1, 1), problem: "Evicted.", remedy: "GRANT x"}}}, Unknown, []string{"ClaimEvents SELECT: Evicted. GRANT x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.facts.index = "IX_outbox_claim"
			says(t, judgeClaimPlan(c.facts, newSection("claim_plan", "")), c.verdict, c.want...)
		})
	}
}
