package sqlserver

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	mssql "github.com/microsoft/go-mssqldb"
)

// Names are the objects of one outbox. Every name is one identifier, unquoted:
// a dot or a bracket in it is part of the name. Empty fields take the names
// of scripts/001_outbox.sql; those of the receipt and worker tables and of the
// sequence follow the event table's.
type Names struct {
	Schema     string // dbo
	Table      string // outbox_event
	ClaimIndex string // IX_outbox_claim
	RetryIndex string // IX_outbox_retry
}

// WithDefaults are the names with the empty fields filled in.
func (n Names) WithDefaults() Names {
	n.Schema = cmp.Or(n.Schema, "dbo")
	n.Table = cmp.Or(n.Table, "outbox_event")
	n.ClaimIndex = cmp.Or(n.ClaimIndex, "IX_outbox_claim")
	n.RetryIndex = cmp.Or(n.RetryIndex, "IX_outbox_retry")
	return n
}

// Flags are what tells outboxctl of these names, with a blank before each: none for
// those of scripts/001_outbox.sql.
func (n Names) Flags() string {
	n, standard := n.WithDefaults(), Names{}.WithDefaults()
	var b strings.Builder
	for _, f := range []struct{ flag, name, standard string }{
		{"schema", n.Schema, standard.Schema},
		{"table", n.Table, standard.Table},
		{"claim-index", n.ClaimIndex, standard.ClaimIndex},
		{"retry-index", n.RetryIndex, standard.RetryIndex},
	} {
		if f.name != f.standard {
			fmt.Fprintf(&b, " --%s %s", f.flag, shellWord(f.name))
		}
	}
	return b.String()
}

// shellWord is a name as a shell takes it.
func shellWord(name string) string {
	for _, c := range name {
		if c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
		}
	}
	return name
}

// longestIdentifier is a sysname in characters (sql-docs,
// database-identifiers.md).
const longestIdentifier = 128

// Validate names the field that cannot be an identifier.
func (n Names) Validate() error {
	n = n.WithDefaults()
	for _, f := range []struct {
		field, name, suffix string
	}{
		{"Schema", n.Schema, ""},
		{"Table", n.Table, "_control"}, // the longest of the names made from it
		{"ClaimIndex", n.ClaimIndex, ""},
		{"RetryIndex", n.RetryIndex, ""},
	} {
		if err := checkIdentifier(f.name + f.suffix); err != nil {
			return fmt.Errorf("%s %q: %w", f.field, f.name, err)
		}
	}
	return nil
}

func checkIdentifier(name string) error {
	switch {
	case !utf8.ValidString(name):
		return errors.New("is not valid UTF-8")
	case strings.ContainsRune(name, 0):
		return errors.New("holds a zero character")
	case utf8.RuneCountInString(name) > longestIdentifier:
		return fmt.Errorf("is longer than the %d characters of an identifier (what is made from it included)", longestIdentifier)
	}
	return nil
}

// Events, Receipts, Workers, Controls, Sequence and Procedure, that for writers,
// are the quoted two-part names.
func (n Names) Events() string    { return n.quoted("") }
func (n Names) Receipts() string  { return n.quoted("_claim") }
func (n Names) Workers() string   { return n.quoted("_worker") }
func (n Names) Controls() string  { return n.quoted("_control") }
func (n Names) Sequence() string  { return n.quoted("_seq") }
func (n Names) Procedure() string { return n.quoted("_enqueue") }

func (n Names) quoted(suffix string) string {
	n = n.WithDefaults()
	return quoteName(n.Schema) + "." + quoteName(n.Table+suffix)
}

// String is the event table as a person writes it.
func (n Names) String() string {
	n = n.WithDefaults()
	return n.Schema + "." + n.Table
}

func quoteName(name string) string { return mssql.TSQLQuoter{}.ID(name) }

// Replacer fills {schema}, {table}, {events}, {receipts}, {workers}, {controls},
// {sequence}, {claim_index} and {retry_index} into a statement, quoted.
func (n Names) Replacer() *strings.Replacer { return n.renderer(nil) }

// renderer fills the names and the column facts into a statement. The words in
// braces are replaced once, when the store gets to know its table.
func (n Names) renderer(t *table) *strings.Replacer {
	n = n.WithDefaults()
	pairs := []string{
		"{events}", n.Events(),
		"{receipts}", n.Receipts(),
		"{workers}", n.Workers(),
		"{controls}", n.Controls(),
		"{schema}", quoteName(n.Schema),
		"{table}", quoteName(n.Table),
		"{sequence}", n.Sequence(),
		"{claim_index}", quoteName(n.ClaimIndex),
		"{retry_index}", quoteName(n.RetryIndex),
	}
	if t != nil {
		pairs = append(pairs, t.renderings()...)
	}
	return strings.NewReplacer(pairs...)
}
