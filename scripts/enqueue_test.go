package scripts

import (
	"strings"
	"testing"
)

func TestIsEnqueue(t *testing.T) {
	o := Options{Schema: "my schema", Table: "it's ]odd["}
	types := o
	types.Payload, types.EventType, types.Collation = "NVARCHAR(MAX)", "INT", "database_default"
	batch := func(o Options) string {
		script, err := Enqueue(o)
		if err != nil {
			t.Fatal(err)
		}
		return Batches(script)[1]
	}
	today := batch(o)
	readsBack := strings.Index(today, "    IF CHARINDEX(N'\\u', @events)")
	for name, c := range map[string]struct {
		definition string
		want       bool
	}{
		"as printed":              {today, true},
		"by Windows":              {strings.ReplaceAll(today, "\n", "\r\n"), true},
		"as the server has it":    {today[:strings.Index(today, "CREATE OR ALTER")] + "CREATE   " + today[strings.Index(today, "PROCEDURE"):], true},
		"another code page":       {strings.ReplaceAll(today, "…", "â€¦"), true},
		"of other types":          {batch(types), true},
		"of another table":        {batch(Options{}), false},
		"before the reading back": {today[:readsBack] + today[strings.LastIndex(today, "    COMMIT TRANSACTION"):], false},
		"somebody's own":          {"CREATE PROCEDURE x @events NVARCHAR(MAX) AS BEGIN RETURN 0; END", false},
		"nothing like it":         {"CREATE PROCEDURE x AS SELECT 1", false},
	} {
		if got, err := IsEnqueue(o, c.definition); err != nil || got != c.want {
			t.Errorf("%s: %t, %v, want %t", name, got, err, c.want)
		}
	}
}
