package infra

import (
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"golang.org/x/mod/modfile"
)

type workflow struct {
	On          any
	Permissions map[string]string
	Concurrency struct{ Group string }
	Jobs        map[string]struct {
		Permissions map[string]string
		RunsOn      string `yaml:"runs-on"`
		Timeout     int    `yaml:"timeout-minutes"`
		Steps       []struct {
			Uses, Run string
			With      map[string]string
		}
	}
}

// TestTheWorkflowIsPinnedAndBounded: .ci/run has actionlint look at the rest.
func TestTheWorkflowIsPinnedAndBounded(t *testing.T) {
	text := source(t, "../.github/workflows/ci.yml")
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
		t.Errorf("permissions are %v", w.Permissions)
	}
	if w.Concurrency.Group == "" {
		t.Error("no concurrency group")
	}
	makefile := source(t, "../Makefile")
	for name, job := range w.Jobs {
		if job.Timeout == 0 || len(job.Permissions) != 0 || strings.HasSuffix(job.RunsOn, "latest") {
			t.Errorf("%s: timeout %d, permissions %v, on %s", name, job.Timeout, job.Permissions, job.RunsOn)
		}
		for _, step := range job.Steps {
			if step.Uses != "" && !regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`).MatchString(step.Uses) {
				t.Errorf("%s: %s is not pinned to a commit", name, step.Uses)
			}
			if strings.HasPrefix(step.Uses, "actions/setup-go@") && step.With["go-version-file"] != "go.mod" {
				t.Errorf("%s: Go's version is not that of go.mod", name)
			}
			if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != "false" {
				t.Errorf("%s: the token stays in the checkout", name)
			}
			if target, isMake := strings.CutPrefix(step.Run, "make "); isMake && !strings.Contains(makefile, "\n"+target+":") {
				t.Errorf("%s: the Makefile has no %s", name, target)
			}
		}
	}
	for _, job := range []string{"lint", "test", "race", "fuzz", "image", "real-engines"} {
		if len(w.Jobs[job].Steps) == 0 {
			t.Errorf("there is no job %s", job)
		}
	}
	versions := map[string]string{} // one version of an action everywhere
	for _, use := range regexp.MustCompile(`uses: ([\w/-]+)@(.*)`).FindAllStringSubmatch(text, -1) {
		if !regexp.MustCompile(` # v\d+\.\d+\.\d+$`).MatchString(use[2]) {
			t.Errorf("%s: no version beside the commit", use[0])
		}
		if before := versions[use[1]]; before != "" && before != use[2] {
			t.Errorf("%s: both %s and %s", use[1], before, use[2])
		}
		versions[use[1]] = use[2]
	}
}

// TestOneGoEverywhere: the same Go makes the image, and the one that it is compared
// with.
func TestOneGoEverywhere(t *testing.T) {
	mod, err := modfile.Parse("go.mod", []byte(source(t, "../go.mod")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if mod.Toolchain == nil {
		t.Fatal("go.mod names no toolchain")
	}
	if want := "/golang:" + strings.TrimPrefix(mod.Toolchain.Name, "go") + "-"; !strings.Contains(source(t, "Dockerfile"), want) {
		t.Errorf("the Dockerfile is not of %s", mod.Toolchain.Name)
	}
}
