package engine

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// The parser recurses, and a few megabytes of '(' would end the process. These
// bounds are far above what anybody writes by hand.
const (
	maxTextBytes   = 4 << 20
	maxNesting     = 200
	maxUnaryRun    = 64
	maxConditional = 5000
)

// guard refuses text that the parser must not see, and text that it would let
// through although it is cut off: unbalanced parentheses, BEGIN without END,
// strings and comments that do not end.
type guard struct {
	text  string
	pos   int
	token string
	// before is the token before, beforeThat the one before it.
	before, beforeThat string
	// module says that the batch may end with the AS of an empty body.
	module bool
	// hintAt is how far a WITH ( … ) of single words has come.
	hintAt    int
	hintDepth int
	hint      string
	// joined are the depths of the JOINs that have no ON yet.
	joined []int
	// tryEnded: the token before is the BEGIN behind END TRY.
	tryEnded bool
	// optionAt is the depth of an OPTION ( … ), 0 outside of one.
	optionAt int
	// statisticsAt is how far a CREATE STATISTICS has come.
	statisticsAt int

	parens, blocks int
	unary          int
	conditionals   int
	afterBegin     bool
	doubleQuoted   bool
	nested         bool
}

// check scans the text. doubleQuoted says that it holds a "…" token, whose
// meaning QUOTED_IDENTIFIER decides.
func (g *guard) check() *sqlError {
	if len(g.text) > maxTextBytes {
		return notModelled("batches of more than %d bytes", maxTextBytes)
	}
	for g.next() {
		if e := g.length(); e != nil {
			return e
		}
		if e := g.count(); e != nil {
			return e
		}
	}
	switch {
	case g.pos < 0:
		return g.unterminated()
	case g.nested:
		return notModelled("comments within comments") // the parser ends at the first */
	case g.parens != 0 || g.blocks != 0:
		return errSyntax(strings.TrimSpace(g.token))
	case strings.EqualFold(g.before, "AS") && !g.module:
		return errKeyword(g.before)
	case g.before == ",", incompleteAfter[strings.ToUpper(g.before)], g.endOfTry(), g.applying(), len(g.joined) > 0:
		return errSyntax(g.before)
	}
	return nil
}

// maxIdentifier is in UTF-16 units: an identifier is a sysname, NVARCHAR(128)
// (sql-docs, "Database identifiers").
const maxIdentifier = 128

// length refuses an identifier that is too long; variables are identifiers too.
func (g *guard) length() *sqlError {
	name := g.token
	switch c := name[0]; {
	case len(name) <= maxIdentifier:
		return nil
	case c == '[':
		name = strings.ReplaceAll(name[1:len(name)-1], "]]", "]")
	case c == '"':
		name = strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
	case c >= '0' && c <= '9', !isWordByte(c):
		return nil
	}
	if sqltype.UTF16Length(name) <= maxIdentifier {
		return nil
	}
	return raiseBatch(103, 15, 4, "The identifier that starts with '%s' is too long. Maximum length is %d.", sqltype.CutUTF16(name, maxIdentifier), maxIdentifier)
}

func (g *guard) unterminated() *sqlError {
	if strings.HasPrefix(g.token, "/*") {
		return raiseBatch(113, 15, 1, "Missing end comment mark '*/'.")
	}
	return raiseBatch(105, 15, 1, "Unclosed quotation mark after the character string '%s'.", strings.TrimLeft(g.token, "N'\"["))
}

// count follows the nesting.
func (g *guard) count() *sqlError {
	word := strings.ToUpper(g.token)
	if word == "COLLATE" && strings.ContainsAny(g.before[:min(1, len(g.before))], "'@") {
		// the parser would lose it without a word
		return notModelled("COLLATE right behind a literal or a variable; write CAST(… AS …) COLLATE")
	}
	if strings.EqualFold(g.before, "TOP") && changesRows[strings.ToUpper(g.beforeThat)] && word != "(" {
		return errSyntax(g.token) // in a SELECT alone TOP goes without (sql-docs, "TOP")
	}
	if strings.EqualFold(g.before, "TOP") && word[0] == '@' {
		return errSyntax(g.token) // a constant alone goes without
	}
	if quantifiers[word] && strings.ContainsAny(g.before, "=<>") && len(g.before) == 1 {
		return notModelled("comparisons with %s (a subquery)", word) // the parser takes them for a mistake
	}
	if e := g.hints(word); e != nil {
		return e
	}
	if e := g.statistics(word); e != nil {
		return e
	}
	if g.before == "" {
		g.module = word == "CREATE" || word == "ALTER"
	}
	if e := g.dangling(word); e != nil {
		return e
	}
	if e := g.joins(word); e != nil {
		return e
	}
	if e := g.options(word); e != nil {
		return e
	}
	g.beforeThat, g.before = g.before, g.token
	if g.afterBegin {
		g.afterBegin = false
		switch word {
		case "TRAN", "TRANSACTION", "DISTRIBUTED", "DIALOG", "CONVERSATION":
			g.blocks--
		}
	}
	switch word {
	case "(":
		g.parens++
	case ")":
		g.parens--
		if g.parens < 0 {
			return errSyntax(")")
		}
	case "BEGIN":
		g.blocks++
		g.afterBegin = true
	case "CASE":
		g.blocks++
	case "END":
		g.blocks--
		if g.blocks < 0 {
			return errSyntax("END")
		}
	case "IF", "WHILE", "ELSE":
		g.conditionals++
	}
	switch word {
	case "-", "+", "~", "NOT":
		g.unary++
	default:
		g.unary = 0
	}
	if g.parens+g.blocks > maxNesting || g.unary > maxUnaryRun || g.conditionals > maxConditional {
		return raiseBatch(191, 15, 1, "Some part of your SQL statement is nested too deeply. Rewrite the query or break it up into smaller queries.")
	}
	return nil
}

// quantifiers are sql-docs, "SOME | ANY" and "ALL".
var quantifiers = map[string]bool{"ANY": true, "SOME": true, "ALL": true}

var changesRows = map[string]bool{"INSERT": true, "UPDATE": true, "DELETE": true}

// next moves to the next token. At the end of the text it returns false; pos
// is then -1 when something did not end.
func (g *guard) next() bool {
	for g.pos < len(g.text) {
		rest := g.text[g.pos:]
		c := rest[0]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			g.pos++
		case strings.HasPrefix(rest, "--"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest) - 1
			}
			g.pos += end + 1
		case strings.HasPrefix(rest, "/*"):
			end, nested := commentEnd(rest)
			if end < 0 {
				return g.unfinished(rest)
			}
			g.nested = g.nested || nested
			g.pos += end
		case c == '\'':
			return g.quoted(rest, '\'')
		case c == '"':
			g.doubleQuoted = true
			return g.quoted(rest, '"')
		case c == '[':
			return g.quoted(rest, ']')
		case isWordByte(c):
			n := 1
			for n < len(rest) && isWordByte(rest[n]) {
				n++
			}
			return g.take(rest[:n])
		default:
			_, n := utf8.DecodeRuneInString(rest)
			return g.take(rest[:n])
		}
	}
	return false
}

func (g *guard) take(token string) bool {
	g.token = token
	g.pos += len(token)
	return true
}

func (g *guard) unfinished(rest string) bool {
	g.token, g.pos = rest, -1
	return false
}

// quoted takes up to the closing mark; a doubled one does not close.
func (g *guard) quoted(rest string, closing byte) bool {
	for i := 1; i < len(rest); i++ {
		if rest[i] != closing {
			continue
		}
		if i+1 < len(rest) && rest[i+1] == closing {
			i++
			continue
		}
		return g.take(rest[:i+1])
	}
	return g.unfinished(rest)
}

// commentEnd is the length of a block comment; in T-SQL they nest.
func commentEnd(s string) (end int, nested bool) {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth++
			nested = nested || depth > 1
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1, nested
			}
		}
	}
	return -1, nested
}

func isWordByte(c byte) bool {
	return c == '_' || c == '@' || c == '#' || c == '$' || c >= utf8.RuneSelf ||
		unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c))
}

// hints checks the words of WITH (…) after a table: the parser drops a table
// hint that it does not know. An item of one word that is not followed by
// anything can only be such a hint; every other list in parentheses after WITH
// has items of two words or with "=".
func (g *guard) hints(word string) *sqlError {
	switch {
	case word == "WITH":
		g.hintAt = 1
	case g.hintAt == 1:
		g.hintAt = 0
		if word == "(" {
			g.hintAt, g.hintDepth = 2, g.parens+1
		}
	case g.hintAt == 2: // the first word of an item
		g.hint, g.hintAt = word, 3
	case g.hintAt == 3:
		single := word == "," || (word == ")" && g.parens == g.hintDepth)
		if single && !tableHintWords[g.hint] && isWordByte(g.hint[0]) {
			return raiseBatch(321, 15, 1, "\"%s\" is not a recognized table hints option. If it is intended as a parameter to a table-valued function or to the CHANGETABLE function, ensure that your database compatibility mode is set to 90.", strings.ToLower(g.hint))
		}
		g.hintAt = 0
		if word == "," {
			g.hintAt = 2
		}
		if word == "(" && tableHintWords[g.hint] { // INDEX (…), FORCESEEK (…)
			g.hintAt = 4
		}
	case g.hintAt == 4:
		if word == ")" && g.parens == g.hintDepth+1 {
			g.hintAt = 5
		}
	case g.hintAt == 5:
		g.hintAt = 0
		if word == "," {
			g.hintAt = 2
		}
	}
	return nil
}

// tableHintWords are the table hints of sql-docs, "Table hints".
var tableHintWords = map[string]bool{
	"HOLDLOCK": true, "NOLOCK": true, "PAGLOCK": true, "READCOMMITTED": true, "READCOMMITTEDLOCK": true, "READPAST": true,
	"READUNCOMMITTED": true, "REPEATABLEREAD": true, "ROWLOCK": true, "SERIALIZABLE": true, "SNAPSHOT": true, "TABLOCK": true,
	"TABLOCKX": true, "UPDLOCK": true, "XLOCK": true, "NOWAIT": true, "FORCESEEK": true, "FORCESCAN": true, "NOEXPAND": true,
	"KEEPIDENTITY": true, "KEEPDEFAULTS": true, "IGNORE_CONSTRAINTS": true, "IGNORE_TRIGGERS": true, "INDEX": true,
	// INSERT BULK … WITH (…)
	"CHECK_CONSTRAINTS": true, "FIRE_TRIGGERS": true, "KEEP_NULLS": true,
}
