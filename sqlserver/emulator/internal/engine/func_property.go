package engine

import (
	"slices"
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// serverProperty is SERVERPROPERTY.
func serverProperty(e *env, v []sqltype.Value) (sqltype.Value, error) {
	facts := e.x.s.engine.edition()
	switch strings.ToLower(v[0].S) {
	case "productversion":
		return nvarcharValue(facts.version), nil
	case "productlevel":
		return nvarcharValue("RTM"), nil
	case "productmajorversion":
		return nvarcharValue(facts.major), nil
	case "edition":
		return nvarcharValue(facts.edition), nil
	case "engineedition":
		return intValue(facts.engineEdition), nil
	case "servername", "machinename":
		return nvarcharValue(e.x.s.engine.config.Server), nil
	case "collation":
		return nvarcharValue(e.x.s.engine.database.collation.Name), nil
	}
	return sqltype.Value{}, nil
}

func databaseProperty(e *env, v []sqltype.Value) (sqltype.Value, error) {
	d, objective := e.x.s.engine.database, e.x.s.engine.config.ServiceObjective
	if !strings.EqualFold(v[0].S, e.x.s.engine.config.Database) {
		return sqltype.Value{}, nil
	}
	switch strings.ToLower(v[1].S) {
	case "collation":
		return nvarcharValue(d.collation.Name), nil
	case "status":
		return nvarcharValue("ONLINE"), nil
	case "updateability":
		if d.readOnly.Load() {
			return nvarcharValue("READ_ONLY"), nil
		}
		return nvarcharValue("READ_WRITE"), nil
	case "edition":
		if objective == "" {
			return sqltype.Value{}, nil
		}
		return nvarcharValue(serviceTier(objective)), nil
	case "serviceobjective":
		if objective == "" {
			return sqltype.Value{}, nil
		}
		return nvarcharValue(objective), nil
	case "recovery":
		return nvarcharValue("FULL"), nil
	case "useraccess":
		return nvarcharValue("MULTI_USER"), nil
	case "isansinullsenabled", "isquotedidentifiersenabled":
		return intValue(0), nil
	}
	return sqltype.Value{}, nil
}

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
		style := int64(196609) // ignore case, kana and width
		if c.Binary {
			style = 0
		} else {
			if c.CaseSensitive {
				style &^= 1
			}
			if !c.AccentSensitive {
				style |= 2
			}
		}
		return intValue(style), nil
	case "version":
		return intValue(int64(c.Version)), nil
	}
	return sqltype.Value{}, nil
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
	case "iscomputed", "issparse", "ishidden":
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
	case "isoptimizedforsequentialkey":
		return flag(ix.sequential), nil
	case "ishypothetical", "isfulltextkey":
		return intValue(0), nil
	}
	return sqltype.Value{}, nil
}

func objectProperty(e *env, v []sqltype.Value) (sqltype.Value, error) {
	for _, o := range e.x.s.engine.catalog.allObjects() {
		if int64(o.header.id) != v[0].N {
			continue
		}
		switch strings.ToLower(v[1].S) {
		case "istable", "isusertable":
			return flag(o.code == "U "), nil
		case "isprocedure":
			return flag(o.code == "P "), nil
		case "tablehasidentity":
			t := tableByID(e, v[0].N)
			return flag(t != nil && t.identity != nil), nil
		case "tablehasclustindex":
			t := tableByID(e, v[0].N)
			return flag(t != nil && t.clustered() != nil), nil
		case "tablehasprimarykey":
			t := tableByID(e, v[0].N)
			return flag(t != nil && slices.ContainsFunc(t.indexes, func(ix *indexDef) bool { return ix.constraint == "PK" })), nil
		}
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
