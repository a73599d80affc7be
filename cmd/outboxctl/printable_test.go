package main

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/maintenance/claimbench"
	"azsqloutbox/maintenance/doctor"
)

// What others wrote into the table, whatever the field, neither moves the cursor
// nor makes a line of its own nor turns the text around.
func TestTextFromTheTableIsPrintable(t *testing.T) {
	const odd = "a\x1b[2J\x7f\u009b1m\r\u202eb\u2066c\u2029"
	for name, print := range map[string]func(text string) func(io.Writer) error{
		"status":      func(text string) func(io.Writer) error { return filled[maintenance.Status](text).Text },
		"failed list": func(text string) func(io.Writer) error { return filled[failedList](text).text },
		"pause":       func(text string) func(io.Writer) error { return filled[maintenance.PauseResult](text).Text },
		"bench claim": func(text string) func(io.Writer) error { return filled[claimbench.Report](text).Text },
		"doctor": func(text string) func(io.Writer) error {
			r := filled[doctor.Report](text)
			return r.Text
		},
	} {
		lines := make(map[string]int)
		for _, text := range []string{"plain", odd} {
			var out bytes.Buffer
			if err := print(text)(&out); err != nil {
				t.Fatal(err)
			}
			if bad := strings.IndexFunc(out.String(), func(r rune) bool {
				return r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("\u202e\u2066\u2029", r))
			}); bad >= 0 {
				t.Errorf("%s prints %q", name, out.String()[bad:])
			}
			lines[text] = strings.Count(out.String(), "\n")
		}
		if lines["plain"] != lines[odd] {
			t.Errorf("%s has %d lines, and with odd text %d", name, lines["plain"], lines[odd])
		}
	}
}

// filled has text in every string, and one element in every list.
func filled[T any](text string) (v T) {
	fill(reflect.ValueOf(&v).Elem(), text)
	return v
}

func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text)
			}
		}
	}
}
