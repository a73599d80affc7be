package engine

import (
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

func collationProperty(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	c, ok := sqltype.LookupCollation(v[0].S)
	if !ok {
		return sqltype.Value{}, nil
	}
	switch strings.ToLower(v[1].S) {
	case "codepage":
		return intValue(int64(c.CodePage)), nil
	case "lcid":
		return intValue(int64(c.LCID)), nil
	case "comparisonstyle":
		return intValue(comparisonStyle(c)), nil
	case "version":
		return intValue(int64(c.Version)), nil
	}
	return sqltype.Value{}, nil
}

// comparisonStyle is ComparisonStyle of a collation: ignore case (1), accents (2),
// kana (65536) and width (131072).
func comparisonStyle(c *sqltype.Collation) int64 {
	if c.Binary {
		return 0
	}
	style := int64(196609)
	if c.CaseSensitive {
		style &^= 1
	}
	if !c.AccentSensitive {
		style |= 2
	}
	return style
}

func sessionProperty(e *env, v []sqltype.Value) (sqltype.Value, error) {
	s := &e.x.s.set
	on := map[string]bool{
		"ANSI_NULLS": s.ansiNulls, "ANSI_PADDING": s.ansiPadding, "ANSI_WARNINGS": s.ansiWarnings, "ARITHABORT": s.arithAbort,
		"CONCAT_NULL_YIELDS_NULL": s.concatNull, "NUMERIC_ROUNDABORT": s.numericRoundAbort, "QUOTED_IDENTIFIER": s.quotedIdentifier,
	}
	value, known := on[strings.ToUpper(v[0].S)]
	if !known {
		return sqltype.Value{}, nil
	}
	return flag(value), nil
}

func flag(on bool) sqltype.Value {
	if on {
		return intValue(1)
	}
	return intValue(0)
}

func colLength(e *env, v []sqltype.Value) (sqltype.Value, error) {
	t := tableNamed(e, v[0].S)
	if t == nil {
		return sqltype.Value{}, nil
	}
	i := t.column(strings.Trim(v[1].S, "[]"))
	if i < 0 {
		return sqltype.Value{}, nil
	}
	return sqltype.Value{Kind: sqltype.SmallInt, N: maxLength(t.columns[i].typ)}, nil
}

func colName(e *env, v []sqltype.Value) (sqltype.Value, error) {
	if t := tableByID(e, v[0].N); t != nil {
		if name := t.columnByID(int(v[1].N)); name != "" {
			return nvarcharValue(name), nil
		}
	}
	return sqltype.Value{}, nil
}

func columnProperty(e *env, v []sqltype.Value) (sqltype.Value, error) {
	t := tableByID(e, v[0].N)
	if t == nil {
		return sqltype.Value{}, nil
	}
	i := t.column(v[1].S)
	if i < 0 {
		return sqltype.Value{}, nil
	}
	c := t.columns[i]
	switch strings.ToLower(v[2].S) {
	case "allowsnull":
		return flag(c.nullable), nil
	case "isidentity":
		return flag(c.identity), nil
	case "isrowguidcol":
		return flag(c.rowGUID), nil
	case "usesansitrim":
		if !isLong(c.typ) {
			return sqltype.Value{}, nil
		}
		return intValue(1), nil
	case "iscomputed", "issparse", "ishidden", "iscolumnset", "isfulltextindexed", "isidnotforrepl", "isoutparam", "generatedalwaystype":
		return intValue(0), nil
	case "columnid":
		return intValue(int64(c.id)), nil
	case "precision":
		if isLong(c.typ) {
			return intValue(int64(c.typ.Length)), nil
		}
		return intValue(int64(typePrecision(c.typ))), nil
	case "scale":
		return intValue(int64(typeScale(c.typ))), nil
	case "charmaxlen":
		if !isLong(c.typ) {
			return sqltype.Value{}, nil
		}
		return intValue(int64(c.typ.Length)), nil
	}
	return sqltype.Value{}, nil
}

func typeName(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	switch v[0].N {
	case 108:
		return nvarcharValue("numeric"), nil
	case 256:
		return nvarcharValue("sysname"), nil
	}
	for k, id := range systemTypeIDs {
		if int64(id) == v[0].N {
			return nvarcharValue(k.String()), nil
		}
	}
	return sqltype.Value{}, nil
}

func typeID(e *env, v []sqltype.Value) (sqltype.Value, error) {
	schema, name := splitName(v[0].S)
	if schema == "" {
		schema = "dbo"
	}
	if t, ok := e.x.s.engine.catalog.find(nameOf(schema, name)).(*tableTypeDef); ok {
		return intValue(int64(t.id)), nil
	}
	if k, ok := typeNames[strings.ToLower(name)]; ok {
		return intValue(int64(systemTypeIDs[k])), nil
	}
	return sqltype.Value{}, nil
}

func variantProperty(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	if strings.EqualFold(v[1].S, "BaseType") {
		return nvarcharValue(v[0].Kind.String()), nil
	}
	return sqltype.Value{}, nil
}
