package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/maintenance/diagnose"
	"azsqloutbox/maintenance/doctor"
	"azsqloutbox/maintenance/sizing"
)

// resultTypes are those that the sections of docs/json.md are about.
var resultTypes = map[string][]any{
	"status":                       {maintenance.Status{}},
	"failed list":                  {failedList{}},
	"failed retry, failed discard": {maintenance.SettledFailed{}},
	"pause, resume":                {maintenance.PauseResult{}},
	"doctor":                       {doctor.Report{}},
	"diagnose":                     {diagnose.Report{}},
	"size":                         {sizing.Plan{}},
	"bench claim":                  {benchResult{}},
}

// docs/json.md has every key that a command prints, and no other.
func TestJSONIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		sections[title] = body
	}
	for title, results := range resultTypes {
		body, ok := sections[title]
		if !ok {
			t.Errorf("docs/json.md has no section %q", title)
			continue
		}
		var keys []string
		for _, r := range results {
			keys = append(keys, jsonKeys(reflect.TypeOf(r), nil)...)
		}
		for _, key := range keys {
			if !strings.Contains(body, "`"+key+"`") {
				t.Errorf("%s prints %q, and docs/json.md does not say so", title, key)
			}
		}
		for _, row := range regexp.MustCompile("(?m)^\\| ((?:`[a-z_0-9]+`(?:, )?)+) \\|").FindAllStringSubmatch(body, -1) {
			for _, key := range regexp.MustCompile("`([a-z_0-9]+)`").FindAllStringSubmatch(row[1], -1) {
				if !slices.Contains(keys, key[1]) {
					t.Errorf("docs/json.md says that %s prints %q, which it does not", title, key[1])
				}
			}
		}
	}
}

// jsonKeys are the keys of a struct and of all that is in it.
func jsonKeys(t reflect.Type, seen []reflect.Type) (keys []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return jsonKeys(t.Elem(), seen)
	case reflect.Struct:
	default:
		return nil
	}
	if t == reflect.TypeFor[time.Time]() || slices.Contains(seen, t) {
		return nil
	}
	seen = append(seen, t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case name != "":
			keys = append(keys, name)
		}
		keys = append(keys, jsonKeys(f.Type, seen)...)
	}
	return keys
}
