package atom_test

import (
	"testing"
	"time"

	"azsqloutbox/servicebus/emulator/internal/atom"
)

func TestPropertiesHaveTheirType(t *testing.T) {
	for want, value := range map[string]any{
		"d6p1:string text":                   "text",
		"d6p1:boolean true":                  true,
		"d6p1:int 5":                         int64(5),
		"d6p1:int -6":                        int32(-6),
		"d6p1:long 4294967296":               int64(1) << 32,
		"d6p1:double 0.5":                    0.5,
		"d6p1:dateTime 2024-05-01T00:00:00Z": time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC),
		"d6p1:base64Binary AQI=":             []byte{1, 2},
	} {
		p, err := atom.NewProperty("p", value)
		if got := p.Value.Type + " " + p.Value.Text; err != nil || got != want {
			t.Errorf("%v is %q, want %q: %v", value, got, want, err)
		}
	}
	if p, err := atom.NewProperty("p", struct{}{}); err == nil {
		t.Errorf("a struct became %+v", p)
	}
}
