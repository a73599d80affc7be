package sqltype

import (
	"strings"
	"sync"
)

// DefaultCollation is what a server, and Azure SQL Database, starts with.
var DefaultCollation = mustCollation("SQL_Latin1_General_CP1_CI_AS")

var collations sync.Map // lower-case name → *Collation

func mustCollation(name string) *Collation {
	c, ok := LookupCollation(name)
	if !ok {
		panic("sqltype: unknown collation " + name)
	}
	return c
}

// LookupCollation finds a collation by its name, in any case. Only the
// families of Latin1 General are known: the emulator has no sort tables of
// other languages, and pretending to would order their text wrongly.
func LookupCollation(name string) (*Collation, bool) {
	key := strings.ToLower(name)
	if c, ok := collations.Load(key); ok {
		return c.(*Collation), true
	}
	c, ok := parseCollation(key)
	if !ok {
		return nil, false
	}
	got, _ := collations.LoadOrStore(key, c)
	return got.(*Collation), true
}

// The flag bits are MS-TDS 2.2.5.1.2: fIgnoreCase, fIgnoreAccent,
// fIgnoreWidth, fIgnoreKana, fBinary, fBinary2, fUTF8.
const (
	flagIgnoreCase   = 0x01
	flagIgnoreAccent = 0x02
	flagIgnoreKana   = 0x08
	flagIgnoreWidth  = 0x04
	flagBinary       = 0x10
	flagBinary2      = 0x20
	flagUTF8         = 0x40
)

// sqlSortIDs are the sort orders of the SQL collations over code page 1252
// (sql-docs, "SQL Server collation name").
var sqlSortIDs = map[string]uint8{
	"ci_as": 52, "cs_as": 51, "ci_ai": 54,
}

func parseCollation(name string) (*Collation, bool) {
	c := &Collation{LCID: 0x0409, CodePage: 1252}
	rest, isSQL := strings.CutPrefix(name, "sql_latin1_general_cp1_")
	if isSQL {
		id, ok := sqlSortIDs[rest]
		if !ok {
			return nil, false
		}
		c.Name, c.SortID = "SQL_Latin1_General_CP1_"+strings.ToUpper(rest), id
	} else {
		var ok bool
		rest, ok = strings.CutPrefix(name, "latin1_general_")
		if !ok {
			return nil, false
		}
		c.Name = "Latin1_General_"
		if r, hundred := strings.CutPrefix(rest, "100_"); hundred {
			rest, c.Version = r, 2
			c.Name += "100_"
		}
		c.Name += strings.ToUpper(rest)
	}
	parts := strings.Split(rest, "_")
	if n := len(parts); n > 1 && parts[n-1] == "utf8" {
		c.UTF8, c.CodePage = true, 65001
		parts = parts[:n-1]
	}
	if len(parts) == 1 && (parts[0] == "bin2" || parts[0] == "bin") {
		c.Binary, c.CaseSensitive, c.AccentSensitive = true, true, true
		c.Flags = flagBinary2
		if parts[0] == "bin" {
			c.Flags = flagBinary
		}
		return c.withUTF8Flag(), true
	}
	if len(parts) < 2 || (c.UTF8 && c.Version != 2) {
		return nil, false
	}
	switch parts[0] {
	case "ci":
		c.Flags |= flagIgnoreCase
	case "cs":
		c.CaseSensitive = true
	default:
		return nil, false
	}
	switch parts[1] {
	case "ai":
		c.Flags |= flagIgnoreAccent
	case "as":
		c.AccentSensitive = true
	default:
		return nil, false
	}
	c.Flags |= flagIgnoreKana | flagIgnoreWidth
	for _, p := range parts[2:] {
		switch p {
		case "ks":
			c.Flags &^= flagIgnoreKana
		case "ws":
			c.Flags &^= flagIgnoreWidth
		case "sc":
		default:
			return nil, false
		}
	}
	return c.withUTF8Flag(), true
}

func (c *Collation) withUTF8Flag() *Collation {
	if c.UTF8 {
		c.Flags |= flagUTF8
	}
	return c
}

// SQL says whether this is one of the old SQL collations, under which an
// nvarchar value cannot seek an index on a varchar column: the two sort
// differently.
func (c *Collation) SQL() bool { return c.SortID != 0 }
