package infra

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// file is what one Bicep file declares.
type file struct {
	name      string // path from this folder
	using     string // of a parameter file, from this folder
	params    map[string]param
	vars      map[string]*node // to what they are; the assignments of a parameter file as well
	resources map[string]resource
	modules   map[string]module
	outputs   map[string]*node
	types     map[string]*node // and those that are imported
	imports   []string
	loops     []loop
}

// loop is for VARIABLE in OVER, where both are names.
type loop struct{ variable, over string }

type param struct {
	of         *node // its type
	optional   bool  // it has a default
	preset     *node // which is this
	decorators map[string]*node
}

type resource struct {
	of       string // type@version
	existing bool
	body     *node // the object
	whole    *node
}

type module struct {
	path string // from this folder
	body *node
}

// bicep returns every file with what it declares.
func bicep(t *testing.T) map[string]*file {
	t.Helper()
	all := map[string]*file{}
	for name, tree := range parsed(t) {
		all[name] = declared(t, name, tree)
	}
	for _, f := range all { // imported types
		for _, n := range f.imports {
			for _, g := range all {
				if of := g.types[n]; of != nil && g != f {
					f.types[n] = of
				}
			}
		}
	}
	return all
}

func declared(t *testing.T, name string, tree *node) *file {
	f := &file{
		name: name, params: map[string]param{}, vars: map[string]*node{}, resources: map[string]resource{},
		modules: map[string]module{}, outputs: map[string]*node{}, types: map[string]*node{},
	}
	symbols := map[string]bool{}
	once := func(n *node) string {
		id := n.child("identifier").Text
		if symbols[id] {
			t.Errorf("%s:%d: %s is declared twice", name, n.Line, id)
		}
		symbols[id] = true
		return id
	}
	decorators := map[string]*node{}
	for _, n := range tree.Children {
		if n.Kind == "comment" {
			continue
		}
		if n.Kind == "decorators" {
			for _, d := range n.Children {
				call := d.child("call_expression")
				decorators[call.Children[0].Text] = call.child("arguments")
			}
			continue
		}
		path, _ := n.child("string").literal()
		switch n.Kind {
		case "parameter_declaration":
			p := param{of: n.child("type"), optional: n.child("=") != nil, decorators: decorators}
			if p.optional {
				p.preset = n.last()
			}
			f.params[once(n)] = p
		case "variable_declaration":
			f.vars[once(n)] = n.last()
		case "resource_declaration":
			f.resources[once(n)] = resource{of: path, existing: n.child("existing") != nil, body: inner(n.last()), whole: n}
		case "module_declaration":
			f.modules[once(n)] = module{path: filepath.Join(filepath.Dir(name), path), body: inner(n.last())}
		case "output_declaration":
			id := n.child("identifier").Text
			if f.outputs[id] != nil {
				t.Errorf("%s:%d: output %s is declared twice", name, n.Line, id)
			}
			f.outputs[id] = n
		case "type_declaration":
			f.types[once(n)] = n.last()
		case "import_functionality":
			for _, c := range n.Children {
				if c.Kind == "identifier" {
					f.imports = append(f.imports, c.Text)
				}
			}
		case "using_statement":
			f.using = filepath.Join(filepath.Dir(name), path)
		case "target_scope_assignment":
		default:
			t.Errorf("%s:%d: this test does not know a %s", name, n.Line, n.Kind)
		}
		decorators = map[string]*node{}
	}
	tree.walk(func(n *node) {
		if n.Kind == "for_statement" {
			f.loops = append(f.loops, loop{n.Children[2].Text, n.Children[4].Text})
		}
	})
	return f
}

// inner is the object of a body that may stand in a condition or a loop.
func inner(n *node) *node {
	for n.Kind != "object" {
		next := n.child("object")
		if next == nil {
			next = n.child("if_statement")
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// set is one property that a body sets.
type set struct {
	path  string // "properties.template.containers[].env[].name"
	value *node
}

// sets lists what n, which stands at path, sets below itself. It follows variables,
// both arms of a condition, loops and concat, so that it does not matter where in a
// file a part of a body is written down.
func (f *file) sets(n *node, path string) []set {
	var all []set
	switch n.Kind {
	case "object":
		for _, p := range n.items() {
			at := strings.TrimPrefix(path+"."+p.key(), ".")
			all = append(all, set{at, p.last()})
			all = append(all, f.sets(p.last(), at)...)
		}
	case "array":
		for _, item := range n.items() {
			all = append(all, set{path + "[]", item})
			all = append(all, f.sets(item, path+"[]")...)
		}
	case "for_statement":
		item := inner(n.Children[len(n.Children)-2])
		all = append(all, set{path + "[]", item})
		all = append(all, f.sets(item, path+"[]")...)
	case "if_statement":
		return f.sets(inner(n), path)
	case "ternary_expression":
		return append(f.sets(n.Children[2], path), f.sets(n.Children[4], path)...)
	case "parenthesized_expression":
		return f.sets(n.Children[1], path)
	case "identifier":
		if of := f.vars[n.Text]; of != nil {
			return f.sets(of, path)
		}
	case "call_expression":
		if n.Children[0].Text == "concat" {
			for _, argument := range n.child("arguments").items() {
				all = append(all, f.sets(argument, path)...)
			}
		}
	}
	return all
}

// objects are the bodies that an expression can be: one for each arm of a condition.
func (f *file) objects(n *node) []*node {
	switch n.Kind {
	case "object":
		return []*node{n}
	case "ternary_expression":
		return append(f.objects(n.Children[2]), f.objects(n.Children[4])...)
	case "parenthesized_expression":
		return f.objects(n.Children[1])
	case "if_statement":
		return f.objects(inner(n))
	case "identifier":
		if of := f.vars[n.Text]; of != nil {
			return f.objects(of)
		}
	}
	return nil
}

// functions are those of Bicep that the files use, with the kind of what they
// return (azure-docs, azure-resource-manager/bicep/bicep-functions.md).
var functions = map[string]string{
	"cidrSubnet": "string", "concat": "array", "contains": "bool", "empty": "bool", "filter": "array", "flatten": "array",
	"guid": "string", "json": "any", "map": "array", "resourceGroup": "object", "resourceId": "string", "environment": "object",
	"string": "string", "subscriptionResourceId": "string", "tenant": "object", "uniqueString": "string",
	"uriComponent": "string", "readEnvironmentVariable": "string", "replace": "string", "max": "int",
}

// kind is string, int, bool, array, object, null, or any where it cannot be told.
func (f *file) kind(n *node) string {
	switch n.Kind {
	case "string", "object", "array", "null":
		return n.Kind
	case "number":
		return "int"
	case "boolean":
		return "bool"
	case "for_statement":
		return "array"
	case "if_statement":
		return "object"
	case "parenthesized_expression":
		return f.kind(n.Children[1])
	case "ternary_expression":
		a, b := f.kind(n.Children[2]), f.kind(n.Children[4])
		switch {
		case a == b, b == "null":
			return a
		case a == "null":
			return b
		}
	case "binary_expression":
		switch n.Children[1].Text {
		case "+", "-", "*", "/", "%":
			return "int"
		case "??":
			return f.kind(n.Children[2])
		}
		return "bool"
	case "unary_expression":
		if n.Children[0].Text == "!" {
			return "bool"
		}
		return "int"
	case "call_expression":
		if of := functions[n.Children[0].Text]; of != "" {
			return of
		}
	case "identifier":
		if of := f.vars[n.Text]; of != nil {
			return f.kind(of)
		}
		if p, known := f.params[n.Text]; known {
			return f.typeKind(p.of)
		}
	}
	return "any"
}

// typeKind is the kind of values of a type.
func (f *file) typeKind(n *node) string {
	switch n.Kind {
	case "type":
		return f.typeKind(n.Children[0])
	case "primitive_type":
		return n.Text
	case "array_type":
		return "array"
	case "nullable_type":
		return f.typeKind(n.Children[0])
	case "union_type":
		return "string"
	case "identifier":
		if of := f.types[n.Text]; of != nil {
			return f.typeKind(of)
		}
		if slices.Contains([]string{"string", "int", "bool", "object", "array"}, n.Text) {
			return n.Text
		}
	case "object":
		return "object"
	}
	return "any"
}

// values are the strings that an expression can be; nil where they cannot be told.
func (f *file) values(n *node) []string {
	switch n.Kind {
	case "string":
		if text, ok := n.literal(); ok {
			return []string{text}
		}
	case "parenthesized_expression":
		return f.values(n.Children[1])
	case "ternary_expression":
		a, b := f.values(n.Children[2]), f.values(n.Children[4])
		if a != nil && b != nil {
			return append(a, b...)
		}
	case "member_expression":
		return f.looped(n)
	case "identifier":
		if of := f.vars[n.Text]; of != nil {
			return f.values(of)
		}
		if allowed := f.params[n.Text].decorators["allowed"]; allowed != nil {
			var all []string
			for _, item := range allowed.child("array").items() {
				text, _ := item.literal()
				all = append(all, text)
			}
			return all
		}
	}
	return nil
}

// looped are the values of a field of a loop's variable, where the loop goes over an
// array that is written down.
func (f *file) looped(n *node) []string {
	var all []string
	for _, loop := range f.loops {
		over := f.vars[loop.over]
		if loop.variable != n.Children[0].Text || over == nil || over.Kind != "array" {
			continue
		}
		for _, item := range over.items() {
			if value := item.property(n.last().Text); value != nil {
				all = append(all, f.values(value)...)
			}
		}
	}
	return all
}
