package engine

import (
	"maps"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

func (c *compiler) insertSource(p *insertPlan, spec *ast.InsertSpecification) error {
	switch src := spec.InsertSource.(type) {
	case *ast.ValuesInsertSource:
		if src.IsDefaultValues {
			p.columns = nil
			p.rows = func(e *env, emit func([]sqltype.Value) error) error { return emit(nil) }
			return nil
		}
		return c.insertValues(p, src.RowValues, len(spec.Columns) > 0)
	case *ast.SelectInsertSource:
		q, err := c.query(src.Select, &scope{})
		if err != nil {
			return err
		}
		switch n := len(q.cols); {
		case q.assign != nil:
			return raiseBatch(199, 15, 1, "An INSERT statement cannot contain a SELECT statement that assigns values to a variable.")
		case len(spec.Columns) > 0 && n < len(p.columns):
			return raiseBatch(120, 15, 1, "The select list for the INSERT statement contains fewer items than the insert list. The number of SELECT values must match the number of INSERT columns.")
		case len(spec.Columns) > 0 && n > len(p.columns):
			return raiseBatch(121, 15, 1, "The select list for the INSERT statement contains more items than the insert list. The number of SELECT values must match the number of INSERT columns.")
		}
		if err := p.width(len(q.cols), len(spec.Columns) > 0); err != nil {
			return err
		}
		if err := q.assignable(p.target.def, p.columns); err != nil {
			return err
		}
		p.rows = q.each
		return nil
	}
	return notModelled("INSERT from %s", syntaxName(spec.InsertSource))
}

func (p *insertPlan) width(n int, listed bool) error {
	switch {
	case n == len(p.columns):
		return nil
	case !listed && p.target.def.identity != nil && n == len(p.columns)+1:
		return raiseBatch(8101, 16, 1, "An explicit value for the identity column in table '%s' can only be specified when a column list is used and IDENTITY_INSERT is ON.", p.target.def.name)
	case !listed:
		return raiseBatch(213, 16, 1, "Column name or number of supplied values does not match table definition.")
	case n > len(p.columns):
		return raiseBatch(110, 15, 1, "There are fewer columns in the INSERT statement than values specified in the VALUES clause. The number of values in the VALUES clause must match the number of columns specified in the INSERT statement.")
	}
	return raiseBatch(109, 15, 1, "There are more columns in the INSERT statement than values specified in the VALUES clause. The number of values in the VALUES clause must match the number of columns specified in the INSERT statement.")
}

// maxValueRows is how many rows a VALUES list of INSERT may have.
const maxValueRows = 1000

// insertValues compiles VALUES; each row is converted to the columns by
// itself, not to a common type first.
func (c *compiler) insertValues(p *insertPlan, list []*ast.RowValue, listed bool) error {
	if len(list) > maxValueRows {
		return raiseBatch(10738, 15, 1, "The number of row value expressions in the INSERT statement exceeds the maximum allowed number of 1000 row values.")
	}
	rows := make([][]*scalar, len(list))
	all := make(draws)
	for _, r := range list {
		if len(r.ColumnValues) == 0 {
			return errSyntax(")")
		}
		if len(r.ColumnValues) != len(list[0].ColumnValues) {
			return errValueRows()
		}
	}
	for i, r := range list {
		c.draws = make(draws)
		if err := p.width(len(r.ColumnValues), listed); err != nil {
			return err
		}
		rows[i] = make([]*scalar, len(r.ColumnValues))
		for j, x := range r.ColumnValues {
			if _, ok := x.(*ast.DefaultLiteral); ok {
				s, err := c.defaultOf(p.target.def, p.target.def.columns[p.columns[j]])
				if err != nil {
					return err
				}
				rows[i][j] = s
				continue
			}
			s, err := c.expression(x, &scope{})
			if err != nil {
				return err
			}
			if err := implicitly(s.typ, p.target.def.columns[p.columns[j]].typ); err != nil {
				return err
			}
			rows[i][j] = s
		}
		maps.Copy(all, c.draws)
	}
	c.draws = all
	p.rows = func(e *env, emit func([]sqltype.Value) error) error {
		for _, exprs := range rows {
			row := make([]sqltype.Value, len(exprs))
			for i, s := range exprs {
				v, err := s.eval(e)
				if err != nil {
					return err
				}
				row[i] = v
			}
			if err := emit(row); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}
