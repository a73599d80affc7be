package infra

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
)

// values that only a deployment knows, by the expression that stands for them.
var deployed = map[string]string{
	"sqlHost":                            "contoso.database.windows.net",
	"identities.outputs.workerClientId":  "00000000-0000-0000-0000-000000000001",
	"worker.properties.principalId":      "00000000-0000-0000-0000-000000000002",
	"identities.outputs.jobsClientId":    "00000000-0000-0000-0000-000000000003",
	"jobs.properties.principalId":        "00000000-0000-0000-0000-000000000004",
	"identities.outputs.consoleClientId": "00000000-0000-0000-0000-000000000005",
	"console!.properties.principalId":    "00000000-0000-0000-0000-000000000006",
	"serviceBusHost":                     "contoso.servicebus.windows.net",
	"environment.outputs.id":             "/environment",
	"entities[0].name":                   "orders",
	"resourceGroup().location":           "westeurope",
	"workerId":                           "/worker",
	"jobsId":                             "/jobs",
	"consoleId":                          "/console",
	"name":                               "outbox",
}

// text is what a string expression comes to. given goes before the file's own
// variables and the defaults of its parameters.
func (f *file) text(t *testing.T, n *node, given map[string]string) string {
	t.Helper()
	if known, ok := given[n.Text]; ok {
		return known
	}
	switch n.Kind {
	case "number":
		return n.Text
	case "string":
		if text, ok := n.literal(); ok {
			return text
		}
		var b strings.Builder
		for _, c := range n.Children {
			switch c.Kind {
			case "string_content":
				b.WriteString(c.Text)
			case "escape_sequence":
				b.WriteString(strings.TrimPrefix(c.Text, `\`))
			case "interpolation":
				b.WriteString(f.text(t, c.Children[1], given))
			}
		}
		return b.String()
	case "identifier":
		if of := f.vars[n.Text]; of != nil {
			return f.text(t, of, given)
		}
		if p := f.params[n.Text]; p.preset != nil {
			return f.text(t, p.preset, given)
		}
	case "call_expression":
		if name := n.Children[0].Text; name == "string" || name == "uriComponent" {
			return f.text(t, n.child("arguments").items()[0], given)
		}
	}
	t.Fatalf("%s:%d: this test cannot work out %s", f.name, n.Line, n.Text)
	return ""
}

// container is the first one of a resource, as main.bicep's module call makes it.
func container(t *testing.T, moduleName, resourceName string) (args []string, env map[string]string) {
	t.Helper()
	all := bicep(t)
	main := all["main.bicep"]
	m := main.modules[moduleName]
	f := all[m.path]
	given := map[string]string{"uniqueString(routes)": "0123456789abc"}
	for _, p := range m.body.property("params").items() {
		if main.kind(p.last()) == "int" || main.typeKind(f.params[p.key()].of) == "string" {
			if slices.Contains([]string{"registryServer", "routes", "otlpEndpoint", "scalerSecretUrl", "image"}, p.key()) {
				continue // they do not become settings
			}
			given[p.key()] = main.text(t, p.last(), deployed)
		}
	}
	env = map[string]string{}
	for _, s := range f.sets(f.resources[resourceName].body, "") {
		switch s.path {
		case "properties.template.containers[].args[]":
			args = append(args, f.text(t, s.value, given))
		case "properties.template.containers[].env[]":
			name, _ := s.value.property("name").literal()
			if name == "OUTBOX_SERVICEBUS_RATE" {
				given["serviceBusRate"] = "450" // the default, 0, leaves it out
			}
			if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
				continue // OpenTelemetry's own
			}
			env[name] = f.text(t, s.value.property("value"), given)
		}
	}
	return args, env
}

// takes parses these variables as the worker does, and returns what comes of them and
// all variables that it has. One that it has not is an error of the test.
func takes(t *testing.T, env map[string]string) (settings service.Settings, known []string) {
	t.Helper()
	vars := kong.Vars(service.Defaults())
	vars["credentials"] = "any"
	model, err := kong.New(&settings, kong.DefaultEnvars("OUTBOX"), vars)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range model.Model.Flags {
		known = append(known, flag.Envs...)
	}
	for name, value := range env {
		if !slices.Contains(known, name) {
			t.Errorf("the worker has no setting %s", name)
		}
		t.Setenv(name, value)
	}
	settings = service.Settings{}
	var stdout, stderr bytes.Buffer
	if _, ok := service.Parse(&settings, "outbox-worker", "", nil, &stdout, &stderr); !ok {
		t.Fatalf("the worker says %s of %v", stderr.String(), env)
	}
	return settings, known
}

// TestTheWorkerTakesItsSettings parses them as the worker does.
func TestTheWorkerTakesItsSettings(t *testing.T) {
	_, env := container(t, "worker", "worker")
	if len(env) < 12 {
		t.Errorf("only these settings were found: %v", env)
	}
	settings, known := takes(t, env)
	var printed []string
	bicep(t)["main.bicep"].outputs["settings"].last().walk(func(n *node) {
		if n.Kind != "string" {
			return
		}
		name, _, _ := strings.Cut(strings.Trim(n.Text, "'"), "=")
		if printed = append(printed, name); !slices.Contains(known, name) {
			t.Errorf("output settings: the worker has no setting %s", name)
		}
	})
	for _, name := range []string{"OUTBOX_SQL_DSN", "OUTBOX_ENTITY", "OUTBOX_CONFIG"} {
		if !slices.Contains(printed, name) {
			t.Errorf("output settings: %s is not among %v", name, printed)
		}
	}
	if err := settings.SQL.Check(); err != nil {
		t.Error(err)
	}
	if settings.Process.Listen != ":8080" || settings.ServiceBus.Namespace != "contoso.servicebus.windows.net" || settings.ServiceBus.Rate != 450 {
		t.Errorf("the settings are %+v", settings)
	}
}

// TestTheDSNsBoundNoStatement: go-mssqldb's connection timeout ends a statement that
// answers nothing for so long, and what runs for hours could not take it back.
func TestTheDSNsBoundNoStatement(t *testing.T) {
	found := 0
	for _, of := range [][2]string{{"worker", "worker"}, {"jobs", "purge"}, {"jobs", "rebuild"}, {"consoleJob", "console"}} {
		args, env := container(t, of[0], of[1])
		for _, dsn := range append(args, env["OUTBOX_SQL_DSN"]) {
			dsn = strings.TrimPrefix(dsn, "--sql-dsn=")
			if !strings.HasPrefix(dsn, "sqlserver://") {
				continue
			}
			found++
			if err := sqlserver.CheckDSN(dsn); err != nil {
				t.Errorf("%s: %v", of[1], err)
			}
			if u, err := url.Parse(dsn); err != nil || u.Query().Has("connection timeout") {
				t.Errorf("%s: %s has a connection timeout, %v", of[1], dsn, err)
			}
		}
	}
	if found != 5 {
		t.Errorf("%d DSNs, want one each and doctor's", found)
	}
}

// TestTheJobsRun starts outboxctl with the arguments and the settings of the jobs,
// on an embedded engine.
func TestTheJobsRun(t *testing.T) {
	p, stack := buildPrograms(t), embedded(t)
	// Every variable is one that outboxctl has: it does not say so of unknown ones.
	tags := strings.Join(slices.Collect(maps.Values(files(t, "../cmd/outboxctl/*.go"))), "\n")
	for _, job := range []string{"purge", "rebuild"} {
		args, env := container(t, "jobs", job)
		if !slices.Contains(args, "--execute") || args[0] != job {
			t.Errorf("%s runs %v, which changes nothing", job, args)
		}
		env["OUTBOX_SQL_DSN"] = stack.SQL.DSN()
		p.env = nil
		for name, value := range env {
			p.env = append(p.env, name+"="+value)
			shared := slices.Contains([]string{"OUTBOX_SQL_DSN", "OUTBOX_SCHEMA", "OUTBOX_TABLE"}, name)
			if !shared && !strings.Contains(tags, `env:"`+name+`"`) {
				t.Errorf("outboxctl has no setting %s", name)
			}
		}
		if output := p.run(t, []int{0}, "outboxctl", args...); !json.Valid(output) {
			t.Errorf("outboxctl %v says no JSON", args)
		}
	}
	// What the alert on failed jobs looks for is what they say, of the jobs there are.
	failed := exec.Command(filepath.Join(p.folder, "outboxctl"), "purge", "--execute", "--table=nowhere", "--sql-dsn="+stack.SQL.DSN())
	if _, said, code := exited(t, failed); code == 0 || !strings.HasPrefix(said, "outboxctl: ") {
		t.Errorf("a purge that fails exits with %d and says %s", code, said)
	}
	for _, looksFor := range []string{`Log startswith "outboxctl: "`, `ContainerGroupName startswith "${name}-purge-"`, `ContainerGroupName startswith "${name}-rebuild-"`} {
		if !strings.Contains(source(t, "modules/alerts.bicep"), looksFor) {
			t.Errorf("alerts.bicep does not ask for %s", looksFor)
		}
	}
	args, _ := container(t, "consoleJob", "console")
	for i, arg := range args {
		if strings.HasPrefix(arg, "--sql-dsn=") {
			args[i] = "--sql-dsn=" + stack.SQL.DSN()
		}
	}
	p.env = []string{"OUTBOX_SERVICEBUS_CONNECTION_STRING=" + stack.Bus.ConnectionString(), "OUTBOX_ENTITY=" + local.Entity}
	var report struct{ Findings []struct{ Check string } }
	output := p.run(t, []int{0, 3}, "outboxctl", append(args, "--json")...) // 3: it finds what a test's engines lack
	if err := json.Unmarshal(output, &report); err != nil || len(report.Findings) < 5 {
		t.Errorf("doctor found %+v, %v", report, err)
	}
}

// TestTheUsersGetTheirRoles runs the output "users" after the two scripts, with a
// password in place of Entra, and twice.
func TestTheUsersGetTheirRoles(t *testing.T) {
	stack := embedded(t)
	run := func(batch string) {
		t.Helper()
		if _, err := stack.SQL.Exec(t.Context(), batch); err != nil {
			t.Fatalf("%v in %s", err, batch)
		}
	}
	for _, script := range []func(scripts.Options) (string, error){scripts.Grants, scripts.JobGrants} {
		text, err := script(scripts.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range scripts.Batches(text) {
			run(batch)
		}
	}
	run("CREATE ROLE outbox_operators") // docs/deploy.md, Rights
	identities := bicep(t)["modules/identities.bicep"]
	names := maps.Clone(deployed)
	for _, of := range []string{"worker", "jobs", "console"} {
		names[of+"Name"] = "outbox-" + of
	}
	names["table"] = "outbox_event"
	for range 2 {
		for _, line := range identities.sets(identities.outputs["users"].last(), "") {
			text := identities.text(t, line.value, names)
			run(strings.Replace(text, "FROM EXTERNAL PROVIDER", "WITH PASSWORD = 'Correct-Horse-1'", 1))
		}
	}
	for user, role := range map[string]string{"outbox-worker": "outbox_event_role", "outbox-jobs": "outbox_event_jobs_role", "outbox-console": "outbox_operators"} {
		sets, err := stack.SQL.Exec(t.Context(), "SELECT IS_ROLEMEMBER('"+role+"', '"+user+"') AS is_member")
		if err != nil {
			t.Fatal(err)
		}
		if got := sets[0].Rows[0][0]; got != int64(1) {
			t.Errorf("%s in %s: %v", user, role, got)
		}
	}
}
