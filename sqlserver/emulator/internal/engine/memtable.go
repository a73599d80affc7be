package engine

import (
	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// memTable is a table variable or a table-valued parameter: it belongs to one
// module, has no locks, and does not roll back.
type memTable struct {
	def *tableDef
	// rows by position; a deleted row is nil.
	rows [][]sqltype.Value
	keys []*rowKeys // one for each unique index
}

func newMemTable(def *tableDef) *memTable {
	t := &memTable{def: def}
	for _, ix := range def.indexes {
		if !ix.unique {
			t.keys = append(t.keys, nil)
			continue
		}
		cols := make([]outCol, len(ix.key))
		for i, k := range ix.key {
			cols[i] = outCol{typ: def.columns[k.column].typ}
		}
		t.keys = append(t.keys, newRowKeys(cols))
	}
	return t
}

func (t *memTable) keyOf(i int, row []sqltype.Value) string {
	ix := t.def.indexes[i]
	key := make([]sqltype.Value, len(ix.key))
	for n, k := range ix.key {
		key[n] = row[k.column]
	}
	return t.keys[i].key(key)
}

func (t *memTable) insert(row []sqltype.Value) error {
	if err := t.addKeys(row); err != nil {
		return err
	}
	t.rows = append(t.rows, row)
	return nil
}

func (t *memTable) addKeys(row []sqltype.Value) error {
	for i, ix := range t.def.indexes {
		if t.keys[i] == nil {
			continue
		}
		key := t.keyOf(i, row)
		if _, ok := t.keys[i].seen[key]; ok {
			for j := range i {
				if t.keys[j] != nil {
					delete(t.keys[j].seen, t.keyOf(j, row))
				}
			}
			values := make([]sqltype.Value, len(ix.key))
			for n, k := range ix.key {
				values[n] = row[k.column]
			}
			return errDuplicate(t.def, ix, values)
		}
		t.keys[i].seen[key] = 1
	}
	return nil
}

func (t *memTable) dropKeys(row []sqltype.Value) {
	for i := range t.def.indexes {
		if t.keys[i] != nil {
			delete(t.keys[i].seen, t.keyOf(i, row))
		}
	}
}

// update and delete take the row's position, which a scan gives as its id.
func (t *memTable) update(id storage.RowID, row []sqltype.Value) error {
	old := t.rows[id]
	t.dropKeys(old)
	if err := t.addKeys(row); err != nil {
		_ = t.addKeys(old) // it was there a moment ago
		return err
	}
	t.rows[id] = row
	return nil
}

func (t *memTable) remove(id storage.RowID) {
	t.dropKeys(t.rows[id])
	t.rows[id] = nil
}

// rekeys says whether a change moves a row to another unique key.
func (t *memTable) rekeys(old, row []sqltype.Value) bool {
	for i := range t.def.indexes {
		if t.keys[i] != nil && t.keyOf(i, old) != t.keyOf(i, row) {
			return true
		}
	}
	return false
}

// restore brings back the rows of before a statement that failed.
func (t *memTable) restore(rows [][]sqltype.Value) {
	for _, row := range t.rows {
		if row != nil {
			t.dropKeys(row)
		}
	}
	t.rows = rows
	for _, row := range rows {
		if row != nil {
			_ = t.addKeys(row) // they were there together
		}
	}
}

// variableTable is FROM @t.
func (c *compiler) variableTable(ref *ast.VariableTableReference, sc *scope) (*joinTree, error) {
	src, rows, err := c.memSource(ref.Variable.Name, alias(ref.Alias))
	if err != nil {
		return nil, err
	}
	sc.sources = append(sc.sources, src)
	return leafTree(&leaf{src: src, hints: &tableHints{indexID: -1}, rows: rows}, 0), nil
}

func (c *compiler) memSource(name, as string) (*source, *memRows, error) {
	i, v, ok := c.vars.table(name)
	if !ok {
		return nil, nil, errUndeclaredTable(name)
	}
	if as == "" {
		as = name
	}
	src, err := c.newSource(as, "", v.def.outCols())
	if err != nil {
		return nil, nil, err
	}
	src.columnOf = make([]columnRef, len(src.cols))
	for n := range src.cols {
		src.columnOf[n] = columnRef{src.slot, n, true}
	}
	if c.memName == nil {
		c.memName = make(map[int]string)
	}
	c.memName[src.slot] = name
	return src, &memRows{src.slot, i}, nil
}

type memRows struct{ slot, table int }

func (m *memRows) each(e *env, next func() error) error {
	t := e.x.tables[m.table]
	// rows that the statement itself adds are not its to read
	for i, row := range t.rows[:len(t.rows):len(t.rows)] {
		if row == nil {
			continue
		}
		e.rows[m.slot], e.refs[m.slot] = row, storage.RowRef{ID: storage.RowID(i)}
		if err := next(); err != nil {
			return err
		}
	}
	return nil
}
