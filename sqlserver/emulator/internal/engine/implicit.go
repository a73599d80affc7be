package engine

import (
	"errors"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// implicitly says whether a value of one type may be assigned to another without
// CAST: the chart of sql-docs, "CAST and CONVERT". An explicit conversion alone is
// error 257, one that there is none of is 206. Conversions that the chart has are
// left to the values, which may fail still.
func implicitly(from, to sqltype.Type) error {
	f, t := from.Kind, to.Kind
	switch {
	case f == t || f == sqltype.Null || t == sqltype.SQLVariant:
		return nil
	case f == sqltype.SQLVariant,
		f.IsText() && t.IsBinary(),
		f == sqltype.XML && (t.IsText() || t.IsBinary()),
		isOldDate(f) && (t.IsNumeric() || t.IsBinary()),
		isNewDate(f) && t.IsBinary():
		return raiseBatch(257, 16, 3, "Implicit conversion from data type %s to %s is not allowed. Use the CONVERT function to run this query.", from.Name(), to.Name())
	case incompatible(from, to) && !(f.IsBinary() && isNewDate(t)),
		f == sqltype.Date && t == sqltype.Time,
		f == sqltype.Time && t == sqltype.Date,
		f == sqltype.XML:
		return raiseBatch(206, 16, 2, "Operand type clash: %s is incompatible with %s", from.Name(), to.Name())
	}
	return nil
}

// explicitly says whether CAST converts one type to another. A conversion that there
// is none of fails for any value.
func explicitly(from, to sqltype.Type) error {
	if from.Kind == sqltype.Null || from.Kind == sqltype.SQLVariant || from.Kind == to.Kind {
		return nil
	}
	_, err := sqltype.Convert(sqltype.Value{Kind: from.Kind, Scale: from.Scale}, to, 0)
	var conv *sqltype.Error
	if errors.As(err, &conv) && conv.Number == 529 {
		return raiseBatch(529, 16, 1, "%s", conv.Message)
	}
	return nil
}

// assignable says whether the columns of a query may go into those of a table.
func (q *query) assignable(def *tableDef, columns []int) error {
	for i, col := range q.cols {
		if col.untyped {
			continue
		}
		if err := implicitly(col.typ, def.columns[columns[i]].typ); err != nil {
			return err
		}
	}
	return nil
}

// isOldDate is what numbers convert to and, explicitly, from.
func isOldDate(k sqltype.Kind) bool { return k == sqltype.DateTime || k == sqltype.SmallDateTime }

func isNewDate(k sqltype.Kind) bool { return k.IsTemporal() && !isOldDate(k) }
