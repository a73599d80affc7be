package sqlserver_test

import (
	"testing"

	"azsqloutbox/sqlserver"
)

func TestFlagsAreWhatIsNotUsual(t *testing.T) {
	for want, names := range map[string]sqlserver.Names{
		"":                                    {},
		" --table foo":                        {Schema: "dbo", Table: "foo"},
		" --schema shop --claim-index IX_a.b": {Schema: "shop", ClaimIndex: "IX_a.b"},
		` --table 'an event'\''s'`:            {Table: "an event's"},
	} {
		if got := names.Flags(); got != want {
			t.Errorf("%+v: %q, want %q", names, got, want)
		}
	}
}
