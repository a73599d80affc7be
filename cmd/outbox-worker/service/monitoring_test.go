package service_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"azsqloutbox/cmd/outbox-dev/local"
)

const monitoring = "../../../infra/monitoring"

// Every metric that the dashboard and the alerts name is one that a worker has, and
// the manual's table has them all, of the right kind, and no other.
func TestMonitoringNamesMetricsThatExist(t *testing.T) {
	_, served := get(t, troubled(t), "/metrics")
	stack := startStack(t, local.Config{})
	s := settingsFor(t, stack)
	s.Process.Listen = freeAddress(t)
	enqueue(t, stack, event("order-placed", "{}"))
	runService(t, s)
	eventually(t, "a batch was settled", func() bool {
		_, body := get(t, s.Process.Listen, "/metrics")
		served += body
		return strings.Contains(body, "outbox_settle_duration_seconds_count 1")
	})
	kinds := make(map[string]string)
	for _, line := range regexp.MustCompile(`(?m)^# TYPE (outbox_\w+) (\w+)$`).FindAllStringSubmatch(served, -1) {
		kinds[line[1]] = line[2]
	}
	files, err := filepath.Glob(monitoring + "/*")
	if err != nil || len(files) < 2 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`outbox_\w+`).FindAllString(string(text), -1)
		if len(names) < 5 {
			t.Errorf("%s names only %v", file, names)
		}
		for _, name := range names {
			if kinds[name] == "" && kinds[strings.TrimSuffix(name, "_bucket")] != "histogram" {
				t.Errorf("%s names %s, which no worker has", filepath.Base(file), name)
			}
		}
	}
	manual, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `(outbox_\\w+)` \\| (\\w+)").FindAllStringSubmatch(string(manual), -1) {
		documented[row[1]] = row[2]
	}
	if !maps.Equal(documented, kinds) {
		t.Errorf("docs/operations.md has\n%v,\na worker\n%v", documented, kinds)
	}
	for name, kind := range kinds {
		if strings.HasSuffix(name, "_total") != (kind == "counter") {
			t.Errorf("%s is a %s: _total is the end of a counter's name, and of no other's", name, kind)
		}
	}
}

// Every alert has what a person needs, and a row in the table of the manual.
func TestAlertsAreComplete(t *testing.T) {
	text, err := os.ReadFile(monitoring + "/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	manual, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Groups[0].Rules {
		if r.Alert == "" || r.Expr == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || !strings.HasPrefix(r.Annotations["command"], "outboxctl ") {
			t.Errorf("alert %q is incomplete: %+v", r.Alert, r)
		}
		if !strings.Contains(string(manual), "| `"+r.Alert+"` |") {
			t.Errorf("docs/operations.md has no row for %s", r.Alert)
		}
	}
}

func TestDashboardIsWellFormed(t *testing.T) {
	text, err := os.ReadFile(monitoring + "/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for _, p := range d.Panels {
		if seen[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.Targets[0].Expr == "" {
			t.Errorf("panel %+v", p)
		}
		seen[p.ID] = true
	}
}
