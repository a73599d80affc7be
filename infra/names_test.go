package infra

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// locals are the names that loops and lambdas bring in.
func locals(tree *node) map[string]bool {
	names := map[string]bool{}
	tree.walk(func(n *node) {
		switch n.Kind {
		case "for_statement":
			for _, c := range n.Children[2:] {
				if c.Kind == "in" {
					break
				}
				c.walk(func(c *node) {
					if len(c.Children) == 0 {
						names[c.Text] = true
					}
				})
			}
		case "lambda_expression":
			n.Children[0].walk(func(c *node) {
				if c.Kind == "identifier" {
					names[c.Text] = true
				}
			})
		}
	})
	return names
}

// references are the names that a file's expressions and types use, with the first
// node that does.
func references(tree *node) map[string]*node {
	found := map[string]*node{}
	var visit func(n *node, top bool)
	visit = func(n *node, top bool) {
		for i, c := range n.Children {
			name := c.Kind == "identifier" || c.Kind == "compatible_identifier"
			switch {
			case name && i == 0 && (n.Kind == "object_property" || n.Kind == "call_expression"):
			case name && i <= 1 && strings.HasSuffix(n.Kind, "_declaration"), n.Kind == "import_functionality":
			case c.Kind == "identifier" && found[c.Text] == nil:
				found[c.Text] = c
			}
			visit(c, false)
		}
	}
	visit(tree, true)
	return found
}

// TestEveryNameIsDeclaredAndUsed: the compiler refuses a name that it does not know,
// and its linter warns of parameters, variables and imports that nobody uses.
func TestEveryNameIsDeclaredAndUsed(t *testing.T) {
	trees := parsed(t)
	for _, f := range bicep(t) {
		if f.using != "" {
			continue
		}
		used, local := references(trees[f.name]), locals(trees[f.name])
		known := slices.Collect(maps.Keys(f.params))
		known = slices.AppendSeq(known, maps.Keys(f.vars))
		known = append(known, f.imports...)
		for _, name := range known {
			if used[name] == nil {
				t.Errorf("%s: nobody uses %s", f.name, name)
			}
		}
		known = slices.AppendSeq(known, maps.Keys(f.resources))
		known = slices.AppendSeq(known, maps.Keys(f.modules))
		known = slices.AppendSeq(known, maps.Keys(f.types))
		for name, n := range used {
			if !slices.Contains(known, name) && !local[name] && !slices.Contains([]string{"string", "int", "bool", "object", "array"}, name) {
				t.Errorf("%s:%d: %s is not declared", f.name, n.Line, name)
			}
		}
		trees[f.name].walk(func(n *node) {
			if n.Kind == "call_expression" && n.Children[0].Kind == "identifier" {
				name := n.Children[0].Text
				if slices.Contains(known, name) {
					t.Errorf("%s:%d: the function %s is hidden by a declaration of that name", f.name, n.Line, name)
				}
				if functions[name] == "" && !slices.Contains([]string{"allowed", "description", "export", "minLength", "maxLength", "minValue", "maxValue", "secure"}, name) {
					t.Errorf("%s:%d: this test does not know the function %s", f.name, n.Line, name)
				}
			}
		})
	}
}

// checkValues compares what is given for parameters with what they take.
func checkValues(t *testing.T, from, to *file, given map[string]*node) {
	t.Helper()
	for name, value := range given {
		p, known := to.params[name]
		if !known {
			t.Errorf("%s:%d: %s has no parameter %s", from.name, value.Line, to.name, name)
			continue
		}
		if wrong := mismatch(from, value, to.typeKind(p.of)); wrong != "" && to.typeKind(p.of) != "any" {
			t.Errorf("%s:%d: %s %s", from.name, value.Line, name, wrong)
		}
		if allowed := p.decorators["allowed"]; allowed != nil && value.child("interpolation") == nil &&
			slices.Contains([]string{"string", "number"}, value.Kind) && !slices.ContainsFunc(allowed.child("array").items(), func(n *node) bool { return n.Text == value.Text }) {
			t.Errorf("%s:%d: %s is not one of %s", from.name, value.Line, value.Text, allowed.Text)
		}
		checkBounds(t, from, p, name, value)
		if of := p.of.child("array_type"); of != nil {
			checkObjects(t, from, to, of.child("type"), value)
		}
	}
	for name, p := range to.params {
		if given[name] == nil && !p.optional && p.of.child("nullable_type") == nil {
			t.Errorf("%s does not give %s to %s", from.name, name, to.name)
		}
	}
}

func checkBounds(t *testing.T, from *file, p param, name string, value *node) {
	t.Helper()
	size, ok := 0, false
	if n, err := strconv.Atoi(value.Text); err == nil {
		size, ok = n, true
	}
	if text, literal := value.literal(); literal {
		size, ok = len(text), true
	}
	if value.Kind == "array" {
		size, ok = len(value.items()), true
	}
	if !ok {
		return
	}
	for decorator, least := range map[string]bool{"minValue": true, "minLength": true, "maxValue": false, "maxLength": false} {
		arguments := p.decorators[decorator]
		if arguments == nil {
			continue
		}
		bound, err := strconv.Atoi(arguments.items()[0].Text)
		if err != nil {
			t.Errorf("%s: @%s%s", name, decorator, arguments.Text)
		}
		if least && size < bound || !least && size > bound {
			t.Errorf("%s:%d: %s is %s, which @%s(%d) does not let through", from.name, value.Line, name, value.Text, decorator, bound)
		}
	}
}

// checkObjects compares the objects of an array with a type of ours.
func checkObjects(t *testing.T, from, to *file, of *node, value *node) {
	t.Helper()
	fields := to.types[of.Text]
	if fields == nil || value.Kind != "array" {
		return
	}
	for _, object := range value.items() {
		for _, p := range object.items() {
			field := fields.property(p.key())
			if field == nil {
				t.Errorf("%s:%d: %s has no %s", from.name, p.Line, of.Text, p.key())
				continue
			}
			if field.Kind == "union_type" && !strings.Contains(field.Text, p.last().Text) {
				t.Errorf("%s:%d: %s is %s, want %s", from.name, p.Line, p.key(), p.last().Text, field.Text)
			}
			if want, got := to.typeKind(field), from.kind(p.last()); want != got && got != "any" && want != "any" {
				t.Errorf("%s:%d: %s is a %s, want a %s", from.name, p.Line, p.key(), got, want)
			}
		}
		for _, field := range fields.items() {
			if field.last().Kind != "nullable_type" && object.property(field.key()) == nil {
				t.Errorf("%s:%d: %s needs %s", from.name, object.Line, of.Text, field.key())
			}
		}
	}
}

func TestModulesGetTheirParameters(t *testing.T) {
	all := bicep(t)
	used := map[string]bool{"main.bicep": true, "modules/types.bicep": true}
	for _, f := range all {
		for name, m := range f.modules {
			to := all[m.path]
			if to == nil {
				t.Errorf("%s: module %s is in %s, which is not there", f.name, name, m.path)
				continue
			}
			used[m.path] = true
			given := map[string]*node{}
			for _, p := range m.body.property("params").items() {
				given[p.key()] = p.last()
			}
			checkValues(t, f, to, given)
		}
		// The outputs that are read are there.
		parsed(t)[f.name].walk(func(n *node) {
			if n.Kind != "member_expression" || n.Children[0].Kind != "member_expression" || n.Children[0].last().Text != "outputs" {
				return
			}
			m, known := f.modules[n.Children[0].Children[0].Text]
			if known && all[m.path].outputs[n.last().Text] == nil {
				t.Errorf("%s:%d: %s has no output %s", f.name, n.Line, m.path, n.last().Text)
			}
		})
	}
	for name, f := range all {
		if f.using == "" && !used[name] {
			t.Errorf("nobody uses %s", name)
		}
	}
}

func TestParameterFilesSetParametersThatExist(t *testing.T) {
	all := bicep(t)
	page := source(t, "../docs/deploy.md")
	seen := 0
	for _, f := range all {
		if filepath.Ext(f.name) != ".bicepparam" {
			continue
		}
		seen++
		to := all[f.using]
		if to == nil {
			t.Errorf("%s uses %q", f.name, f.using)
			continue
		}
		checkValues(t, f, to, f.vars)
		for _, value := range f.vars {
			value.walk(func(n *node) {
				if n.Kind != "call_expression" || n.Children[0].Text != "readEnvironmentVariable" {
					return
				}
				variable, _ := n.child("arguments").items()[0].literal()
				if !strings.Contains(page, "`"+variable+"`") {
					t.Errorf("%s:%d: docs/deploy.md does not say what %s is", f.name, n.Line, variable)
				}
			})
		}
	}
	if seen < 3 {
		t.Errorf("%d parameter files were read", seen)
	}
}

// TestOutputsHoldNoSecrets: outputs are kept in the history of deployments, where
// everybody who may read the group reads them.
func TestOutputsHoldNoSecrets(t *testing.T) {
	for _, f := range bicep(t) {
		for name, output := range f.outputs {
			output.walk(func(n *node) {
				if n.Kind == "property_identifier" && strings.HasPrefix(n.Text, "list") {
					t.Errorf("%s:%d: output %s calls %s", f.name, n.Line, name, n.Text)
				}
				if p, known := f.params[n.Text]; n.Kind == "identifier" && known && p.decorators["secure"] != nil {
					t.Errorf("%s:%d: output %s holds the secure parameter %s", f.name, n.Line, name, n.Text)
				}
			})
		}
	}
}
