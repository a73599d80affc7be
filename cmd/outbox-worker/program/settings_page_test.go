package program

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"azsqloutbox/cmd/outbox-worker/service"
)

// docs/settings.md has every flag with its variable and its default, and no other.
func TestTheSettingsPageHasEveryFlag(t *testing.T) {
	page, err := os.ReadFile("../../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ variable, byDefault string }
	rows := make(map[string]row)
	for _, cells := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| `?([^|`]+)`? \\| ([^|]+) \\|").FindAllStringSubmatch(string(page), -1) {
		rows[cells[1]] = row{cells[2], cells[3]}
	}
	vars := kong.Vars(service.Defaults())
	vars["credentials"], vars["version"] = "", ""
	parser, err := kong.New(&cli{}, vars, kong.DefaultEnvars("OUTBOX"))
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range parser.Model.Flags {
		if flag.Name == "help" {
			continue
		}
		r, ok := rows[flag.Name]
		delete(rows, flag.Name)
		variable := "none"
		if len(flag.Envs) > 0 && flag.Envs[0] != "-" {
			variable = flag.Envs[0]
		}
		switch {
		case !ok:
			t.Errorf("docs/settings.md has no row for --%s", flag.Name)
		case r.variable != variable:
			t.Errorf("docs/settings.md: the variable of --%s is %s, not %s", flag.Name, variable, r.variable)
		case flag.Default != "" && r.byDefault != "`"+flag.Default+"`":
			t.Errorf("docs/settings.md: the default of --%s is %s, not %s", flag.Name, flag.Default, r.byDefault)
		case flag.Default == "" && flag.IsBool() != (r.byDefault == "off"):
			t.Errorf("docs/settings.md: the default of --%s is %q", flag.Name, r.byDefault)
		}
	}
	for name := range rows {
		t.Errorf("docs/settings.md has --%s, which outbox-worker has not", name)
	}
	if deadline := service.Defaults()["publish_deadline"]; !strings.Contains(string(page), "`"+deadline+"`, or half the lease") {
		t.Errorf("docs/settings.md: the publish deadline is %s by default", deadline)
	}
}
