package engine

import (
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var _ = register(map[string]function{
	"INDEXPROPERTY":     {3, 3, values(fixed(intType), indexProperty)},
	"INDEXKEY_PROPERTY": {4, 4, values(fixed(intType), indexKeyProperty)},
	"INDEX_COL":         {3, 3, values(fixed(nvarcharType(128)), indexColumnName)},
	"STATS_DATE": {2, 2, values(fixed(datetimeType), func(*env, []sqltype.Value) (sqltype.Value, error) {
		return sqltype.Value{}, nil // no statistics are ever made
	})},
})

func indexProperty(e *env, v []sqltype.Value) (sqltype.Value, error) {
	t := tableByID(e, v[0].N)
	if t == nil {
		return sqltype.Value{}, nil
	}
	ix := t.index(v[1].S)
	if ix == nil {
		return sqltype.Value{}, nil
	}
	switch strings.ToLower(v[2].S) {
	case "indexid":
		return intValue(int64(ix.id)), nil
	case "isunique":
		return flag(ix.unique), nil
	case "isclustered":
		return flag(ix.clustered), nil
	case "isdisabled":
		return flag(ix.disabled), nil
	case "indexfillfactor":
		return intValue(int64(ix.fillFactor)), nil
	case "ispadindex":
		return flag(ix.padIndex), nil
	case "ispagelockdisallowed":
		return flag(ix.noPageLocks), nil
	case "isoptimizedforsequentialkey":
		return flag(ix.sequential), nil
	case "ishypothetical", "isfulltextkey", "isstatistics", "isautostatistics", "isrowlockdisallowed", "iscolumnstore":
		return intValue(0), nil
	}
	return sqltype.Value{}, nil // IndexDepth too: there is no tree of pages
}

// keyColumn is a key column of an index by their ids; nil is none.
func (t *tableDef) keyColumn(index, key int64) *indexColumn {
	for _, ix := range t.indexes {
		if int64(ix.id) == index && key >= 1 && key <= int64(len(ix.key)) {
			return &ix.key[key-1]
		}
	}
	return nil
}

func indexKeyProperty(e *env, v []sqltype.Value) (sqltype.Value, error) {
	t := tableByID(e, v[0].N)
	if t == nil {
		return sqltype.Value{}, nil
	}
	k := t.keyColumn(v[1].N, v[2].N)
	if k == nil {
		return sqltype.Value{}, nil
	}
	switch strings.ToLower(v[3].S) {
	case "columnid":
		return intValue(int64(t.columns[k.column].id)), nil
	case "isdescending":
		return flag(k.desc), nil
	}
	return sqltype.Value{}, nil
}

func indexColumnName(e *env, v []sqltype.Value) (sqltype.Value, error) {
	t := tableNamed(e, v[0].S)
	if t == nil {
		return sqltype.Value{}, nil
	}
	if k := t.keyColumn(v[1].N, v[2].N); k != nil {
		return nvarcharValue(t.columns[k.column].name), nil
	}
	return sqltype.Value{}, nil
}
