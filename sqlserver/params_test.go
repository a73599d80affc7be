package sqlserver

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/worker"
)

func TestTextParam(t *testing.T) {
	if _, ok := textParam("order.created").(mssql.VarCharMax); !ok {
		t.Error("ASCII does not go out as VARCHAR(MAX)")
	}
	if _, ok := textParam("geändert").(mssql.NVarCharMax); !ok {
		t.Error("what is not ASCII does not go out as NVARCHAR(MAX)")
	}
}

func TestFailuresJSON(t *testing.T) {
	got := string(failuresJSON([]worker.Failure{
		{ID: 1, Error: "a\"é\x01\n", SpendAttempt: true, RetryIn: time.Microsecond},
		{ID: 2, Error: "x", RetryIn: 1000 * time.Hour},
	}, column{kind: "varchar", bytes: 4}))
	want := `[{"id":1,"spend":1,"retry_ms":1,"error":"a\"??"},{"id":2,"spend":0,"retry_ms":2073600000,"error":"x"}]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func FuzzASCIIJSON(f *testing.F) {
	for _, seed := range []string{"", "plain", "é", "🚚", "\x00\"\\", "\uffff\U0010ffff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			t.Skip("not UTF-8, never sent")
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		escaped := asciiJSON(string(text))
		var back string
		if err := json.Unmarshal([]byte(escaped), &back); err != nil || back != s || !isASCII(escaped) {
			t.Errorf("%q became %s and came back as %q, %v", s, escaped, back, err)
		}
	})
}

func FuzzFitError(f *testing.F) {
	f.Add("refused: é\n", 5)
	f.Fuzz(func(t *testing.T, s string, room int) {
		room = max(1, room&0xfff)
		got := fitError(s, column{kind: "varchar", bytes: room})
		if len(got) > room || !isASCII(got) || strings.ContainsAny(got, "\n\r\x00") {
			t.Errorf("%q does not fit %d bytes of ASCII", got, room)
		}
	})
}
