package diagnose_test

import (
	"maps"
	"slices"
	"testing"

	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/statementtest"
)

// kinds are the statements of each text, in order.
var kinds = map[string]string{
	"diagnoseColumnsSQL":         "Select",
	"diagnoseDatabaseWaitsSQL":   "Select",
	"diagnoseEnvironmentSQL":     "Declare Select",
	"diagnoseGovernanceSQL":      "Declare Select",
	"diagnoseHeadCostSQL":        "Select",
	"diagnoseHeadSQL":            "Select",
	"diagnoseIndexesSQL":         "Select",
	"diagnoseInstanceLoadSQL":    "Select",
	"diagnoseInstanceSQL":        "Select",
	"diagnoseJobObjectSQL":       "Select",
	"diagnoseLatchesSQL":         "Declare Declare Select",
	"diagnoseLoadSQL":            "Select",
	"diagnosePagesSQL":           "Declare Declare Select",
	"diagnosePlanSQL":            "Select",
	"diagnoseQueryStoreFromSQL":  "Select",
	"diagnoseQueryStoreSQL":      "Select",
	"diagnoseQueryStoreStateSQL": "Select",
	"diagnoseSampleSQL":          "Select",
	"diagnoseServerMemorySQL":    "Select",
	"diagnoseServerWaitsSQL":     "Select",
	"diagnoseSizesSQL":           "Select",
	"diagnoseStartedSQL":         "Select",
	"diagnoseStatementsSQL":      "Select",
	"diagnoseTailSQL":            "Declare Select",
	"diagnoseTextPlanSQL":        "Select",
	"diagnoseUsageSQL":           "Select",
}

func TestEveryStatement(t *testing.T) {
	consts := statementtest.Constants(t, ".")
	if got, want := slices.Sorted(maps.Keys(consts)), slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Fatalf("statements in the package:\n%v\nstatements this test knows:\n%v", got, want)
	}
	odd := sqlserver.Names{Schema: "my schema", Table: "it's ]odd[ \"table", ClaimIndex: "IX]a'b", RetryIndex: "IX c"}
	for name, text := range consts {
		for what, names := range map[string]sqlserver.Names{"default": {}, "odd": odd} {
			t.Run(name+"/"+what, func(t *testing.T) {
				statementtest.Request(t, names.Replacer().Replace(text), kinds[name])
			})
		}
	}
}
