// Package infra checks what can be checked of the deployment without Azure.
package infra

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// node is one of tree-sitter-bicep's syntax tree; .ci/bicep/tree.mjs writes it.
type node struct {
	Kind     string
	Line     int
	EndLine  int
	Text     string
	Bad      bool
	Children []*node
}

// trees are those of all Bicep files here, by file name. The parser is one from npm,
// because a parser of our own would take what it was written to take.
var trees = sync.OnceValues(func() (map[string]*node, error) {
	texts := map[string]string{}
	for _, pattern := range []string{"*.bicep", "modules/*.bicep", "parameters/*.bicepparam"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			// Read here and not by node, so that go test knows what its cache depends on.
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			texts[name] = string(text)
		}
	}
	input, err := json.Marshal(texts)
	if err != nil {
		return nil, err
	}
	const script = "../.ci/bicep/tree.mjs"
	if _, err := os.ReadFile(script); err != nil { // the same
		return nil, err
	}
	parser := exec.Command("node", script)
	parser.Stdin = bytes.NewReader(input)
	output, err := parser.Output()
	if err != nil {
		if failed, ok := err.(*exec.ExitError); ok {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return nil, fmt.Errorf("parse the Bicep files: %w", err)
	}
	all := map[string]*node{}
	if err := json.Unmarshal(output, &all); err != nil {
		return nil, err
	}
	return all, nil
})

// parsed returns the trees, or skips the test where the parser is not installed,
// unless OUTBOX_TEST_BICEP is set, as .ci/run does.
func parsed(t *testing.T) map[string]*node {
	t.Helper()
	if _, err := os.Stat("../.ci/bicep/node_modules"); err != nil && os.Getenv("OUTBOX_TEST_BICEP") == "" {
		t.Skip("the Bicep parser is not installed: (cd .ci/bicep && npm ci --ignore-scripts)")
	}
	all, err := trees()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (n *node) child(kind string) *node {
	for _, c := range n.Children {
		if c.Kind == kind {
			return c
		}
	}
	return nil
}

// last is the expression of a declaration or property: nothing comes after it.
func (n *node) last() *node { return n.Children[len(n.Children)-1] }

func (n *node) walk(visit func(*node)) {
	visit(n)
	for _, c := range n.Children {
		c.walk(visit)
	}
}

// literal is what a string without interpolation says.
func (n *node) literal() (string, bool) {
	if n == nil || n.Kind != "string" || n.child("interpolation") != nil {
		return "", false
	}
	text := strings.TrimPrefix(n.Text, "'''")
	if len(text) < len(n.Text) {
		return strings.TrimPrefix(strings.TrimSuffix(text, "'''"), "\n"), true
	}
	text = strings.TrimSuffix(strings.TrimPrefix(n.Text, "'"), "'")
	return strings.NewReplacer(`\'`, "'", `\\`, `\`, `\n`, "\n", `\$`, "$").Replace(text), true
}

// items are the elements of an array, the properties of an object or the arguments
// of a call, without marks and comments.
func (n *node) items() []*node {
	var found []*node
	for _, c := range n.Children {
		if len(c.Children) > 0 || !strings.Contains("{}[](),", c.Kind) && c.Kind != "comment" {
			found = append(found, c)
		}
	}
	return found
}

// key is the name of an object's property; one with interpolation is "*".
func (n *node) key() string {
	name := n.Children[0]
	if name.Kind != "string" {
		return name.Text
	}
	if text, ok := name.literal(); ok {
		return text
	}
	return "*"
}

func (n *node) property(name string) *node {
	for _, p := range n.items() {
		if p.Kind == "object_property" && p.key() == name {
			return p.last()
		}
	}
	return nil
}

func TestTheBicepFilesAreWellFormed(t *testing.T) {
	all := parsed(t)
	if len(all) < 10 {
		t.Fatalf("only %d files were read", len(all))
	}
	for name, tree := range all {
		tree.walk(func(n *node) {
			if n.Bad {
				t.Errorf("%s:%d: %s near %.60q", name, n.Line, n.Kind, n.Text)
			}
			// The grammar takes any white space between items; Bicep wants a comma or a
			// new line.
			switch n.Kind {
			case "object", "array", "infrastructure":
				for i, c := range n.Children[:max(0, len(n.Children)-1)] {
					next := n.Children[i+1]
					if !slices.Contains([]string{"{", "}", "[", "]", ",", "comment"}, c.Kind) &&
						!slices.Contains([]string{"{", "}", "[", "]", ",", "comment"}, next.Kind) && c.EndLine == next.Line {
						t.Errorf("%s:%d: no comma or new line between %.30q and %.30q", name, c.Line, c.Text, next.Text)
					}
				}
			}
			if n.Kind == "object" {
				seen := map[string]bool{}
				for _, p := range n.items() {
					if p.Kind == "object_property" && p.key() != "*" && seen[p.key()] {
						t.Errorf("%s:%d: %s is set twice", name, p.Line, p.key())
					}
					seen[p.key()] = true
				}
			}
		})
	}
}
