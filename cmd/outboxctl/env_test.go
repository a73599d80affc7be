package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"azsqloutbox/cmd/outbox-worker/service"
)

// What a command does is typed. A variable that happens to be there, of a
// worker or of a shell, may name the database and pace a purge, and no more.
func TestNoVariableExecutes(t *testing.T) {
	vars := kong.Vars(service.Defaults())
	vars["credentials"] = ""
	vars["version"] = ""
	parser, err := kong.New(&cli{}, vars, kong.DefaultEnvars("OUTBOX"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, command := range parser.Model.Leaves(true) {
		settings := command.Name == "doctor" // it judges a worker's settings, by their variables
		for _, flag := range command.Flags {
			switch {
			case flag.Name == "execute" || flag.Name == "abort" || flag.Name == "force":
				seen++
				if len(flag.Envs) > 0 {
					t.Errorf("%s --%s is turned on by %v", command.FullPath(), flag.Name, flag.Envs)
				}
			case len(flag.Envs) > 0 && !settings && !strings.HasPrefix(flag.Envs[0], "OUTBOX_"+strings.ToUpper(command.Name)+"_"):
				t.Errorf("%s --%s reads %v, which other programs may have", command.FullPath(), flag.Name, flag.Envs)
			}
		}
	}
	if seen < 8 {
		t.Errorf("%d flags that do something were found", seen)
	}
}
