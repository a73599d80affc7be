package service_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"azsqloutbox/cmd/outbox-dev/local"
)

const monitoring = "../../../infra/monitoring"

// Every metric that the dashboard and the alerts name is one that a worker has.
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
	has := make(map[string]bool)
	for _, line := range strings.Split(served, "\n") {
		if name := regexp.MustCompile(`^outbox_\w+`).FindString(line); name != "" {
			has[name] = true
		}
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
			if !has[name] {
				t.Errorf("%s names %s, which no worker has", filepath.Base(file), name)
			}
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
