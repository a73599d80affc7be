package engine

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/shopspring/decimal"
	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

func (c *compiler) literal(x ast.ScalarExpression) (*scalar, error) {
	switch x := x.(type) {
	case *ast.NullLiteral:
		return literal(nullType, sqltype.Value{}), nil
	case *ast.IntegerLiteral:
		return numberLiteral(x.Value)
	case *ast.NumericLiteral:
		return decimalLiteral(x.Value)
	case *ast.MoneyLiteral:
		v, err := sqltype.Convert(varcharValue(strings.TrimLeft(x.Value, "$")), sqltype.Type{Kind: sqltype.Money}, 0)
		return literal(sqltype.Type{Kind: sqltype.Money}, v), err
	case *ast.RealLiteral:
		f, err := strconv.ParseFloat(x.Value, 64)
		if err != nil {
			return nil, errSyntax(x.Value)
		}
		return literal(floatType, sqltype.FloatValue(sqltype.Float, f)), nil
	case *ast.StringLiteral:
		return stringLiteral(x.Value, x.IsNational)
	case *ast.BinaryLiteral:
		h := strings.TrimPrefix(strings.TrimPrefix(x.Value, "0x"), "0X")
		if len(h)%2 == 1 {
			h = "0" + h
		}
		b, err := hex.DecodeString(h)
		if err != nil {
			return nil, errSyntax(x.Value)
		}
		return literal(varbinaryType(max(1, len(b))), sqltype.Value{Kind: sqltype.VarBinary, S: string(b)}), nil
	}
	return nil, notModelled("the literal %s", syntaxName(x))
}

// numberLiteral: int where it fits, numeric above (there are no bigint
// literals, but to the client the difference shows only in the type).
func numberLiteral(text string) (*scalar, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > 1<<31-1 {
		return decimalLiteral(text)
	}
	return literal(intType, intValue(n)), nil
}

func decimalLiteral(text string) (*scalar, error) {
	d, err := decimal.NewFromString(text)
	if err != nil {
		return nil, errSyntax(text)
	}
	whole, frac, _ := strings.Cut(text, ".")
	whole = strings.TrimLeft(whole, "0")
	t := sqltype.Type{Kind: sqltype.Decimal, Scale: uint8(min(len(frac), 38))}
	t.Precision = uint8(min(max(len(whole)+len(frac), 1), 38))
	v, err := sqltype.NewDecimal(d, t)
	if err != nil {
		return nil, raiseBatch(1007, 15, 1, "The number '%s' is out of the range for numeric representation (maximum precision 38).", text)
	}
	return literal(t, v), nil
}

// stringLiteral: without N the text passes through the database's code page.
func stringLiteral(s string, national bool) (*scalar, error) {
	t := varcharType(max(1, utf8.RuneCountInString(s)))
	if national {
		t = nvarcharType(max(1, sqltype.UTF16Length(s)))
		if t.Length > 4000 {
			t.Length = sqltype.Max
		}
	} else if t.Length > 8000 {
		t.Length = sqltype.Max
	}
	v, err := sqltype.Convert(nvarcharValue(s), t, 0)
	return literal(t, v), err
}

func (c *compiler) variable(name string) (*scalar, error) {
	i, t, ok := c.vars.scalar(name)
	if !ok {
		return nil, errUndeclared(name)
	}
	return &scalar{
		typ:  t,
		eval: func(e *env) (sqltype.Value, error) { return e.x.vars[i], nil }, variable: true,
	}, nil
}

func (c *compiler) columnReference(x *ast.ColumnReferenceExpression, sc *scope) (*scalar, error) {
	if x.MultiPartIdentifier == nil || x.ColumnType != "Regular" {
		return nil, notModelled("the column reference %s", x.ColumnType)
	}
	parts := identifiers(x.MultiPartIdentifier)
	src, i, err := sc.resolve(parts)
	if err != nil {
		return nil, err
	}
	s, err := c.groupedColumn(src, i, parts)
	if err != nil {
		return nil, err
	}
	if x.Collation != nil {
		return c.collate(s, x.Collation)
	}
	return s, nil
}

// columnScalar reads a column of a slot; the row of an outer join's missing
// side is nil.
func (c *compiler) columnScalar(src *source, i int) *scalar {
	slot, col := src.slot, src.cols[i]
	src.used.add(i)
	c.touched |= 1 << slot
	return &scalar{
		typ: col.typ,
		eval: func(e *env) (sqltype.Value, error) {
			// also a row that lost a column after the plan was made
			if row := e.rows[slot]; i < len(row) {
				return row[i], nil
			}
			return sqltype.Value{}, nil
		},
		deps:     1 << slot,
		column:   &columnRef{slot, i, true},
		notNull:  !col.nullable,
		strength: implicitCollation,
	}
}

// collate is the COLLATE clause.
func (c *compiler) collate(s *scalar, name *ast.Identifier) (*scalar, error) {
	if !s.typ.Kind.IsText() {
		return nil, raiseBatch(447, 16, 0, "Expression type %s is invalid for COLLATE clause.", s.typ.Name())
	}
	coll, err := c.collation(name.Value)
	if err != nil {
		return nil, err
	}
	t := s.typ
	t.Collation = coll
	out := convertTo(s, t)
	if out == s {
		n := *s
		out = &n
	}
	out.typ.Collation = coll
	out.strength, out.conflict = explicitCollation, nil
	return out, nil
}

func (c *compiler) collation(name string) (*sqltype.Collation, error) {
	return c.engine.collation(name)
}

func (e *Engine) collation(name string) (*sqltype.Collation, error) {
	switch strings.ToLower(name) {
	case "database_default", "catalog_default":
		return e.database.collation, nil
	}
	coll, ok := sqltype.LookupCollation(name)
	if !ok {
		return nil, raiseBatch(448, 16, 1, "Invalid collation '%s'.", name)
	}
	return coll, nil
}

// syntaxName is a tree node's type, for messages.
func syntaxName(x any) string { return strings.TrimPrefix(fmt.Sprintf("%T", x), "*ast.") }
