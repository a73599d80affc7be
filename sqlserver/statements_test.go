package sqlserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	tsql "github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver/statementtest"
)

// shapes are tables that render the statements in every way there is.
var shapes = map[string]*table{
	"default":           shape("varchar", 100, "Latin1_General_CI_AS", "varchar", 2000, "Latin1_General_100_BIN2_UTF8"),
	"max":               shape("nvarchar", 200, "Latin1_General_CI_AS", "varchar", -1, "Latin1_General_100_BIN2_UTF8"),
	"nvarchar":          shape("varchar", 100, "Latin1_General_100_CI_AS_SC_UTF8", "nvarchar", -1, "Latin1_General_CI_AS"),
	"int and code page": shape("int", 4, "", "varchar", 8000, "SQL_Latin1_General_CP1_CI_AS"),
}

func shape(eventType string, eventTypeBytes int, collation, payload string, payloadBytes int, payloadCollation string) *table {
	columns := map[string]column{
		"id":           {kind: "bigint", bytes: 8},
		"status":       {kind: "tinyint", bytes: 1},
		"retry_count":  {kind: "int", bytes: 4},
		"event_type":   {kind: eventType, bytes: eventTypeBytes, collation: collation},
		"payload":      {kind: payload, bytes: payloadBytes, collation: payloadCollation},
		"headers":      {kind: payload, bytes: payloadBytes, collation: payloadCollation},
		"created_at":   {kind: "datetime2", bytes: 7, scale: 3},
		"processed_at": {kind: "datetime2", bytes: 7, scale: 3},
		"retry_at":     {kind: "datetime2", bytes: 7, scale: 3},
	}
	for _, name := range []string{"aggregate_type", "aggregate_id", "last_error"} {
		columns[name] = column{kind: "varchar", bytes: 100, collation: "Latin1_General_100_CI_AS_SC_UTF8"}
	}
	for name, c := range columns {
		c.name = name
		columns[name] = c
	}
	return &table{columns: columns, receiptType: column{name: "event_type", kind: "varchar", bytes: 100}}
}

var names = map[string]Names{
	"default": {},
	"odd":     {Schema: "my schema", Table: "it's ]odd[ \"table", ClaimIndex: "IX]a'b", RetryIndex: "IX c"},
}

// kinds are the statements of each text, in order: a misspelled option, a
// missing END or a trailing word shows as a statement more or less.
var kinds = map[string]string{
	"claimEventsSQL":        "Select",
	"claimUnlockedSQL":      "Select",
	"flipClaimSQL":          "Declare Declare Declare Update Set Insert Select",
	"findClaimSQL":          "Select",
	"settleSentSQL":         "Declare Delete Set Select",
	"settleSQL":             "Declare Declare Declare Select If(Begin(Delete Set Update Set Update Set)) Select",
	"openJSONSQL":           "Declare Select",
	"openReceiptsSQL":       "Select",
	"overdueClaimsSQL":      "Declare Select Select",
	"reapClaimSQL":          "SetCommand Declare Declare Declare Select If(Begin(Delete Set Select Update Set Update Set)) Select",
	"retryDueSQL":           "Declare Declare Update Set Select",
	"pendingSQL":            "Select",
	"discoverPendingSQL":    "Declare If(Select Begin(Set Select)) While(Begin(Set Set Select Set Set If(Select Select))) Select",
	"backlogTotalSQL":       "Select",
	"backlogTypesSQL":       "Select",
	"backlogFailedSQL":      "Declare Select",
	"heartbeatSQL":          "Declare Declare Update If(Insert) Delete Select Select",
	"leaveSQL":              "Delete",
	"equalKeysSQL":          "Select",
	"lostKeysSQL":           "Select",
	"tableColumnsSQL":       "Select",
	"columnDefaultsSQL":     "Select",
	"sequenceSQL":           "Select",
	"highestIDSQL":          "Select",
	"editionSQL":            "Declare Select",
	"tableIndexesSQL":       "Select",
	"statusChecksSQL":       "Select",
	"tableRowsSQL":          "Select",
	"countUnknownStatusSQL": "Select",
	"databaseStateSQL":      "Declare Select",
	"enqueueSQL":            "PredicateSet Declare Select If(Throw) Set Execute Set If(Throw) Insert Set If(Throw)",
	"enqueueIdentitySQL":    "PredicateSet Insert Set If(Throw)",
	"fitsCollationSQL":      "Select",
	"dedicatedSetupSQL":     "PredicateSet PredicateSet PredicateSet PredicateSet PredicateSet SetTransactionIsolationLevel SetCommand SetCommand",
	"sessionSetupSQL":       "PredicateSet PredicateSet PredicateSet SetTransactionIsolationLevel SetCommand",
}

func TestEveryStatement(t *testing.T) {
	consts := statementtest.Constants(t, ".")
	if got, want := slices.Sorted(maps.Keys(consts)), slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Fatalf("statements in the package:\n%v\nstatements this test knows:\n%v", got, want)
	}
	for name, text := range consts {
		for shape, table := range shapes {
			for what, n := range names {
				t.Run(fmt.Sprintf("%s/%s/%s", name, shape, what), func(t *testing.T) {
					rendered := n.renderer(table).Replace(text)
					if name == "sessionSetupSQL" {
						rendered = newSessions(nil, 0, 5e9).setup
					}
					if name == "dedicatedSetupSQL" {
						rendered = NewDedicated(nil, 5e9, nil).setup
					}
					statementtest.Request(t, rendered, kinds[name], sequenceRange)
				})
			}
		}
	}
}

// sequenceRange is the only procedure that this package calls.
const sequenceRange = "sys.sp_sequence_get_range"

func TestEveryScript(t *testing.T) {
	for name, render := range map[string]func(scripts.Options) (string, error){"001": scripts.Outbox, "010": scripts.Enqueue, "090": scripts.Grants} {
		for what, o := range map[string]scripts.Options{
			"default": {},
			"other":   {Schema: "my schema", Table: "it's ]odd[", EventType: "INT", Payload: "NVARCHAR(MAX)", Collation: "database_default", SlimClaimIndex: true},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				text, err := render(o)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, batch := range scripts.Batches(text) {
					script := statementtest.Parse(t, batch)
					for _, b := range script.Batches {
						got = append(got, statementtest.Outline(b.Statements))
					}
					statementtest.CheckScript(t, script, sequenceRange)
				}
				want := map[string][]string{
					"001": {
						"PredicateSet PredicateSet", "If(Begin(If(If(Throw)) CreateSequence))", "If(CreateTable)",
						"If(CreateIndex)", "If(CreateIndex)", "If(CreateTable)", "If(CreateTable)", "If(CreateTable)",
					},
					"090": {"If(CreateRole)", "Grant", "Grant", "Grant", "Grant"},
					"010": {"PredicateSet PredicateSet", "CreateOrAlterProcedure"},
				}[name]
				if !slices.Equal(got, want) {
					t.Errorf("batches are %q, want %q", got, want)
				}
			})
		}
	}
}

// Status is in the filter of the claim index and not in it: to ask for it would cost
// a lookup an event.
func TestClaimDoesNotSelectStatus(t *testing.T) {
	script := statementtest.Parse(t, Names{}.renderer(shapes["default"]).Replace(claimEventsSQL))
	spec := script.Batches[0].Statements[0].(*tsql.SelectStatement).QueryExpression.(*tsql.QuerySpecification)
	for _, e := range spec.SelectElements {
		if s, ok := e.(*tsql.SelectScalarExpression); ok && statementtest.IsColumn(s.Expression, "status") {
			t.Error("the claim selects status")
		}
	}
	if _, ok := spec.TopRowFilter.Expression.(*tsql.ParenthesisExpression); !ok {
		t.Errorf("TOP is a %T", spec.TopRowFilter.Expression)
	}
}

// Both reads of a claim go to one reader.
func TestBothClaimsReadTheSame(t *testing.T) {
	list := func(text string) string { return text[strings.Index(text, "TOP"):strings.Index(text, "FROM")] }
	if list(claimEventsSQL) != list(claimUnlockedSQL) {
		t.Errorf("the claims read\n%s\nand\n%s", list(claimEventsSQL), list(claimUnlockedSQL))
	}
}
