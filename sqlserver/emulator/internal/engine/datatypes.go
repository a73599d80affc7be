package engine

import (
	"strconv"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// typeNames are the types that a declaration may name, in any case.
var typeNames = map[string]sqltype.Kind{
	"bit": sqltype.Bit, "tinyint": sqltype.TinyInt, "smallint": sqltype.SmallInt,
	"int": sqltype.Int, "integer": sqltype.Int, "bigint": sqltype.BigInt,
	"decimal": sqltype.Decimal, "numeric": sqltype.Decimal, "dec": sqltype.Decimal, "money": sqltype.Money,
	"real": sqltype.Real, "float": sqltype.Float,
	"date": sqltype.Date, "time": sqltype.Time, "datetime": sqltype.DateTime,
	"smalldatetime": sqltype.SmallDateTime, "datetime2": sqltype.DateTime2,
	"datetimeoffset": sqltype.DateTimeOffset,
	"char":           sqltype.Char, "character": sqltype.Char, "varchar": sqltype.VarChar,
	"nchar": sqltype.NChar, "nvarchar": sqltype.NVarChar, "sysname": sqltype.NVarChar,
	"binary": sqltype.Binary, "varbinary": sqltype.VarBinary,
	"uniqueidentifier": sqltype.UniqueIdentifier, "xml": sqltype.XML, "sql_variant": sqltype.SQLVariant,
}

func errNoType(name string) *sqlError {
	return raiseBatch(2715, 16, 6, "Column, parameter, or variable #1: Cannot find data type %s.", name)
}

// dataType reads a type as declarations write it: char and binary without a
// length are 1 long.
func (e *Engine) dataType(ref ast.DataTypeReference) (sqltype.Type, error) {
	return e.dataTypeOf(ref, 1)
}

func (e *Engine) dataTypeOf(ref ast.DataTypeReference, defaultLength int) (sqltype.Type, error) {
	var name string
	var params []ast.ScalarExpression
	switch ref := ref.(type) {
	case *ast.SqlDataTypeReference:
		if ref == nil || ref.Name == nil {
			return sqltype.Type{}, errSyntax("")
		}
		name, params = ref.Name.BaseIdentifier.Value, ref.Parameters
		if name == "" {
			name = ref.SqlDataTypeOption
		}
	case *ast.XmlDataTypeReference:
		return sqltype.Type{Kind: sqltype.XML}, nil
	case *ast.UserDataTypeReference:
		name, params = ref.Name.BaseIdentifier.Value, ref.Parameters
	default:
		return sqltype.Type{}, notModelled("the type %s", syntaxName(ref))
	}
	kind, ok := typeNames[strings.ToLower(name)]
	if !ok {
		return sqltype.Type{}, errNoType(name)
	}
	t := sqltype.Type{Kind: kind}
	if strings.EqualFold(name, "sysname") {
		t.Length, t.Collation = 128, e.database.collation
		return t, nil
	}
	return t, e.typeParameters(&t, params, defaultLength)
}

// declaredType is the name that a declaration has for a type of the user's.
func declaredType(ref ast.DataTypeReference) string {
	switch ref := ref.(type) {
	case *ast.SqlDataTypeReference:
		return objectText(ref.Name)
	case *ast.UserDataTypeReference:
		return objectText(ref.Name)
	}
	return ""
}

func (e *Engine) typeParameters(t *sqltype.Type, params []ast.ScalarExpression, defaultLength int) error {
	n := make([]int, len(params))
	for i, p := range params {
		switch p := p.(type) {
		case *ast.MaxLiteral:
			n[i] = sqltype.Max
		case *ast.IntegerLiteral:
			v, err := strconv.Atoi(p.Value)
			if err != nil {
				return errSyntax(p.Value)
			}
			n[i] = v
		default:
			return errSyntax(syntaxName(p))
		}
	}
	switch {
	case t.Kind.IsText() || t.Kind.IsBinary():
		return e.lengthOf(t, n, defaultLength)
	case t.Kind == sqltype.Decimal:
		precision, scale := 18, 0
		if len(n) > 0 {
			precision = n[0]
		}
		if len(n) > 1 {
			scale = n[1]
		}
		switch {
		case precision < 1:
			return errPrecision(precision)
		case precision > 38:
			return raiseBatch(2750, 16, 1, "Column or parameter #1: Specified column precision %d is greater than the maximum precision of 38.", precision)
		case scale > precision:
			return raiseBatch(192, 16, 1, "The scale must be less than or equal to the precision.")
		}
		t.Precision, t.Scale = uint8(precision), uint8(scale)
	case t.Kind == sqltype.DateTime2 || t.Kind == sqltype.Time || t.Kind == sqltype.DateTimeOffset:
		t.Scale = 7
		if len(n) > 0 {
			if n[0] < 0 || n[0] > 7 {
				return raiseBatch(1002, 16, 1, "Line 1: Specified scale %d is invalid.", n[0])
			}
			t.Scale = uint8(n[0])
		}
	case t.Kind == sqltype.Float:
		if len(n) > 0 && n[0] <= 24 {
			t.Kind = sqltype.Real
		}
	case len(n) > 0:
		return raiseBatch(2716, 16, 1, "Column, parameter, or variable #1: Cannot specify a column width on data type %s.", t.Name())
	}
	return nil
}

func errPrecision(n int) error {
	return raiseBatch(1001, 15, 1, "Line 1: Length or precision specification %d is invalid.", n)
}

func (e *Engine) lengthOf(t *sqltype.Type, n []int, defaultLength int) error {
	limit := 8000
	if t.Kind.IsUnicode() {
		limit = 4000
	}
	t.Length = defaultLength
	if len(n) > 0 {
		t.Length = n[0]
	}
	if t.Kind.IsText() {
		t.Collation = e.database.collation
	}
	fixed := t.Kind == sqltype.Char || t.Kind == sqltype.NChar || t.Kind == sqltype.Binary
	switch {
	case t.Length == sqltype.Max && fixed:
		return errSyntax("max")
	case t.Length == sqltype.Max:
		return nil
	case t.Length < 1:
		return errPrecision(t.Length)
	case t.Length > 8000:
		return raiseBatch(131, 15, 2, "The size (%d) given to the type '%s' exceeds the maximum allowed for any data type (8000).", t.Length, t.Name())
	case t.Length > limit:
		return raiseBatch(2717, 16, 2, "The size (%d) given to the type '%s' exceeds the maximum allowed (%d).", t.Length, t.Name(), limit)
	}
	return nil
}

// cast compiles CAST, CONVERT and their TRY_ forms. Here a length that is
// not given is 30.
func (c *compiler) cast(x ast.ScalarExpression, ref ast.DataTypeReference, style ast.ScalarExpression, coll *ast.Identifier, try bool, sc *scope) (*scalar, error) {
	s, err := c.expression(x, sc)
	if err != nil {
		return nil, err
	}
	t, err := c.engine.dataTypeOf(ref, 30)
	if err != nil {
		if se, ok := err.(*sqlError); ok && se.Number == errNoType("").Number {
			return nil, raiseBatch(243, 16, 1, "Type %s is not a defined system type.", declaredType(ref))
		}
		return nil, err
	}
	if err := explicitly(s.typ, t); err != nil {
		return nil, err
	}
	st := literal(intType, intValue(0))
	if style != nil {
		if st, err = c.expression(style, sc); err != nil {
			return nil, err
		}
		st = convertTo(st, intType)
	}
	// text converted to text keeps the collation that it has
	if t.Kind.IsText() && s.typ.Kind.IsText() && s.typ.Collation != nil {
		t.Collation = s.typ.Collation
	}
	inner, from := s.eval, s.typ
	out := derive(t, func(e *env) (sqltype.Value, error) {
		v, err := inner(e)
		if err != nil || v.IsNull() {
			return v, err
		}
		n, err := st.eval(e)
		if err != nil || n.IsNull() {
			return sqltype.Value{}, err
		}
		if t.Kind.IsBinary() && n.N == 0 && (v.Kind == sqltype.VarChar || v.Kind == sqltype.Char) {
			v = sqltype.TextBytes(v, from.Collation)
		}
		r, err := sqltype.Convert(v, t, int(n.N))
		if err != nil && try {
			if _, conversion := err.(*sqltype.Error); conversion {
				return sqltype.Value{}, nil
			}
		}
		return r, err
	}, s, st)
	out.notNull = s.notNull && !try
	if out.constant {
		out = fold(out)
	}
	if coll != nil {
		return c.collate(out, coll)
	}
	return out, nil
}
