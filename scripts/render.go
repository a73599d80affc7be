package scripts

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	mssql "github.com/microsoft/go-mssqldb"
)

// Options says what a script is rendered for; the zero Options give the files
// as they are.
type Options struct {
	// Names are single identifiers, unquoted.
	Schema     string // dbo
	Table      string // outbox_event; the other tables, constraints and the sequence follow it
	ClaimIndex string // IX_outbox_claim
	RetryIndex string // IX_outbox_retry
	// EventType is VARCHAR(n), NVARCHAR(n), SMALLINT, INT or BIGINT; VARCHAR(100).
	// A key of the claim index takes 1,692 bytes beside the id.
	EventType string
	// Aggregate is the type of aggregate_type and aggregate_id, VARCHAR(n) or
	// NVARCHAR(n); VARCHAR(100).
	Aggregate string
	// TextCollation is that of the two; database_default. The procedure for
	// writers takes the event_type of an existing table to have it too.
	TextCollation string
	// Payload is VARCHAR(n), NVARCHAR(n) or either with MAX; VARCHAR(2000).
	Payload string
	// Collation of payload and headers; Latin1_General_100_BIN2_UTF8.
	// database_default takes the database's.
	Collation string
	// SlimClaimIndex leaves the INCLUDE of the claim index out: less log, one
	// key lookup an event.
	SlimClaimIndex bool
}

func (o Options) withDefaults() Options {
	o.Schema = cmp.Or(o.Schema, "dbo")
	o.Table = cmp.Or(o.Table, "outbox_event")
	o.ClaimIndex = cmp.Or(o.ClaimIndex, "IX_outbox_claim")
	o.RetryIndex = cmp.Or(o.RetryIndex, "IX_outbox_retry")
	o.EventType = cmp.Or(o.EventType, "VARCHAR(100)")
	o.Aggregate = cmp.Or(o.Aggregate, "VARCHAR(100)")
	o.TextCollation = cmp.Or(o.TextCollation, "database_default")
	o.Payload = cmp.Or(o.Payload, "VARCHAR(2000)")
	o.Collation = cmp.Or(o.Collation, "Latin1_General_100_BIN2_UTF8")
	return o
}

var (
	integers   = regexp.MustCompile(`^(?:SMALLINT|INT|BIGINT)$`)
	texts      = regexp.MustCompile(`^(N?)VARCHAR\(([1-9][0-9]{0,3})\)$`)
	maxTexts   = regexp.MustCompile(`^N?VARCHAR\(MAX\)$`)
	collations = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
)

const (
	// longestText is a VARCHAR that is not MAX, in bytes (sql-docs,
	// char-and-varchar-transact-sql.md).
	longestText = 8000
	// longestKey is what a nonclustered index takes, 1,700 bytes (sql-docs,
	// create-index-transact-sql.md), less the BIGINT id behind the event type.
	longestKey = 1700 - 8
)

// isText says whether a type is VARCHAR(n) or NVARCHAR(n) of at most so many
// bytes.
func isText(typeName string, bytes int) bool {
	parts := texts.FindStringSubmatch(typeName)
	if parts == nil {
		return false
	}
	n, err := strconv.Atoi(parts[2])
	if parts[1] == "N" {
		n *= 2
	}
	return err == nil && n <= bytes
}

// Validate names the option that cannot be.
func (o Options) Validate() error {
	o = o.withDefaults()
	switch {
	case !integers.MatchString(o.EventType) && !isText(o.EventType, longestKey):
		return fmt.Errorf("option EventType is %q, must be SMALLINT, INT, BIGINT, VARCHAR(n) or NVARCHAR(n) of at most %d bytes", o.EventType, longestKey)
	case !isText(o.Aggregate, longestText):
		return fmt.Errorf("option Aggregate is %q, must be VARCHAR(n) or NVARCHAR(n) of at most %d bytes", o.Aggregate, longestText)
	case !maxTexts.MatchString(o.Payload) && !isText(o.Payload, longestText):
		return fmt.Errorf("option Payload is %q, must be VARCHAR(n) or NVARCHAR(n) of at most %d bytes, or either with MAX", o.Payload, longestText)
	case !collations.MatchString(o.Collation):
		return fmt.Errorf("option Collation is %q, which is no name of one", o.Collation)
	case !collations.MatchString(o.TextCollation):
		return fmt.Errorf("option TextCollation is %q, which is no name of one", o.TextCollation)
	}
	for field, name := range map[string]string{"Schema": o.Schema, "Table": o.Table, "ClaimIndex": o.ClaimIndex, "RetryIndex": o.RetryIndex} {
		if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return fmt.Errorf("option %s is %q, which is no identifier", field, name)
		}
	}
	return nil
}

// marked is a type, a collation or a clause that the files mark by a comment in
// front of it.
var marked = regexp.MustCompile(`/\*(\w+)\*/ (N?VARCHAR\(\w+\)|INCLUDE \([^)]*\)|\w+)`)

func (o Options) render(script string) (string, error) {
	if err := o.Validate(); err != nil {
		return "", fmt.Errorf("render the script: %w", err)
	}
	o = o.withDefaults()
	var unknown error
	script = marked.ReplaceAllStringFunc(script, func(m string) string {
		parts := marked.FindStringSubmatch(m)
		with, err := o.mark(parts[1], parts[2])
		unknown = errors.Join(unknown, err)
		return "/*" + parts[1] + "*/ " + with
	})
	script, err := o.rename(script)
	if err = errors.Join(unknown, err); err != nil {
		return "", fmt.Errorf("render the script: %w", err)
	}
	return script, nil
}

// mark says what stands behind a marker.
func (o Options) mark(name, was string) (string, error) {
	unicode := strings.HasPrefix(o.Payload, "N")
	switch name {
	case "event_type":
		return o.EventType, nil
	case "receipt_event_type":
		// For people who look at the receipts; integers are written as text.
		if strings.HasPrefix(o.EventType, "N") {
			return "NVARCHAR(100)", nil
		}
		return was, nil
	case "aggregate":
		return o.Aggregate, nil
	case "text_collation":
		return o.TextCollation, nil
	case "payload":
		return o.Payload, nil
	case "headers":
		if unicode {
			return "N" + was, nil
		}
		return was, nil
	case "collation":
		return o.Collation, nil
	case "include":
		if o.SlimClaimIndex {
			return "", nil
		}
		return was, nil
	}
	return "", fmt.Errorf("the marker /*%s*/ is not known", name)
}

// rename replaces the bracketed identifiers, in the text and inside its string
// literals, and the literals that are an index name. Of comments only the roles.
func (o Options) rename(script string) (string, error) {
	var b strings.Builder
	for len(script) > 0 {
		switch {
		case strings.HasPrefix(script, "--"):
			n := strings.IndexByte(script, '\n')
			if n < 0 {
				n = len(script)
			}
			comment, err := o.comment(script[:n])
			if err != nil {
				return "", err
			}
			b.WriteString(comment)
			script = script[n:]
		case strings.HasPrefix(script, "/*"):
			n := strings.Index(script, "*/") + 2
			if n < 2 {
				return "", errors.New("a comment does not end")
			}
			b.WriteString(script[:n])
			script = script[n:]
		case script[0] == '\'':
			n := strings.IndexByte(script[1:], '\'') + 2 // no file holds a doubled quote
			if n < 2 {
				return "", errors.New("a string does not end")
			}
			inner, err := o.literal(script[1 : n-1])
			if err != nil {
				return "", err
			}
			b.WriteString("'" + strings.ReplaceAll(inner, "'", "''") + "'")
			script = script[n:]
		case script[0] == '[':
			n := strings.IndexByte(script, ']') + 1
			if n < 1 {
				return "", errors.New("an identifier does not end")
			}
			name, err := o.identifier(script[1 : n-1])
			if err != nil {
				return "", err
			}
			b.WriteString(name)
			script = script[n:]
		default:
			b.WriteByte(script[0])
			script = script[1:]
		}
	}
	return b.String(), nil
}

var roles = regexp.MustCompile(`\[(outbox_event_role|outbox_event_jobs_role)\]`)

// comment renames the roles in what the head of the grants tells people to run. A
// table whose name could end the comment keeps the files' names in it.
func (o Options) comment(line string) (string, error) {
	if strings.ContainsFunc(o.Table, unicode.IsControl) {
		return line, nil
	}
	return o.renamed(roles, line)
}

// renamed has the caller's identifiers in place of those in brackets that the pattern
// finds.
func (o Options) renamed(pattern *regexp.Regexp, text string) (string, error) {
	var failed error
	text = pattern.ReplaceAllStringFunc(text, func(m string) string {
		name, err := o.identifier(m[1 : len(m)-1])
		failed = errors.Join(failed, err)
		return name
	})
	return text, failed
}

var bracketed = regexp.MustCompile(`\[(\w+)\]`)

func (o Options) literal(s string) (string, error) {
	switch s {
	case "IX_outbox_claim":
		return o.ClaimIndex, nil
	case "IX_outbox_retry":
		return o.RetryIndex, nil
	case "outbox_event_role":
		return o.Table + "_role", nil
	case "outbox_event_jobs_role":
		return o.Table + "_jobs_role", nil
	}
	return o.renamed(bracketed, s)
}

// longestIdentifier is a sysname in characters (sql-docs,
// database-identifiers.md).
const longestIdentifier = 128

// identifier renames and quotes one identifier of the files.
func (o Options) identifier(name string) (string, error) {
	const table = "outbox_event"
	switch {
	case name == "dbo":
		name = o.Schema
	case name == "IX_outbox_claim":
		name = o.ClaimIndex
	case name == "IX_outbox_retry":
		name = o.RetryIndex
	case name == "key": // OPENJSON's column
	case strings.Contains(name, table):
		name = strings.Replace(name, table, o.Table, 1)
	default:
		return "", fmt.Errorf("the identifier [%s] is not known", name)
	}
	if utf8.RuneCountInString(name) > longestIdentifier {
		return "", fmt.Errorf("the name %q is longer than the %d characters of an identifier", name, longestIdentifier)
	}
	return mssql.TSQLQuoter{}.ID(name), nil
}
