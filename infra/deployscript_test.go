package infra

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeAz answers as the Azure CLI does where everything is in place, writes down what
// it was asked, and lets a test have its own answer first.
const fakeAz = `#!/bin/sh
printf '%s\n' "$*" >>"$AZ_CALLS"
case "$*" in
%s
'version '*) echo 2.80.0 ;;
'account show '*) echo Contoso ;;
'bicep version') echo 'Bicep CLI version 0.38.5 (abcdef)' ;;
'group show '*) ;;
'provider show '*) echo Registered ;;
'deployment group what-if '*) echo '+ everything' ;;
'deployment group create '*) ;;
'deployment group show '*'--name outbox-identities '*outputs.users*) echo 'CREATE USER [outbox-worker] FROM EXTERNAL PROVIDER;' ;;
'deployment group show '*'--name outbox '*outputs.settings*) printf 'OUTBOX_SCHEMA=dbo\nOUTBOX_TABLE=outbox_event\n' ;;
*) echo "az was asked for $*" >&2; exit 9 ;;
esac
`

// deploy runs the script with a fake az, and returns what it said and what az was
// asked.
func deploy(t *testing.T, answer string, environment []string, arguments ...string) (code int, stdout, stderr string, calls []string) {
	t.Helper()
	folder := t.TempDir()
	script := strings.Replace(fakeAz, "%s\n", answer+"\n", 1)
	if answer != "none" {
		if err := os.WriteFile(filepath.Join(folder, "az"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// These and no others, so that no test meets the az of the machine.
	for _, tool := range []string{"bash", "sh", "dirname", "grep", "head", "sed", "sort"} {
		at, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at, filepath.Join(folder, tool)); err != nil {
			t.Fatal(err)
		}
	}
	path, err := filepath.Abs("../scripts/deploy.sh")
	if err != nil {
		t.Fatal(err)
	}
	source(t, "../scripts/deploy.sh") // go test's cache depends on it
	log := filepath.Join(folder, "calls")
	c := exec.Command("bash", append([]string{path}, arguments...)...)
	c.Dir = folder // the script finds its own files from anywhere
	c.Env = append([]string{"PATH=" + folder, "AZ_CALLS=" + log}, environment...)
	stdout, stderr, code = exited(t, c)
	if asked, err := os.ReadFile(log); err == nil {
		calls = strings.Split(strings.TrimSpace(string(asked)), "\n")
	}
	return code, stdout, stderr, calls
}

var deploySettings = []string{"DEPLOY_IMAGE=contoso.azurecr.io/outbox:v1", "DEPLOY_SQL_HOST=contoso.database.windows.net"}

func TestDeployShowsWhatWouldChange(t *testing.T) {
	code, stdout, stderr, calls := deploy(t, "", deploySettings, "--group", "rg")
	if code != 0 || !strings.Contains(stdout, "+ everything") || !strings.Contains(stdout, "Nothing was changed in Contoso: add --execute.") {
		t.Errorf("exit %d, said\n%s%s", code, stdout, stderr)
	}
	for _, call := range calls {
		for _, word := range []string{" create", " register", " install", " upgrade", " delete", " set"} {
			if strings.Contains(call, word) {
				t.Errorf("without --execute it ran az %s", call)
			}
		}
	}
	if last := calls[len(calls)-1]; !strings.HasPrefix(last, "deployment group what-if --resource-group rg --parameters /") || !strings.HasSuffix(last, "standard-small.bicepparam") {
		t.Errorf("the last call is az %s", last)
	}
}

func TestDeployExecutes(t *testing.T) {
	code, stdout, stderr, calls := deploy(t, "", deploySettings, "--execute", "--group", "rg")
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d, said\n%s", code, stderr)
	}
	created := 0
	for _, call := range calls {
		if strings.HasPrefix(call, "deployment group create --resource-group rg --name outbox --parameters /") {
			created++
		}
		if strings.Contains(call, "what-if") {
			t.Errorf("it ran az %s", call)
		}
	}
	if created != 1 {
		t.Errorf("%d deployments in %q", created, calls)
	}
	for _, want := range []string{"CREATE USER [outbox-worker]", "\nOUTBOX_SCHEMA=dbo\nOUTBOX_TABLE=outbox_event\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("printed\n%s\nwithout %q", stdout, want)
		}
	}
}

// TestDeployPrintsTheUsersOfAFailedDeployment: a first deployment may fail because the
// users are missing that it has not printed yet.
func TestDeployPrintsTheUsersOfAFailedDeployment(t *testing.T) {
	code, stdout, stderr, _ := deploy(t, "'deployment group create '*) exit 1 ;;", deploySettings, "--group", "rg", "--execute")
	if code != 1 || !strings.Contains(stdout, "CREATE USER [outbox-worker]") || strings.Contains(stdout, "OUTBOX_SCHEMA") || !strings.Contains(stderr, "run the T-SQL above") {
		t.Errorf("exit %d, said\n%s%s", code, stdout, stderr)
	}
	// Where it failed before there are any, nothing is said of them.
	code, stdout, stderr, _ = deploy(t, "'deployment group create '*) exit 1 ;;\n'deployment group show '*) echo not found >&2; exit 3 ;;", deploySettings, "--group", "rg", "--execute")
	if code != 1 || stdout != "" || strings.Contains(stderr, "not found") || strings.Contains(stderr, "above") {
		t.Errorf("exit %d, said\n%s%s", code, stdout, stderr)
	}
}

func TestDeployAsksForWhatAParameterFileNeeds(t *testing.T) {
	code, _, stderr, calls := deploy(t, "", append(deploySettings, "DEPLOY_SQL_ID=/subscriptions/1"), "--group", "rg", "--parameters", abs(t, "parameters/premium-small.bicepparam"))
	if code != 0 || !strings.Contains(strings.Join(calls, "\n"), "provider show --namespace Microsoft.Network") {
		t.Errorf("exit %d, %s, calls %q", code, stderr, calls)
	}
	code, _, stderr, calls = deploy(t, "", append(deploySettings, "DEPLOY_SQL_ADMIN=dba", "DEPLOY_SQL_ADMIN_ID=1"), "--group", "rg", "--parameters", abs(t, "parameters/standard-new-database.bicepparam"))
	if code != 0 || !strings.Contains(strings.Join(calls, "\n"), "provider show --namespace Microsoft.Sql") {
		t.Errorf("exit %d, %s, calls %q", code, stderr, calls)
	}
}

func abs(t *testing.T, path string) string {
	t.Helper()
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return full
}

func TestDeployRefuses(t *testing.T) {
	good := []string{"--group", "rg"}
	for name, test := range map[string]struct {
		answer      string
		environment []string
		arguments   []string
		code        int
		says        string
	}{
		"no group":         {"", deploySettings, nil, 2, "--group is missing"},
		"no value":         {"", deploySettings, []string{"--group"}, 2, "--group needs a value"},
		"an empty value":   {"", deploySettings, []string{"--group", "", "--execute"}, 2, "--group needs a value"},
		"a flag as group":  {"", deploySettings, []string{"--group", "--execute"}, 2, "--group needs a value, and --execute is a flag"},
		"a flag as file":   {"", deploySettings, []string{"--group", "rg", "--parameters", "--execute"}, 2, "--parameters needs a value, and --execute is a flag"},
		"no file after it": {"", deploySettings, []string{"--group", "rg", "--parameters"}, 2, "--parameters needs a value"},
		"unknown argument": {"", deploySettings, []string{"--force"}, 2, "unknown argument --force"},
		"no file":          {"", deploySettings, []string{"--group", "rg", "--parameters", "no.bicepparam"}, 2, "no such parameter file: no.bicepparam"},
		"a folder":         {"", deploySettings, []string{"--group", "rg", "--parameters", abs(t, "parameters"), "--execute"}, 2, "parameters is no file"},
		"another file":     {"", deploySettings, []string{"--group", "rg", "--parameters", abs(t, "main.bicep")}, 2, "main.bicep is no .bicepparam file"},
		"no variable":      {"", deploySettings[:1], good, 2, "reads DEPLOY_SQL_HOST, which is not set"},
		"no az":            {"none", deploySettings, good, 2, "az) is not installed"},
		"an old az":        {"'version '*) echo 2.52.0 ;;", deploySettings, good, 2, "az is 2.52.0, and 2.53.0 is the oldest"},
		"not signed in":    {"'account show '*) exit 1 ;;", deploySettings, good, 2, "az login"},
		"no bicep":         {"'bicep version') exit 1 ;;", deploySettings, good, 2, "az bicep install"},
		"an old bicep":     {"'bicep version') echo 'Bicep CLI version 0.9.1 (a)' ;;", deploySettings, good, 2, "Bicep is 0.9.1, and 0.25.3 is the oldest"},
		"no such group":    {"'group show '*) exit 3 ;;", deploySettings, good, 2, "no resource group rg in Contoso: az group create"},
		"no provider": {
			"'provider show --namespace Microsoft.App '*) echo NotRegistered ;;", deploySettings, good, 2,
			"Microsoft.App is NotRegistered: az provider register --namespace Microsoft.App --wait",
		},
		"what-if fails": {"'deployment group what-if '*) exit 1 ;;", deploySettings, good, 1, "nothing was changed"},
		"az fails":      {"'version '*) exit 4 ;;", deploySettings, good, 1, "az version failed"},
		"no outputs":    {"'deployment group show '*) exit 3 ;;", deploySettings, append(good, "--execute"), 1, "the deployment is done, and its output users could not be read"},
		"create fails":  {"'deployment group create '*) exit 1 ;;", deploySettings, append(good, "--execute"), 1, "the same command goes on"},
	} {
		code, stdout, stderr, calls := deploy(t, test.answer, test.environment, test.arguments...)
		if code != test.code || !strings.Contains(stderr, test.says) {
			t.Errorf("%s: exit %d, said\n%s%s", name, code, stdout, stderr)
		}
		for _, call := range calls {
			if test.code == 2 && strings.HasPrefix(call, "deployment") {
				t.Errorf("%s: it ran az %s", name, call)
			}
		}
		// What is wrong with its own arguments it says before it asks Azure anything.
		if test.answer == "" && len(calls) > 0 {
			t.Errorf("%s: it ran az %q", name, calls)
		}
	}
}
