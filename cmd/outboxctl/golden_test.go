package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// golden compares what a command printed with testdata/name.golden; with
// UPDATE_GOLDEN=1 in the environment it writes the file instead. What differs
// from run to run is replaced first: times of the database, and what replace
// matches, each by its word.
func golden(t *testing.T, name, got string, replace ...replacement) {
	t.Helper()
	for _, r := range append(replace, databaseTimes...) {
		got = r.pattern.ReplaceAllString(got, r.with)
	}
	file := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

type replacement struct {
	pattern *regexp.Regexp
	with    string
}

func replacing(pattern, with string) replacement {
	return replacement{regexp.MustCompile(pattern), with}
}

var databaseTimes = []replacement{
	replacing(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`, "TIME"),
	replacing(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`, "TIME"),
}
