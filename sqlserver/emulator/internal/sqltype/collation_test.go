package sqltype

import (
	"slices"
	"testing"
)

func collationNamed(t *testing.T, name string) *Collation {
	t.Helper()
	c, ok := LookupCollation(name)
	if !ok {
		t.Fatalf("no collation %s", name)
	}
	return c
}

func TestCompareUnderCollations(t *testing.T) {
	for _, c := range []struct {
		collation, a, b string
		want            int
	}{
		{"SQL_Latin1_General_CP1_CI_AS", "abc", "ABC", 0},
		{"SQL_Latin1_General_CP1_CI_AS", "abc", "abc   ", 0},
		{"SQL_Latin1_General_CP1_CI_AS", "e", "é", -1},
		{"SQL_Latin1_General_CP1_CI_AS", "éa", "eb", -1}, // accents count after letters
		{"SQL_Latin1_General_CP1_CI_AS", "a_", "a1", -1},
		{"SQL_Latin1_General_CP1_CI_AS", "9", "a", -1},
		{"SQL_Latin1_General_CP1_CS_AS", "abc", "ABC", -1},
		{"Latin1_General_CI_AI", "e", "É", 0},
		{"Latin1_General_BIN2", "B", "a", -1},
		{"Latin1_General_BIN2", "a", "a ", 0},
		{"Latin1_General_BIN2", "a", "a\t", 1}, // a tab sorts before the padding space
		{"Latin1_General_100_BIN2_UTF8", "z", "ä", -1},
	} {
		coll := collationNamed(t, c.collation)
		if got := coll.Compare(c.a, c.b); got != c.want {
			t.Errorf("%s: Compare(%q, %q) = %d, want %d", c.collation, c.a, c.b, got, c.want)
		}
		if got := coll.Compare(c.b, c.a); got != -c.want {
			t.Errorf("%s: Compare(%q, %q) = %d, want %d", c.collation, c.b, c.a, got, -c.want)
		}
		if same := coll.Key(c.a) == coll.Key(c.b); same != (c.want == 0) {
			t.Errorf("%s: keys of %q and %q equal: %v", c.collation, c.a, c.b, same)
		}
	}
}

// The order must be total, or a B-tree loses rows.
func TestCompareIsTransitive(t *testing.T) {
	texts := []string{"", " ", "a", "A", "á", "Á", "ab", "aB", "áb", "b", "_", "-", "1", "10", "2", "z", "Z", "ß", "ss", "\t", "日", "é ", "e", "E"}
	for _, name := range []string{"SQL_Latin1_General_CP1_CI_AS", "Latin1_General_100_CS_AS", "Latin1_General_CI_AI", "Latin1_General_BIN2"} {
		c := collationNamed(t, name)
		for _, x := range texts {
			for _, y := range texts {
				for _, z := range texts {
					if c.Compare(x, y) <= 0 && c.Compare(y, z) <= 0 && c.Compare(x, z) > 0 {
						t.Fatalf("%s: %q ≤ %q ≤ %q but not %q ≤ %q", name, x, y, z, x, z)
					}
				}
			}
		}
	}
}

func TestLookupCollation(t *testing.T) {
	for name, ok := range map[string]bool{
		"latin1_general_100_ci_as_sc_utf8": true,
		"Latin1_General_CI_AS_KS_WS":       true,
		"Latin1_General_CI_AS_UTF8":        false, // UTF-8 came with version 100
		"Japanese_CI_AS":                   false,
		"":                                 false,
	} {
		if _, got := LookupCollation(name); got != ok {
			t.Errorf("%s: %v, want %v", name, got, ok)
		}
	}
	if a, b := collationNamed(t, "LATIN1_GENERAL_BIN2"), collationNamed(t, "Latin1_General_BIN2"); a != b {
		t.Error("one collation, two pointers")
	}
}

func TestGUIDOrder(t *testing.T) {
	// sql-docs, "Comparing GUID and uniqueidentifier values": the last group
	// counts most.
	texts := []string{
		"01000000-0000-0000-0000-000000000000",
		"00000000-0000-0000-0100-000000000000",
		"00000000-0000-0000-0000-000000000001",
		"00000000-0000-0000-0000-010000000000",
	}
	values := make([]Value, len(texts))
	for i, s := range texts {
		b, ok := ParseGUID(s)
		if !ok {
			t.Fatal(s)
		}
		values[i] = Value{Kind: UniqueIdentifier, S: b}
	}
	if !slices.IsSortedFunc(values, CompareSame) {
		t.Error("not in SQL Server's order")
	}
	if got := FormatGUID(values[0].S); got != texts[0] {
		t.Error(got)
	}
}
