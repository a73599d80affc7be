package engine

import (
	"errors"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// openJSON compiles OPENJSON(text [, path]) with or without WITH.
func (c *compiler) openJSON(ref *ast.OpenJsonTableReference, sc *scope) (*joinTree, error) {
	if takesSequence(ref, false) {
		return nil, errSequenceArgument()
	}
	// It begins with compatibility level 130 (sql-docs, openjson-transact-sql.md);
	// below, it is a table that is not there.
	if c.engine.database.compatibility.Load() < 130 {
		return nil, raiseBatch(208, 16, 1, "Invalid object name 'OPENJSON'.")
	}
	parent := c.lateral(sc)
	outer := c.touched
	c.touched = 0
	text, err := c.expression(ref.Variable, parent)
	if err != nil {
		return nil, err
	}
	path := literal(varcharType(1), varcharValue("$"))
	if ref.RowPattern != nil {
		if path, err = c.expression(ref.RowPattern, parent); err != nil {
			return nil, err
		}
	}
	needs := c.touched
	c.touched |= outer
	r := &jsonRows{text: text, path: path}
	cols := []outCol{
		{name: "key", typ: sqltype.Type{Kind: sqltype.NVarChar, Length: 4000, Collation: binaryCollation}},
		{name: "value", typ: nvarcharType(sqltype.Max), nullable: true},
		{name: "type", typ: tinyType},
	}
	if len(ref.SchemaDeclarationItems) > 0 {
		cols = nil
		for _, item := range ref.SchemaDeclarationItems {
			col, err := c.jsonColumn(item)
			if err != nil {
				return nil, err
			}
			r.columns = append(r.columns, col)
			cols = append(cols, outCol{name: item.ColumnDefinition.ColumnIdentifier.Value, typ: col.typ, nullable: true})
		}
	}
	r.flat = len(r.columns) > 1
	for _, col := range r.columns {
		r.flat = r.flat && !col.path.strict && len(col.path.steps) == 1 && col.path.steps[0].index < 0
	}
	as := alias(ref.Alias)
	if as == "" {
		as = "OPENJSON"
	}
	src, err := c.newSource(as, "", cols)
	if err != nil {
		return nil, err
	}
	r.slot = src.slot
	sc.sources = append(sc.sources, src)
	return leafTree(&leaf{src: src, hints: &tableHints{indexID: -1}, rows: r}, needs), nil
}

// binaryCollation is that of OPENJSON's key column.
var binaryCollation, _ = sqltype.LookupCollation("Latin1_General_BIN2")

// jsonColumn is a column of OPENJSON … WITH.
type jsonColumn struct {
	typ    sqltype.Type
	path   jsonPath
	asJSON bool
}

func (c *compiler) jsonColumn(item *ast.SchemaDeclarationItemOpenjson) (jsonColumn, error) {
	def := item.ColumnDefinition
	t, err := c.engine.dataType(def.DataType)
	if err != nil {
		return jsonColumn{}, err
	}
	if def.Collation != nil {
		if t.Collation, err = c.collation(def.Collation.Value); err != nil {
			return jsonColumn{}, err
		}
	}
	col := jsonColumn{typ: t, asJSON: item.AsJson, path: jsonPath{steps: []jsonStep{{def.ColumnIdentifier.Value, -1}}}}
	if item.Mapping != nil {
		lit, ok := item.Mapping.(*ast.StringLiteral)
		if !ok {
			return col, notModelled("OPENJSON paths that are no literals")
		}
		if col.path, err = parseJSONPath(lit.Value); err != nil {
			return col, err
		}
	}
	if col.asJSON && (t.Kind != sqltype.NVarChar || t.Length != sqltype.Max) {
		return col, raiseBatch(13618, 16, 1, "AS JSON option can be specified only for column of nvarchar(max) type in WITH clause.")
	}
	return col, nil
}

type jsonRows struct {
	slot       int
	text, path *scalar
	columns    []jsonColumn
	// flat: every column is a member of the element itself, so one pass over
	// the element finds them all.
	flat bool
}

func (r *jsonRows) each(e *env, next func() error) error {
	v, err := r.text.eval(e)
	if err != nil || v.IsNull() {
		return err
	}
	root, err := parseJSON(sqltype.Format(v))
	if err != nil {
		return err
	}
	pv, err := r.path.eval(e)
	if err != nil {
		return err
	}
	if pv.S != "$" {
		path, err := parseJSONPath(pv.S)
		if err != nil {
			return err
		}
		var found bool
		if root, found, err = path.find(root); err != nil || !found {
			return err
		}
	}
	if r.columns != nil && root.kind == jsonObject {
		return r.row(e, root, next)
	}
	if root.kind != jsonArray && root.kind != jsonObject {
		return errJSON(&jsonParser{s: root.raw})
	}
	var failed error
	if r.columns != nil {
		(&jsonParser{s: root.raw}).elements(0, func(el jsonValue) bool {
			failed = r.row(e, el, next)
			return failed == nil
		})
		return failed
	}
	root.each(func(key string, el jsonValue) bool {
		value := sqltype.Value{}
		if el.kind != jsonNull {
			value = nvarcharValue(el.text())
		}
		e.rows[r.slot] = []sqltype.Value{nvarcharValue(key), value, {Kind: sqltype.TinyInt, N: int64(el.kind)}}
		failed = next()
		return failed == nil
	})
	return failed
}

// row makes a row of an element by the WITH clause.
func (r *jsonRows) row(e *env, el jsonValue, next func() error) error {
	row := make([]sqltype.Value, len(r.columns))
	var err error
	if r.flat {
		err = r.members(el, row)
	} else {
		for i := 0; i < len(row) && err == nil; i++ {
			row[i], err = r.columns[i].value(el)
		}
	}
	if err != nil {
		return err
	}
	e.rows[r.slot] = row
	return next()
}

// members fills a row in one pass; of a key that comes twice the first counts.
func (r *jsonRows) members(el jsonValue, row []sqltype.Value) (err error) {
	if el.kind != jsonObject {
		return nil
	}
	var done columnSet
	el.each(func(key string, v jsonValue) bool {
		for i := range r.columns {
			if i < 63 && done&(1<<i) != 0 || r.columns[i].path.steps[0].key != key {
				continue
			}
			done.add(i)
			if row[i], err = r.columns[i].convert(v); err != nil {
				return false
			}
		}
		return true
	})
	return err
}

func (col *jsonColumn) value(el jsonValue) (sqltype.Value, error) {
	v, found, err := col.path.find(el)
	if err != nil || !found {
		return sqltype.Value{}, err
	}
	return col.convert(v)
}

func (col *jsonColumn) convert(v jsonValue) (sqltype.Value, error) {
	if v.kind == jsonNull {
		return sqltype.Value{}, nil
	}
	nested := v.kind == jsonArray || v.kind == jsonObject
	if nested != col.asJSON {
		if col.path.strict {
			return sqltype.Value{}, raise(13624, 16, 1, "Object or array cannot be found in the specified JSON path.")
		}
		return sqltype.Value{}, nil // lax: a scalar where JSON is asked for, or the other way round
	}
	text := v.text()
	if col.typ.Kind == sqltype.BigInt && v.kind == jsonNumber {
		if n, ok := smallInteger(text); ok {
			return bigValue(n), nil
		}
	}
	val := nvarcharValue(text)
	if col.typ.Kind.IsText() {
		out, err := sqltype.Assign(val, col.typ)
		var cut *sqltype.Truncation
		if errors.As(err, &cut) {
			if col.path.strict {
				return out, raise(13625, 16, 1, "String value in the specified JSON path would be truncated.")
			}
			return sqltype.Value{}, nil // lax gives NULL for what does not fit
		}
		return out, err
	}
	return sqltype.Convert(val, col.typ, 0)
}

// smallInteger reads the common case without the generic conversion.
func smallInteger(s string) (n int64, ok bool) {
	if len(s) == 0 || len(s) > 18 {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}
