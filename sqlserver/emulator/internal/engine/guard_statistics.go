package engine

import "strings"

// statistics checks the columns of CREATE STATISTICS … ON t (a, b): over anything
// else there the parser never comes to an end.
func (g *guard) statistics(word string) *sqlError {
	const (
		none = iota
		table
		column
		separator
	)
	switch {
	case word == "STATISTICS" && strings.EqualFold(g.before, "CREATE"):
		g.statisticsAt = table
	case g.statisticsAt == table && word == "(":
		g.statisticsAt = column
	case g.statisticsAt == table && (word == ";" || word == "WITH" || word == "WHERE"):
		g.statisticsAt = none
	case g.statisticsAt == column:
		if !isName(g.token) {
			return errSyntax(g.token)
		}
		g.statisticsAt = separator
	case g.statisticsAt == separator:
		switch word {
		case ",":
			g.statisticsAt = column
		case ")":
			g.statisticsAt = none
		default:
			return errSyntax(g.token)
		}
	}
	return nil
}

// isName: a quoted name, or a word that no statement or clause begins with.
func isName(token string) bool {
	c := token[0]
	return c == '[' || c == '"' || (isWordByte(c) && (c < '0' || c > '9') && c != '@' && !reserved[strings.ToUpper(token)])
}
