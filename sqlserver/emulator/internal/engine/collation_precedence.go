package engine

import "azsqloutbox/sqlserver/emulator/internal/sqltype"

// collationStrength is whose collation wins when texts meet (sql-docs, "Collation
// precedence").
type collationStrength uint8

const (
	coercible collationStrength = iota
	implicitCollation
	// noCollation is what + and CASE make of two implicit ones that differ: it may be
	// assigned, not compared and not sent.
	noCollation
	explicitCollation
)

// collationConflict is where a text lost its collation.
type collationConflict struct {
	operator string
	a, b     *sqltype.Collation
}

// mixture is the collation of an operation over texts.
type mixture struct {
	collation *sqltype.Collation
	strength  collationStrength
	conflict  *collationConflict
}

// mark puts it on the operation's result.
func (m mixture) mark(s *scalar) {
	if m.conflict != nil {
		s.strength, s.conflict = noCollation, m.conflict
	}
}

// mixCollations resolves the collation of an operation that may come out without
// one. Two explicit ones that differ are an error.
func mixCollations(operator string, a, b *scalar) (mixture, error) {
	ca, cb := a.typ.Collation, b.typ.Collation
	switch {
	case ca == nil, cb != nil && a.strength < b.strength:
		return mixture{cb, b.strength, b.conflict}, nil
	case cb == nil, a.strength > b.strength, ca == cb, a.strength == coercible, a.strength == noCollation:
		return mixture{ca, a.strength, a.conflict}, nil
	case a.strength == explicitCollation:
		return mixture{}, errCollations(cb, ca)
	}
	return mixture{ca, noCollation, &collationConflict{operator, cb, ca}}, nil
}

// commonCollation resolves the collation of an operation that needs one.
func commonCollation(a, b *scalar) (*sqltype.Collation, error) {
	m, err := mixCollations("", a, b)
	if err == nil && m.conflict != nil {
		err = errCollations(m.conflict.a, m.conflict.b)
	}
	return m.collation, err
}

func errCollations(a, b *sqltype.Collation) error {
	return raiseBatch(468, 16, 9, "Cannot resolve the collation conflict between \"%s\" and \"%s\" in the operation.", a.Name, b.Name)
}

// collated refuses a query with a column that has no collation.
func (q *query) collated() error {
	for i, col := range q.cols {
		if f := col.conflict; f != nil && q.assign == nil {
			return raiseBatch(451, 16, 1, "Cannot resolve collation conflict between \"%s\" and \"%s\" in %s operator occurring in SELECT statement column %d.", f.a.Name, f.b.Name, f.operator, i+1)
		}
	}
	return nil
}
