package infra

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// property is a resource type with its API version, and a path below it.
type property struct{ resource, path string }

// definition is what Microsoft's type definitions say of a property.
type definition struct {
	kind     string // string, int, bool, array, object, map, function, any, or the allowed values with | between
	required bool
	readOnly bool
}

func (d definition) String() string {
	switch {
	case d.readOnly:
		return d.kind + "\tread-only"
	case d.required:
		return d.kind + "\trequired"
	}
	return d.kind + "\toptional"
}

const typesHead = `# What the modules set and read, and what they must set, as Azure/bicep-types-az defines it
# (generated/*/*/types.json, commit 1f896de2d). TestTheTableOfTypes makes this file.
# resource type@API version, path, kind or allowed values, required, optional or read-only
`

func table(t *testing.T) map[property]definition {
	t.Helper()
	all := map[property]definition{}
	for _, c := range rows(t, "types.tsv", 4) {
		all[property{c[0], c[1]}] = definition{kind: c[2], required: c[3] == "required", readOnly: c[3] == "read-only"}
	}
	return all
}

// use is where a file sets or reads a property.
type use struct {
	property
	file  *file
	value *node // nil: it is read
	line  int
}

// uses are all properties that the resources set, and those that are read of them.
func uses(t *testing.T) []use {
	t.Helper()
	var all []use
	for _, f := range bicep(t) {
		for _, r := range f.resources {
			for _, s := range f.sets(r.body, "") {
				switch head, _, _ := strings.Cut(s.path, "."); head {
				case "parent", "scope", "dependsOn", "dependsOn[]": // Bicep's own
				default:
					all = append(all, use{property{r.of, s.path}, f, s.value, s.value.Line})
				}
			}
		}
		parsed(t)[f.name].walk(func(n *node) {
			if of, path := f.read(n); of != "" {
				all = append(all, use{property{of, path}, f, nil, n.Line})
			}
		})
	}
	return all
}

// read is the resource type and the path of a member expression on a resource.
func (f *file) read(n *node) (of, path string) {
	if n.Kind != "member_expression" {
		return "", ""
	}
	object := n.Children[0]
	if object.Kind == "subscript_expression" {
		object = object.Children[0]
	}
	if r, known := f.resources[object.Text]; known && object.Kind == "identifier" {
		return r.of, n.last().Text
	}
	if of, path = f.read(object); of != "" {
		return of, path + "." + n.last().Text
	}
	return "", ""
}

// TestEveryPropertyIsDefined compares with types.tsv: the property is there, what it
// is set to is of its kind and allowed, it may be written, and no required one of an
// object that is set is missing.
func TestEveryPropertyIsDefined(t *testing.T) {
	defined := table(t)
	used := uses(t)
	if len(used) < 200 {
		t.Fatalf("only %d uses of properties were found: the files are not read well", len(used))
	}
	seen := map[property]bool{}
	for _, u := range used {
		seen[u.property] = true
		d, known := defined[u.property]
		where := fmt.Sprintf("%s:%d: %s: %s", u.file.name, u.line, u.resource, u.path)
		switch {
		case !known:
			t.Errorf("%s is not in types.tsv", where)
		case u.value == nil:
		case d.readOnly:
			t.Errorf("%s is read-only", where)
		default:
			if wrong := mismatch(u.file, u.value, d.kind); wrong != "" {
				t.Errorf("%s %s", where, wrong)
			}
		}
	}
	for p, d := range defined {
		if !seen[p] && !d.required {
			t.Errorf("types.tsv: nobody uses %s of %s", p.path, p.resource)
		}
	}
}

// mismatch says why a value is not of a kind.
func mismatch(f *file, value *node, kind string) string {
	got := f.kind(value)
	switch kind {
	case "any":
	case "string", "int", "bool", "array":
		if got != kind && got != "any" && got != "null" {
			return fmt.Sprintf("is set to a %s, want %s", got, kind)
		}
	case "object", "map":
		if got != "object" && got != "any" && got != "null" {
			return fmt.Sprintf("is set to a %s, want an object", got)
		}
	default:
		if got != "string" && got != "any" && got != "null" {
			return fmt.Sprintf("is set to a %s, want one of %s", got, kind)
		}
		for _, v := range f.values(value) {
			if !slices.Contains(strings.Split(kind, "|"), v) {
				return fmt.Sprintf("is set to %q, want one of %s", v, kind)
			}
		}
	}
	return ""
}

func TestNoRequiredPropertyIsMissing(t *testing.T) {
	defined := table(t)
	for _, f := range bicep(t) {
		for _, r := range f.resources {
			if r.existing {
				continue
			}
			bodies := map[string][]*node{"": {r.body}}
			for _, s := range f.sets(r.body, "") {
				bodies[s.path] = append(bodies[s.path], f.objects(s.value)...)
			}
			for path, objects := range bodies {
				for p, d := range defined {
					parent, name := "", p.path
					if i := strings.LastIndex(p.path, "."); i >= 0 {
						parent, name = p.path[:i], p.path[i+1:]
					}
					if p.resource != r.of || parent != path || !d.required {
						continue
					}
					for _, object := range objects {
						if object.property(name) == nil {
							t.Errorf("%s:%d: %s needs %s", f.name, object.Line, r.of, p.path)
						}
					}
				}
			}
		}
	}
}

// TestTheTableOfTypes makes types.tsv from Microsoft's definitions and compares.
// OUTBOX_TEST_BICEP_TYPES is a clone of Azure/bicep-types-az; with
// OUTBOX_TEST_BICEP_TYPES_WRITE set as well, the file is written.
func TestTheTableOfTypes(t *testing.T) {
	clone := os.Getenv("OUTBOX_TEST_BICEP_TYPES")
	if clone == "" {
		t.Skip("OUTBOX_TEST_BICEP_TYPES names no clone of Azure/bicep-types-az")
	}
	rows := map[property]definition{}
	libraries := map[string]library{}
	for _, u := range uses(t) {
		l, known := libraries[u.resource]
		if !known {
			l = readLibrary(t, clone, u.resource)
			libraries[u.resource] = l
		}
		d, err := l.define(u.path)
		if err != nil {
			t.Errorf("%s:%d: %s: %v", u.file.name, u.line, u.resource, err)
			continue
		}
		rows[u.property] = d
	}
	for _, f := range bicep(t) {
		for _, r := range f.resources {
			if !r.existing {
				for path, d := range libraries[r.of].required("") {
					rows[property{r.of, path}] = d
				}
			}
		}
	}
	for p := range maps.Clone(rows) {
		for path, d := range libraries[p.resource].required(p.path) {
			rows[property{p.resource, path}] = d
		}
	}
	var lines []string
	for p, d := range rows {
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\n", p.resource, p.path, d))
	}
	slices.Sort(lines)
	made := typesHead + strings.Join(lines, "")
	if os.Getenv("OUTBOX_TEST_BICEP_TYPES_WRITE") != "" {
		if err := os.WriteFile("types.tsv", []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if made != source(t, "types.tsv") {
		t.Error("types.tsv is not what the definitions say")
	}
}

// library is one types.json: types that refer to each other by number.
type library struct {
	types    []typeEntry
	resource int // its entry
	root     int // its body's
}

type reference struct {
	Ref string `json:"$ref"`
}

func (r reference) index() int {
	i, _ := strconv.Atoi(strings.TrimPrefix(r.Ref, "#/"))
	return i
}

type typeEntry struct {
	Type         string `json:"$type"`
	Name         string
	Value        string
	ResourceType string
	Body         *reference
	ItemType     *reference
	Elements     json.RawMessage
	Properties   map[string]struct {
		Type  reference
		Flags int // 1 required, 2 read-only
	}
	AdditionalProperties *reference
}

func readLibrary(t *testing.T, clone, resource string) library {
	t.Helper()
	name, version, _ := strings.Cut(resource, "@")
	provider, _, _ := strings.Cut(strings.ToLower(name), "/")
	paths, err := filepath.Glob(filepath.Join(clone, "generated", "*", provider, version, "types.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		var l library
		if err := json.Unmarshal([]byte(source(t, path)), &l.types); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for i, e := range l.types {
			if e.Type == "ResourceType" && strings.EqualFold(e.Name, resource) {
				l.resource, l.root = i, e.Body.index()
				return l
			}
		}
	}
	t.Fatalf("%s has no %s", clone, resource)
	return library{}
}

func (l library) kind(i int) string {
	e := l.types[i]
	switch e.Type {
	case "IntegerType":
		return "int"
	case "BooleanType":
		return "bool"
	case "ArrayType":
		return "array"
	case "StringLiteralType":
		return e.Value
	case "UnionType":
		var elements []reference
		var values []string
		if json.Unmarshal(e.Elements, &elements) == nil {
			for _, r := range elements {
				if l.types[r.index()].Type == "StringLiteralType" { // else it is open
					values = append(values, l.kind(r.index()))
				}
			}
		}
		return strings.Join(values, "|")
	case "ObjectType":
		if len(e.Properties) == 0 && e.AdditionalProperties != nil {
			return "map"
		}
		return "object"
	case "AnyType":
		return "any"
	case "ResourceFunctionType":
		return "function"
	}
	return "string"
}

// walk finds the type at a path.
func (l library) walk(path string) (at int, flags int, err error) {
	at = l.root
	if path == "" {
		return at, 0, nil
	}
	for step := range strings.SplitSeq(path, ".") {
		name := strings.TrimRight(step, "[]")
		e := l.types[at]
		switch p, known := e.Properties[name]; {
		case known:
			at, flags = p.Type.index(), p.Flags
		case e.AdditionalProperties != nil:
			at, flags = e.AdditionalProperties.index(), 0
		case at == l.root && l.function(name) >= 0:
			at, flags = l.function(name), 0
		default:
			return 0, 0, fmt.Errorf("%s: %s %q has no %s", path, e.Type, e.Name, name)
		}
		for range strings.Count(step, "[]") {
			if l.types[at].Type != "ArrayType" {
				return 0, 0, fmt.Errorf("%s: %s is no array", path, name)
			}
			at, flags = l.types[at].ItemType.index(), 0
		}
	}
	return at, flags, nil
}

// function finds what can be called on the resource, such as listKeys.
func (l library) function(name string) int {
	return slices.IndexFunc(l.types, func(e typeEntry) bool {
		resource, _, _ := strings.Cut(l.types[l.resource].Name, "@")
		return e.Type == "ResourceFunctionType" && e.Name == name && strings.EqualFold(e.ResourceType, resource)
	})
}

func (l library) define(path string) (definition, error) {
	at, flags, err := l.walk(path)
	if err != nil {
		return definition{}, err
	}
	return definition{kind: l.kind(at), required: flags&1 != 0, readOnly: flags&2 != 0}, nil
}

// required are the properties that an object at path must have.
func (l library) required(path string) map[string]definition {
	at, _, err := l.walk(path)
	if err != nil {
		return nil
	}
	all := map[string]definition{}
	for name, p := range l.types[at].Properties {
		if p.Flags&1 != 0 && p.Flags&2 == 0 {
			d, _ := l.define(strings.TrimPrefix(path+"."+name, "."))
			all[strings.TrimPrefix(path+"."+name, ".")] = d
		}
	}
	return all
}
