package doctor

import (
	"maps"
	"slices"
	"testing"

	"azsqloutbox/sqlserver/statementtest"
)

var kinds = map[string]string{
	"doctorDatabaseSQL":  "Declare Select",
	"doctorOptionsSQL":   "Declare Select",
	"doctorRightSQL":     "Select",
	"doctorExcessSQL":    "Declare Select",
	"doctorSightSQL":     "Select",
	"doctorTriggersSQL":  "Select",
	"doctorEncryptedSQL": "Declare Select",
	"doctorModulesSQL":   "Select",
	"doctorEnqueueSQL":   "Select",
	"doctorRebuildsSQL":  "Select",
}

func TestEveryStatement(t *testing.T) {
	consts := statementtest.Constants(t, ".")
	if got, want := slices.Sorted(maps.Keys(consts)), slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Fatalf("statements in the package:\n%v\nstatements this test knows:\n%v", got, want)
	}
	for name, text := range consts {
		t.Run(name, func(t *testing.T) { statementtest.Request(t, text, kinds[name]) })
	}
}
