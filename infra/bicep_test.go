// Package infra checks what can be checked of the deployment without Azure.
package infra

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// property is one that a resource sets: resource type with API version, and the
// path of the names, without array brackets.
type property struct{ resource, path string }

// carriers are variables that hold a part of a resource's body, and where it goes.
var carriers = map[string]property{
	"environment.bicep network":         {"Microsoft.App/managedEnvironments@2026-01-01", "properties.vnetConfiguration"},
	"servicebus.bicep sku":              {"Microsoft.ServiceBus/namespaces@2026-01-01", "sku"},
	"worker.bicep settings":             {"Microsoft.App/containerApps@2026-01-01", "properties.template.containers.env"},
	"worker.bicep destination":          {"Microsoft.App/containerApps@2026-01-01", "properties.template.containers.env"},
	"worker.bicep rate":                 {"Microsoft.App/containerApps@2026-01-01", "properties.template.containers.env"},
	"worker.bicep telemetry":            {"Microsoft.App/containerApps@2026-01-01", "properties.template.containers.env"},
	"worker.bicep routeSecrets":         {"Microsoft.App/containerApps@2026-01-01", "properties.configuration.secrets"},
	"worker.bicep scalerSecrets":        {"Microsoft.App/containerApps@2026-01-01", "properties.configuration.secrets"},
	"worker.bicep routeVolumes":         {"Microsoft.App/containerApps@2026-01-01", "properties.template.volumes"},
	"worker.bicep routeMounts":          {"Microsoft.App/containerApps@2026-01-01", "properties.template.containers.volumeMounts"},
	"worker.bicep registries":           {"Microsoft.App/containerApps@2026-01-01", "properties.configuration.registries"},
	"worker.bicep scaleRules":           {"Microsoft.App/containerApps@2026-01-01", "properties.template.scale.rules"},
	"jobs.bicep database":               {"Microsoft.App/jobs@2026-01-01", "properties.template.containers.env"},
	"jobs.bicep registries":             {"Microsoft.App/jobs@2026-01-01", "properties.configuration.registries"},
	"servicebus.bicep subscriptionList": {}, // rows for a loop, no part of a body
}

var declaration = regexp.MustCompile(`(?m)^(?:resource \w+ '([^']+)'|var (\w+)) `)

// token is a piece of Bicep: a name, a string, a mark, or a line's end.
type token struct {
	text string
	kind rune // 'n' name, 's' string, '\n', or the mark itself
}

// tokens knows as much of Bicep's lexis as the files here use.
func tokens(source string) []token {
	var all []token
	for i := 0; i < len(source); {
		switch c := source[i]; {
		case c == '/' && strings.HasPrefix(source[i:], "//"):
			for i < len(source) && source[i] != '\n' {
				i++
			}
		case c == '\'':
			end, depth := i+1, 0
			for ; end < len(source) && (source[end] != '\'' || depth > 0); end++ {
				switch {
				case source[end] == '\\':
					end++
				case strings.HasPrefix(source[end:], "${"):
					depth++
				case source[end] == '}' && depth > 0:
					depth--
				}
			}
			all = append(all, token{source[i+1 : end], 's'})
			i = end + 1
		case c == '_' || unicode.IsLetter(rune(c)):
			end := i
			for end < len(source) && (source[end] == '_' || unicode.IsLetter(rune(source[end])) || unicode.IsDigit(rune(source[end]))) {
				end++
			}
			all = append(all, token{source[i:end], 'n'})
			i = end
		case c == ' ' || c == '\t' || c == '\r':
			i++
		default:
			all = append(all, token{string(c), rune(c)})
			i++
		}
	}
	return all
}

// paths are the properties that the objects in body set, below root. A key is a
// name or a string with a colon behind it, at the beginning of an object's line or
// after a comma; the colon of a condition or a loop is neither.
func paths(body, root string) []string {
	var found []string
	var objects []string // the path of each open object
	at := root
	all := tokens(body)
	before := rune('\n')
	for i, tok := range all {
		switch tok.kind {
		case '{':
			objects = append(objects, at)
		case '}':
			at = objects[len(objects)-1]
			objects = objects[:len(objects)-1]
		case 'n', 's':
			if len(objects) > 0 && i+1 < len(all) && all[i+1].kind == ':' && strings.ContainsRune("\n{,", before) {
				name := tok.text
				if strings.Contains(name, "${") {
					name = "*"
				}
				at = strings.TrimPrefix(objects[len(objects)-1]+"."+name, ".")
				found = append(found, at)
			}
		}
		before = tok.kind
	}
	return found
}

func files(t *testing.T, pattern string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	all := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = string(text)
	}
	return all
}

// properties are all that the resources of the modules set.
func properties(t *testing.T) []property {
	t.Helper()
	var all []property
	for file, source := range files(t, "modules/*.bicep") {
		heads := declaration.FindAllStringSubmatchIndex(source, -1)
		for _, head := range heads {
			// A declaration ends where the next line begins that is not indented and closes nothing.
			body := source[head[1]:]
			if end := regexp.MustCompile(`(?m)^(?:[a-z@/])`).FindStringIndex(body); end != nil {
				body = body[:end[0]]
			}
			to := property{}
			if head[2] >= 0 {
				to.resource = source[head[2]:head[3]]
			} else {
				name := file + " " + source[head[4]:head[5]]
				carrier, known := carriers[name]
				if !known {
					if found := paths(body, ""); len(found) > 0 {
						t.Errorf("%s holds the properties %v, of which resource?", name, found)
					}
					continue
				}
				to = carrier
			}
			if to.resource == "" {
				continue
			}
			for _, path := range paths(body, to.path) {
				switch path {
				case "parent", "scope", "dependsOn": // Bicep's own
				default:
					all = append(all, property{to.resource, path})
				}
			}
		}
	}
	return all
}

// TestEveryPropertyIsInTheTypeDefinitions compares with types.tsv, whose lines were
// taken from Azure/bicep-types-az.
func TestEveryPropertyIsInTheTypeDefinitions(t *testing.T) {
	defined := map[property]bool{} // to whether it is required
	table, err := os.Open("types.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for lines := bufio.NewScanner(table); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		columns := strings.Split(lines.Text(), "\t")
		if len(columns) != 3 {
			t.Fatalf("types.tsv: %q has %d columns, want 3", lines.Text(), len(columns))
		}
		defined[property{columns[0], columns[1]}] = columns[2] == "required"
	}
	used := properties(t)
	if len(used) < 100 {
		t.Fatalf("only %d properties were found: the files are not read well", len(used))
	}
	for _, p := range used {
		if _, known := defined[p]; !known {
			t.Errorf("%s: %s is not in types.tsv", p.resource, p.path)
		}
	}
	for p, required := range defined {
		if !slices.Contains(used, p) {
			t.Errorf("types.tsv: %s of %s is not used (required: %v)", p.path, p.resource, required)
		}
	}
}

func TestThePropertyScannerSeesConditionsLoopsAndStrings(t *testing.T) {
	got := paths(`= [
  for (e, i) in list: if (e.on) {
    name: 'a{${b}}' // a: comment
    'x-${y}': {}
    sku: big ? { name: 'P', capacity: 2 } : { tier: 'S' }
    list: [
      { inner: a ? b : c }
    ]
    last: true
  }
]`, "")
	want := []string{"name", "*", "sku", "sku.name", "sku.capacity", "sku.tier", "list", "list.inner", "last"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
