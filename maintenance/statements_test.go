package maintenance

import (
	"maps"
	"slices"
	"testing"

	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/statementtest"
)

// kinds are the statements of each text, in order. The files of the tasks add
// theirs by an init in their tests.
var kinds = map[string]string{
	"takeAppLockSQL": "Declare Execute Select",
}

// renderings are what a text has to fill in beside the names, where it has
// something.
var renderings = map[string]func(string) []string{}

// procedures are those that maintenance calls.
var procedures = []string{"sys.sp_getapplock"}

var oddNames = sqlserver.Names{Schema: "my schema", Table: "it's ]odd[ \"table", ClaimIndex: "IX]a'b", RetryIndex: "IX c"}

func TestEveryStatement(t *testing.T) {
	consts := statementtest.Constants(t, ".")
	if got, want := slices.Sorted(maps.Keys(consts)), slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Fatalf("statements in the package:\n%v\nstatements this test knows:\n%v", got, want)
	}
	for name, text := range consts {
		for what, names := range map[string]sqlserver.Names{"default": {}, "odd": oddNames} {
			t.Run(name+"/"+what, func(t *testing.T) {
				texts := []string{names.Replacer().Replace(text)}
				if fill, ok := renderings[name]; ok {
					texts = fill(texts[0])
				}
				for _, rendered := range texts {
					statementtest.Request(t, rendered, kinds[name], procedures...)
				}
			})
		}
	}
}
