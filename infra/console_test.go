package infra

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheConsoleLooksAsTheWorker: as it stands it runs doctor, changes nothing, and
// has the worker's settings for it; TestTheJobsRun starts it. Other commands run as an
// identity of its own.
func TestTheConsoleLooksAsTheWorker(t *testing.T) {
	args, env := container(t, "consoleJob", "console")
	_, worker := container(t, "worker", "worker")
	if dsn := "--sql-dsn=" + worker["OUTBOX_SQL_DSN"]; !slices.Equal(args, []string{"doctor", dsn}) {
		t.Fatalf("it runs %v, want doctor %s", args, dsn)
	}
	if env["OUTBOX_SQL_DSN"] == worker["OUTBOX_SQL_DSN"] {
		t.Error("other commands would run as the worker too")
	}
	for name, value := range env {
		if name != "OUTBOX_SQL_DSN" && name != "OUTBOX_CONFIG" && worker[name] != value {
			t.Errorf("%s is %q, and the worker's is %q", name, value, worker[name])
		}
	}
	takes(t, env)
}

// TestTheRoutesAreWhereTheConfigSays: what OUTBOX_CONFIG names is what is mounted, and
// for the worker it has another name when the routes change. A changed secret alone
// makes no revision (azure-docs, container-apps/manage-secrets.md), so that workers
// would keep the routes of their start.
func TestTheRoutesAreWhereTheConfigSays(t *testing.T) {
	given := map[string]string{"uniqueString(routes)": "0123456789abc"}
	for path, want := range map[string]string{
		"modules/worker.bicep":  "/etc/outbox/routes-0123456789abc.yaml",
		"modules/console.bicep": "/etc/outbox/routes.yaml", // each execution reads it anew
	} {
		f := bicep(t)[path]
		var config, folder, file string
		for _, r := range f.resources {
			for _, s := range f.sets(r.body, "") {
				switch s.path {
				case "properties.template.containers[].env[]":
					if name, _ := s.value.property("name").literal(); name == "OUTBOX_CONFIG" {
						config = f.text(t, s.value.property("value"), given)
					}
				case "properties.template.containers[].volumeMounts[].mountPath":
					folder = f.text(t, s.value, given)
				case "properties.template.volumes[].secrets[].path":
					file = f.text(t, s.value, given)
				}
			}
		}
		if config != want || folder+"/"+file != want {
			t.Errorf("%s: OUTBOX_CONFIG is %s, and %s/%s is mounted; want %s", path, config, folder, file, want)
		}
	}
}

// TestThePagesTemplateIsWhole: the template of an execution takes the place of the
// job's, so that what docs/deploy.md leaves out of it would be gone: the settings, say.
// It has no volumes (Microsoft's REST reference, Jobs - Start, JobExecutionContainer).
func TestThePagesTemplateIsWhole(t *testing.T) {
	query := regexp.MustCompile(`(?s)containers\[\]\.\{(.*?)\}\}`).FindStringSubmatch(source(t, "../docs/deploy.md"))
	if query == nil {
		t.Fatal("docs/deploy.md has no query for the console's template")
	}
	var got, want []string
	for _, field := range regexp.MustCompile(`(\w+): `).FindAllStringSubmatch(query[1], -1) {
		got = append(got, field[1])
	}
	f := bicep(t)["modules/console.bicep"]
	for _, c := range f.resources["console"].body.property("properties").property("template").property("containers").items() {
		for _, p := range c.items() {
			if p.key() != "volumeMounts" {
				want = append(want, p.key())
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the container's fields (-Bicep +page):\n%s", diff)
	}
}
