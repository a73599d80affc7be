package engine

import (
	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// What an index's key may hold, in bytes. A longer declared key is a warning and
// the long rows are refused, when they are written and when the index is built over
// them; a key whose columns of fixed length are longer is refused (sql-docs, "Maximum
// capacity specifications for SQL Server"; messages 1944 to 1946).
const (
	maxClusteredKey    = 900
	maxNonclusteredKey = 1700
)

func (ix *indexDef) maxKey() (bytes int64, kind string) {
	if ix.clustered {
		return maxClusteredKey, "clustered"
	}
	return maxNonclusteredKey, "nonclustered"
}

// keyLengths are the least and the most bytes that a key can have.
func (ix *indexDef) keyLengths(def *tableDef) (least, most int64) {
	for _, k := range ix.key {
		t := def.columns[k.column].typ
		n := maxLength(t)
		most += n
		if !isLong(t) || t.Kind == sqltype.Char || t.Kind == sqltype.NChar || t.Kind == sqltype.Binary {
			least += n
		}
	}
	return least, most
}

// declareKey refuses a new index whose key is always too long, and warns of one
// that may be.
func (x *exec) declareKey(def *tableDef, ix *indexDef) error {
	limit, kind := ix.maxKey()
	least, most := ix.keyLengths(def)
	switch {
	case least > limit:
		return raise(1944, 16, 1, "Index '%s' was not created. This index has a key length of at least %d bytes. The maximum permissible key length is %d bytes.", ix.name, least, limit)
	case most > limit:
		warning := raise(1945, 0, 1, "Warning! The maximum key length for a %s index is %d bytes. The index '%s' has maximum length of %d bytes. For some combination of large values, the insert/update operation will fail.", kind, limit, ix.name, most)
		return x.w.Info(warning.wire(x.s))
	}
	return nil
}

// fits is what refuses a row whose key in an index is too long; nil where none can
// be.
func (ix *indexDef) fits(def *tableDef) func(row []sqltype.Value) error {
	limit, kind := ix.maxKey()
	if _, most := ix.keyLengths(def); most <= limit {
		return nil
	}
	return func(row []sqltype.Value) error {
		length := int64(0)
		for _, k := range ix.key {
			if v := row[k.column]; !v.IsNull() {
				length += sqltype.DataLength(v, def.columns[k.column].typ)
			}
		}
		if length <= limit {
			return nil
		}
		return raiseTerminated(1946, 16, 3, "Operation failed. The index entry of length %d bytes for the index '%s' exceeds the maximum length of %d bytes for %s indexes.", length, ix.name, limit, kind)
	}
}

// keysFit are the tests that a row to be written must pass.
func (e *Engine) keysFit(def *tableDef) (list []func(row []sqltype.Value) error, err error) {
	for _, ix := range def.indexes {
		if ix.disabled {
			continue
		}
		spec, err := e.indexSpec(def, ix)
		if err != nil {
			return nil, err
		}
		if spec.Fits == nil {
			continue
		}
		list = append(list, func(row []sqltype.Value) error {
			if spec.Filter != nil && !spec.Filter(row) {
				return nil
			}
			return spec.Fits(row)
		})
	}
	return list, nil
}
