package engine

import "azsqloutbox/sqlserver/emulator/internal/sqltype"

// mayBeBareNull: with ANSI_NULLS OFF only a variable or a literal NULL makes a
// comparison with NULL true (sql-docs, "SET ANSI_NULLS").
func (s *scalar) mayBeBareNull() bool { return s.variable || s.typ.Kind == sqltype.Null }

// compareNulls is = or <> where NULL equals NULL. It is no search argument.
func compareNulls(pair operands, op string) *predicate {
	test, compare := holds(op), pair.compare
	fa, fb := pair.a.eval, pair.b.eval
	return derivePredicate(func(e *env) (tri, error) {
		va, vb, err := both(e, fa, fb)
		if err != nil {
			return isUnknown, err
		}
		if va.IsNull() || vb.IsNull() {
			return truth((va.IsNull() && vb.IsNull()) == (op == "=")), nil
		}
		return truth(test(compare(va, vb))), nil
	}, pair.a, pair.b)
}
