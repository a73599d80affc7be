package statementtest

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// What the rule is about: which pieces of a text must have its name inside.
func TestKeptByQueryStore(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"SET NOCOUNT ON;\nSET LOCK_TIMEOUT 5;", nil},
		{"ALTER INDEX i ON t REBUILD WITH (ONLINE = ON);", nil},
		{"DECLARE @n INT = 1;\nEXEC @n = sys.sp_getapplock @Resource = N'x';\nSELECT @n AS n;", []string{"SELECT @n"}},
		{"-- name\nSELECT a FROM t WHERE a IN (SELECT b FROM u);", []string{"SELECT a"}},
		{"SELECT a FROM t UNION ALL SELECT b FROM u;", []string{"SELECT a"}},
		{"WITH x AS (SELECT a FROM t)\nUPDATE x SET a = 1;", []string{"WITH x"}},
		{"INSERT INTO t (a) SELECT b FROM u;", []string{"INSERT INTO"}},
		{"IF @a = 1\nBEGIN\n  UPDATE t SET a = 1;\n  DELETE FROM t;\nEND\nELSE\n  INSERT INTO t (a) VALUES (N'\U0001F600');\nSELECT 2;", []string{"UPDATE t", "DELETE FROM", "INSERT INTO", "SELECT 2;"}},
		{"WHILE @a < 1\nBEGIN\n  SELECT @a = a FROM t;\nEND;", []string{"SELECT @a"}},
		{"IF EXISTS (SELECT 1 FROM t WHERE a = (SELECT MAX(b) FROM u))\n  THROW 50000, N'no', 1;", []string{"SELECT 1"}},
		{"DECLARE @n INT = (SELECT a FROM t);\nSET @n = (SELECT b FROM u);", []string{"SELECT a", "SELECT b"}},
		{"CREATE TRIGGER r ON t AFTER INSERT AS\nIF EXISTS (SELECT 1 FROM inserted)\n  DELETE FROM u;", []string{"SELECT 1", "DELETE FROM"}},
	} {
		script := Parse(t, c.text)
		units := utf16.Encode([]rune(c.text))
		var got []string
		for _, f := range keptByQueryStore(script) {
			words := strings.Fields(string(utf16.Decode(units[f.StartOffset:f.EndOffset()])))
			got = append(got, words[0]+" "+words[1])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q must have the name, want %q, of\n%s", got, c.want, c.text)
		}
	}
}

func TestNamePattern(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT /* outbox:ClaimEvents */ TOP (@batch)": true,
		"UPDATE /* outbox:FlipClaim */ e":              true,
		"-- outbox:ClaimEvents\nSELECT TOP (@batch)":   false,
		"/* outbox:ClaimEvents */ SELECT TOP (@batch)": false,
		"SELECT TOP (@batch) /* outbox:ClaimEvents */": false,
		"SELECT /* ClaimEvents */ TOP (@batch)":        false,
	} {
		if got := namedVerb.MatchString(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
