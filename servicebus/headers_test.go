package servicebus

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func collect(headers []byte) (map[string]any, error) {
	got := map[string]any{}
	err := eachHeader(headers, func(name string, value any) error {
		got[name] = value
		return nil
	})
	return got, err
}

func TestEachHeader(t *testing.T) {
	for text, want := range map[string]map[string]any{
		``:        {},
		`null`:    {},
		`{}`:      {},
		` { } `:   {},
		`{"a":1}`: {"a": int64(1)},
		"{ \"a\" : \"x\" ,\r\n\t\"b\":true, \"c\":false,\"d\":null }": {"a": "x", "b": true, "c": false},
		`{"a":-0,"b":1.0,"c":1e3,"d":-2.5E-1}`:                        {"a": int64(0), "b": 1.0, "c": 1000.0, "d": -0.25},
		`{"a":1E3,"b":"\ud800\udc00\udbff\udfff"}`:                    {"a": 1000.0, "b": "\U00010000\U0010ffff"},
		`{"max":9223372036854775807,"min":-9223372036854775808}`:      {"max": int64(math.MaxInt64), "min": int64(math.MinInt64)},
		`{"q\"\\\u00e9":"a\nb\ud83d\ude00","é😀":"}{[,\":"}`:           {`q"\é`: "a\nb😀", "é😀": `}{[,":`},

		`{"a":1,"a":"last"}`: {"a": "last"},
		`{"":""}`:            {"": ""},
	} {
		got, err := collect([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestEachHeaderRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":}`:                       "headers are not valid JSON: invalid character '}' looking for beginning of value (byte 6)",
		`a=b`:                          "headers are not valid JSON",
		`{"a":1} x`:                    "headers are not valid JSON",
		`{"a":`:                        "headers are not valid JSON: unexpected end of JSON input",
		`[1]`:                          "not an object",
		`"a"`:                          "not an object",
		`12`:                           "not an object",
		`true`:                         "not an object",
		`{"a":{}}`:                     `header "a": is nested`,
		`{"a":[1,2]}`:                  `header "a": is nested`,
		`{"big":9223372036854775808}`:  `header "big": 9223372036854775808 is a whole number beyond 64 bits; write it as a string`,
		`{"big":-9223372036854775809}`: "beyond 64 bits",
		`{"big":1e999}`:                "1e999 is beyond a double",
		"{\"a\":\"\xff\"}":             "not valid UTF-8",
		`{"a":"\ud83d"}`:               "surrogate",
		`{"a":"\ud800"}`:               "surrogate",
		`{"a":"\udbff"}`:               "surrogate",
		`{"a":"\udc00"}`:               "surrogate",
		`{"a":"\udfff"}`:               "surrogate",
		`{"a":"\ude00\ud83d"}`:         "surrogate",
		`{"a":"\ud83d\n"}`:             "surrogate",
		`{"\ud83dx":1}`:                "surrogate",
	} {
		got, err := collect([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v and %v, want an error with %q", text, got, err, want)
		}
	}
}

// FuzzEachHeader holds the reader of headers against encoding/json: both take
// the same texts, apart from what the contract refuses, and read the same.
func FuzzEachHeader(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":"x\u0041","c":null,"d":[1],"e":1.5e3}`, `{}`, `null`, ` {"a" : true } `, `{"a":"\\"}`, `{"😀":"\ud83d"}`, `{"a":"\ud83d\ude00\\u"}`, `{"a":12345678901234567890}`, `{"a":{"b":1}}`, `x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, headers []byte) {
		got, err := collect(headers)
		decoder := json.NewDecoder(strings.NewReader(string(headers)))
		decoder.UseNumber()
		var want map[string]any
		if jsonErr := json.Unmarshal(headers, new(map[string]json.RawMessage)); jsonErr != nil && len(headers) > 0 {
			if err == nil {
				t.Fatalf("%q: read as %v, encoding/json says %v", headers, got, jsonErr)
			}
			return
		}
		if err != nil || len(headers) == 0 {
			return
		}
		if err := decoder.Decode(&want); err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			switch v := value.(type) {
			case nil:
				// A null leaves out, but does not undo, an earlier member of its name.
				delete(want, name)
				delete(got, name)
			case json.Number:
				if whole, err := v.Int64(); err == nil {
					want[name] = whole
				} else if double, err := v.Float64(); err == nil {
					want[name] = double
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
			t.Fatalf("%q (-encoding/json +ours):\n%s", headers, diff)
		}
	})
}

func TestHeaderTTL(t *testing.T) {
	for _, c := range []struct {
		value any
		want  time.Duration // 0 for a refusal
	}{
		{int64(90), 90 * time.Second},
		{0.5, 500 * time.Millisecond},
		{"24h", 24 * time.Hour},
		{"1ms", time.Millisecond},
		{int64(4294967), 4294967 * time.Second},
		{int64(4294968), 0},
		{int64(0), 0},
		{int64(-1), 0},
		{int64(math.MinInt64), 0},
		{4294967.295, MaxTTL},
		{4294967.3, 0},
		{MaxTTL.String(), MaxTTL},
		{(MaxTTL + time.Millisecond).String(), 0},
		{1e300, 0},
		{-1e300, 0},
		{0.0001, 0},
		{"soon", 0},
		{"-5s", 0},
		{true, 0},
	} {
		got, err := headerTTL(c.value)
		if got != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("headerTTL(%v) = %v, %v, want %v", c.value, got, err, c.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), `header "sb-ttl": `) {
			t.Errorf("headerTTL(%v): %v does not name the header", c.value, err)
		}
	}
}

func TestHeaderTime(t *testing.T) {
	got, err := headerTime("2030-01-31T09:00:00+01:00")
	if want := time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC); err != nil || got != want {
		t.Errorf("headerTime = %v, %v, want %v", got, err, want)
	}
	for _, value := range []any{"tomorrow", "2030-01-31", int64(1), nil} {
		if got, err := headerTime(value); err == nil {
			t.Errorf("headerTime(%v) = %v, want an error", value, got)
		}
	}
}
