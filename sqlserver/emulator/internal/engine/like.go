package engine

import (
	"unicode/utf8"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// matchLike is LIKE: % any text, _ one character, [a-z] and [^a-z] sets, each
// compared under the collation. Trailing spaces of the text count, as they do
// in LIKE.
func matchLike(s, pattern, escape string, coll *sqltype.Collation) bool {
	m := likeMatcher{escape: escape, coll: coll}
	return m.match(s, pattern)
}

type likeMatcher struct {
	escape string
	coll   *sqltype.Collation
}

func (m likeMatcher) match(s, p string) bool {
	// back is where to go on after the last % took one character more.
	backS, backP := "", ""
	haveBack := false
	for {
		if len(p) > 0 && p[0] == '%' && m.escape != "%" {
			p = p[1:]
			backS, backP, haveBack = s, p, true
			continue
		}
		if len(s) == 0 && len(p) == 0 {
			return true
		}
		if len(s) > 0 && len(p) > 0 {
			r, n := utf8.DecodeRuneInString(s)
			if rest, ok := m.one(r, p); ok {
				s, p = s[n:], rest
				continue
			}
		}
		if !haveBack || len(backS) == 0 {
			return false
		}
		_, n := utf8.DecodeRuneInString(backS)
		backS = backS[n:]
		s, p = backS, backP
	}
}

// one matches one character against the head of the pattern.
func (m likeMatcher) one(r rune, p string) (rest string, ok bool) {
	head, n := utf8.DecodeRuneInString(p)
	switch {
	case m.escape != "" && p[:n] == m.escape && len(p) > n:
		lit, k := utf8.DecodeRuneInString(p[n:])
		return p[n+k:], m.equal(r, lit)
	case head == '_':
		return p[n:], true
	case head == '[':
		if set, after, closed := cutSet(p[1:]); closed {
			return after, m.inSet(r, set)
		}
	}
	return p[n:], m.equal(r, head)
}

func cutSet(p string) (set, after string, ok bool) {
	for i := 0; i < len(p); i++ {
		if p[i] == ']' && i > 0 {
			return p[:i], p[i+1:], true
		}
	}
	return "", "", false
}

func (m likeMatcher) inSet(r rune, set string) bool {
	negate := false
	if set[0] == '^' {
		negate, set = true, set[1:]
	}
	rs := []rune(set)
	found := false
	for i := 0; i < len(rs); i++ {
		if i+2 < len(rs) && rs[i+1] == '-' {
			found = found || (m.compare(r, rs[i]) >= 0 && m.compare(r, rs[i+2]) <= 0)
			i += 2
			continue
		}
		found = found || m.equal(r, rs[i])
	}
	return found != negate
}

func (m likeMatcher) equal(a, b rune) bool { return a == b || m.compare(a, b) == 0 }

func (m likeMatcher) compare(a, b rune) int { return m.coll.Compare(string(a), string(b)) }
