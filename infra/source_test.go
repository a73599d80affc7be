package infra

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// source reads a file of the repository as text.
func source(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// files are the texts of all that match, by their base names.
func files(t *testing.T, pattern string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	all := map[string]string{}
	for _, name := range names {
		all[filepath.Base(name)] = source(t, name)
	}
	return all
}

// rows are the lines of a table that are no comments, with as many columns as it has.
func rows(t *testing.T, path string, columns int) [][]string {
	t.Helper()
	var all [][]string
	for line := range strings.Lines(source(t, path)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		row := strings.Split(strings.TrimSpace(line), "\t")
		if len(row) != columns {
			t.Fatalf("%s: %q has %d columns, want %d", path, line, len(row), columns)
		}
		all = append(all, row)
	}
	return all
}
