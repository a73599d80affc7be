package engine

import "azsqloutbox/sqlserver/emulator/internal/sqltype"

// An index whose declared key is longer than these can be made, and then a row with
// a longer one is refused (sql-docs, "Maximum capacity specifications for SQL
// Server"). CREATE INDEX over rows that have one already is not looked at.
const (
	maxClusteredKey    = 900
	maxNonclusteredKey = 1700
)

// wideKey is an index whose key may be too long.
type wideKey struct {
	index *indexDef
	holds func(row []sqltype.Value) bool // nil for every row
}

func (ix *indexDef) maxKey() (bytes int64, kind string) {
	if ix.clustered {
		return maxClusteredKey, "clustered"
	}
	return maxNonclusteredKey, "nonclustered"
}

// wideKeys are the indexes of a table to look at.
func (e *Engine) wideKeys(def *tableDef) (list []wideKey, err error) {
	for _, ix := range def.indexes {
		declared := int64(0)
		for _, k := range ix.key {
			declared += maxLength(def.columns[k.column].typ)
		}
		if limit, _ := ix.maxKey(); declared <= limit || ix.disabled {
			continue
		}
		spec, err := e.indexSpec(def, ix)
		if err != nil {
			return nil, err
		}
		list = append(list, wideKey{ix, spec.Filter})
	}
	return list, nil
}

func (t *target) checkKeys(row []sqltype.Value) error {
	for _, w := range t.wide {
		if w.holds != nil && !w.holds(row) {
			continue
		}
		length := int64(0)
		for _, k := range w.index.key {
			if v := row[k.column]; !v.IsNull() {
				length += sqltype.DataLength(v, t.def.columns[k.column].typ)
			}
		}
		if limit, kind := w.index.maxKey(); length > limit {
			return raiseTerminated(1946, 16, 3, "Operation failed. The index entry of length %d bytes for the index '%s' exceeds the maximum length of %d bytes for %s indexes.", length, w.index.name, limit, kind)
		}
	}
	return nil
}
