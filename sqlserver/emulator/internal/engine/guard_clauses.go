package engine

import "strings"

// dangling refuses what the parser drops or takes for a name: an AS or a comma with a
// clause or nothing behind it, an OPTION of nothing.
func (g *guard) dangling(word string) *sqlError {
	before := strings.ToUpper(g.before)
	switch {
	case before == "AS" && (word == ")" || word == "," || word == ";" && !g.module):
		return errSyntax(word)
	case (before == "," || incompleteAfter[before]) && (word == ")" || word == ";") && g.optionAt == 0:
		return errSyntax(word)
	case incompleteAfter[before] && clauses[word]:
		return errKeyword(word)
	case word == ")" && before == "(" && strings.EqualFold(g.beforeThat, "INCLUDE"):
		return errSyntax(word)
	case g.tryEnded && before == "BEGIN" && word != "CATCH", g.endOfTry() && word != "BEGIN":
		return errNear(g.token)
	case (before == "AS" || before == ",") && clauses[word]:
		return errKeyword(word)
	case word == ")" && before == "(" && strings.EqualFold(g.beforeThat, "OPTION"):
		return errSyntax(word)
	}
	g.tryEnded = g.endOfTry()
	return nil
}

// incompleteAfter are the keywords that something has to stand behind.
var incompleteAfter = wordSet("WHERE AND OR BY HAVING JOIN LIKE BETWEEN WHEN THEN FROM IN")

// joins checks that each JOIN has its ON. Without one the parser leaves out the whole
// FROM.
func (g *guard) joins(word string) *sqlError {
	open := func() bool {
		n := len(g.joined)
		return n > 0 && g.joined[n-1] == g.parens
	}
	switch {
	case g.optionAt > 0:
	case word == "JOIN" && !strings.EqualFold(g.before, "CROSS"):
		g.joined = append(g.joined, g.parens)
	case word == "ON" && open():
		g.joined = g.joined[:len(g.joined)-1]
	case open() && (word == ";" || word == ")" || endsFrom[word]):
		return errNear(g.token)
	case (word == ";" || word == ")" || clauses[word]) && g.applying():
		return errNear(g.token)
	}
	return nil
}

// applying says whether CROSS APPLY or OUTER APPLY was read last.
func (g *guard) applying() bool {
	return strings.EqualFold(g.before, "APPLY") && (strings.EqualFold(g.beforeThat, "CROSS") || strings.EqualFold(g.beforeThat, "OUTER"))
}

// endsFrom are the words before which every JOIN must have its ON, at its own depth.
var endsFrom = wordSet("WHERE GROUP HAVING ORDER OPTION UNION EXCEPT INTERSECT SELECT INSERT UPDATE DELETE SET END")

// endOfTry says whether END TRY was read last, behind which BEGIN CATCH must stand.
func (g *guard) endOfTry() bool {
	return strings.EqualFold(g.before, "TRY") && strings.EqualFold(g.beforeThat, "END")
}

// options checks OPTION ( … ) for commas and values that are missing: the parser does
// without.
func (g *guard) options(word string) *sqlError {
	before := strings.ToUpper(g.before)
	switch {
	case word == "(" && before == "OPTION":
		g.optionAt = g.parens + 1
	case g.optionAt == 0 || g.parens != g.optionAt:
	case word == ")":
		g.optionAt = 0
		if needsNumber[before] {
			return errSyntax(word)
		}
	case word == ",":
		if needsNumber[before] {
			return errSyntax(word)
		}
	case needsNumber[before] && (word[0] < '0' || word[0] > '9'):
		return errNear(g.token)
	case before == "RECOMPILE", before[0] >= '0' && before[0] <= '9' && word != ".":
		return errNear(g.token)
	}
	return nil
}

// needsNumber are the query hints with a whole number behind them.
var needsNumber = wordSet("MAXDOP FAST MAXRECURSION QUERYTRACEON")
