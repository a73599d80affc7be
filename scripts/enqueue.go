package scripts

import (
	"strings"
	"unicode"
)

// IsEnqueue says whether definition, from sys.sql_modules, is the procedure that
// Enqueue makes today for the names of o, with whatever types. Blanks do not
// count, nor do characters beyond ASCII, which stand in comments alone: sqlcmd
// reads a file by the code page of its machine.
func IsEnqueue(o Options, definition string) (bool, error) {
	script, err := Enqueue(o)
	if err != nil {
		return false, err
	}
	var want string
	for _, batch := range Batches(script) {
		if body, ok := procedureBody(batch); ok {
			want = body
		}
	}
	got, ok := procedureBody(definition)
	return ok && got == want, nil
}

// procedureBody is what follows the procedure's name: what stands before it is no
// part of what it does, and the server writes CREATE OR ALTER in its own way.
func procedureBody(batch string) (body string, ok bool) {
	folded := strings.Join(strings.FieldsFunc(batch, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsSpace(r) }), " ")
	_, body, ok = strings.Cut(folded, "@events NVARCHAR(MAX) AS BEGIN ")
	return strings.TrimRight(marked.ReplaceAllString(body, "/*$1*/"), "; "), ok
}
