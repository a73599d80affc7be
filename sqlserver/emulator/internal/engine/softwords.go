package engine

import (
	"regexp"
	"strings"
)

// softWords are keywords of the parser that T-SQL does not reserve: a column
// may be called type or message without quotes.
var softWords = regexp.MustCompile(`(?i)^(TYPE|MESSAGE|LANGUAGE|MASTER|CREDENTIAL|SCOPED|COOKIE|LOGIN|CALLER|STATS|JOB|QUERY|NOTIFICATION|SUBSCRIPTION|DIALOG|CONVERSATION|PASSWORD|ENCRYPTION|DECRYPTION|SYMMETRIC|ASYMMETRIC|CERTIFICATE|FILESTREAM|RETURNS|STATUSONLY|SEND|RECEIVE|MOVE|GET|TIME|DELAY|WORK|FAST|TIES|CATCH|TRY|SERVICE|QUEUE|CONTRACT)$`)

// beforeOperand are the tokens after which an expression may begin with a
// column.
var beforeOperand = regexp.MustCompile(`(?i)^([,(=<>+\-*/%]|SELECT|DISTINCT|WHERE|AND|OR|NOT|ON|BY|HAVING|SET|WHEN|THEN|ELSE|CASE|IN|LIKE|BETWEEN)$`)

// quoteSoftWord puts brackets around a soft word wherever it can only be a
// column. The parser said that it did not expect it there.
func quoteSoftWord(text, word string) (quoted string, changed bool) {
	if !softWords.MatchString(word) {
		return text, false
	}
	var b strings.Builder
	g := guard{text: text}
	copied := 0
	before := ""
	for g.next() {
		if strings.EqualFold(g.token, word) && beforeOperand.MatchString(before) {
			start := g.pos - len(g.token)
			b.WriteString(text[copied:start])
			b.WriteString("[" + g.token + "]")
			copied, changed = g.pos, true
		}
		before = g.token
	}
	b.WriteString(text[copied:])
	return b.String(), changed
}
