package engine

import (
	"maps"
	"slices"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// view is a catalog view: its columns, and its rows from the engine's own
// state. It has the columns that the engine can answer for and no others;
// asking for another one is error 207. A view without rows has its columns as
// documented, for FakeView: the engine does not model it (50999).
type view struct {
	cols []outCol
	rows func(s *session) [][]sqltype.Value
}

// views maps schema.name in lower case to the view. The view_*.go files
// register theirs; a new one is one entry there.
var views = make(map[string]*view)

func registerViews(list map[string]*view) bool {
	maps.Copy(views, list)
	return true
}

// The column types of the catalog.
func vInt(name string) outCol   { return outCol{name: name, typ: intType} }
func vBig(name string) outCol   { return outCol{name: name, typ: bigType} }
func vSmall(name string) outCol { return outCol{name: name, typ: smallType} }
func vTiny(name string) outCol  { return outCol{name: name, typ: tinyType} }
func vBit(name string) outCol   { return outCol{name: name, typ: bitType} }
func vName(name string) outCol  { return outCol{name: name, typ: nvarcharType(128), nullable: true} }

func vText(name string) outCol {
	return outCol{name: name, typ: nvarcharType(sqltype.Max), nullable: true}
}

func vType(name string) outCol {
	return outCol{name: name, typ: sqltype.Type{Kind: sqltype.Char, Length: 2, Collation: binaryCollation}}
}
func vTime(name string) outCol { return outCol{name: name, typ: datetimeType} }
func vAny(name string) outCol {
	return outCol{name: name, typ: sqltype.Type{Kind: sqltype.SQLVariant}, nullable: true}
}

// catalogRow makes a row of Go values; nil is NULL.
func catalogRow(cols []outCol, values ...any) []sqltype.Value {
	row := make([]sqltype.Value, len(values))
	for i, v := range values {
		kind := cols[i].typ.Kind
		switch v := v.(type) {
		case int:
			row[i] = sqltype.Value{Kind: kind, N: int64(v)}
		case int32:
			row[i] = sqltype.Value{Kind: kind, N: int64(v)}
		case int64:
			row[i] = sqltype.Value{Kind: kind, N: v}
		case bool:
			row[i] = sqltype.NewBool(v)
		case string:
			row[i] = sqltype.Value{Kind: kind, S: v}
		case time.Time:
			row[i], _ = sqltype.Convert(sqltype.Value{Kind: sqltype.DateTime2, N: sqltype.TicksOf(v)}, datetimeType, 0)
		case sqltype.Value:
			row[i] = v
		}
	}
	return row
}

func (c *compiler) catalogView(v *viewSource, name, as string, sc *scope) (*joinTree, error) {
	schema := ""
	if as == "" {
		as, schema = name, "sys"
	}
	src, err := c.newSource(as, schema, v.cols)
	if err != nil {
		return nil, err
	}
	sc.sources = append(sc.sources, src)
	rows := stepFunc(func(e *env, next func() error) error {
		list, err := v.rows(e.x.s)
		if err != nil {
			return err
		}
		for _, row := range list {
			e.rows[src.slot] = row
			if err := next(); err != nil {
				return err
			}
		}
		return nil
	})
	return leafTree(&leaf{src: src, hints: &tableHints{indexID: -1}, rows: rows}, 0), nil
}

// sorted are the catalog's objects by id.
func (c *catalog) sorted() []object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := slices.Collect(maps.Values(c.objects))
	slices.SortFunc(list, func(a, b object) int { return int(int64(a.header().id) - int64(b.header().id)) })
	return list
}

// tables are the tables by id.
func (c *catalog) tables() []*tableDef {
	var list []*tableDef
	for _, o := range c.sorted() {
		if t, ok := o.(*tableDef); ok {
			list = append(list, t)
		}
	}
	return list
}

func (c *catalog) schemaID(name string) int32 {
	if s := c.schema(name); s != nil {
		return s.id
	}
	return 0
}

// each makes a row for every item of a list.
func eachRow[T any](list []T, f func(T) []sqltype.Value) [][]sqltype.Value {
	rows := make([][]sqltype.Value, 0, len(list))
	for _, item := range list {
		rows = append(rows, f(item))
	}
	return rows
}
