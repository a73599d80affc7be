package engine

import (
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var _ = register(map[string]function{
	"OBJECT_ID":              {1, 2, values(fixed(intType), objectID)},
	"OBJECT_NAME":            {1, 2, values(fixed(nvarcharType(128)), byObjectID(func(h *objectHeader) sqltype.Value { return nvarcharValue(h.name) }))},
	"OBJECT_SCHEMA_NAME":     {1, 2, values(fixed(nvarcharType(128)), byObjectID(func(h *objectHeader) sqltype.Value { return nvarcharValue(h.schema) }))},
	"SCHEMA_ID":              {0, 1, values(fixed(intType), schemaID)},
	"SCHEMA_NAME":            {0, 1, values(fixed(nvarcharType(128)), schemaName)},
	"DB_NAME":                {0, 1, values(fixed(nvarcharType(128)), dbName)},
	"DB_ID":                  {0, 1, values(fixed(smallType), dbID)},
	"HOST_NAME":              {0, 0, ofSession(func(s *session) string { return s.login.Host })},
	"APP_NAME":               {0, 0, ofSession(func(s *session) string { return s.login.App })},
	"SCOPE_IDENTITY":         {0, 0, identityOf(func(s *session) sqltype.Value { return s.scopeIdentity })},
	"IDENT_CURRENT":          {1, 1, values(fixed(sqltype.Type{Kind: sqltype.Decimal, Precision: 38}), identCurrent)},
	"XACT_STATE":             {0, 0, xactState},
	"CURRENT_TRANSACTION_ID": {0, 0, transactionID},
	"COLLATIONPROPERTY":      {2, 2, values(variant, collationProperty)},
	"SESSIONPROPERTY":        {1, 1, values(variant, sessionProperty)},
	"IS_SRVROLEMEMBER":       {1, 2, values(fixed(intType), func(*env, []sqltype.Value) (sqltype.Value, error) { return intValue(0), nil })},
	"COL_LENGTH":             {2, 2, values(fixed(smallType), colLength)},
	"COL_NAME":               {2, 2, values(fixed(nvarcharType(128)), colName)},
	"COLUMNPROPERTY":         {3, 3, values(fixed(intType), columnProperty)},
	"TYPE_NAME":              {1, 1, values(fixed(nvarcharType(128)), typeName)},
	"TYPE_ID":                {1, 1, values(fixed(intType), typeID)},
	"SQL_VARIANT_PROPERTY":   {2, 2, values(variant, variantProperty)},
	"APPLOCK_MODE":           {3, 3, func(*compiler, []*scalar) (*scalar, error) { return nil, notModelled("APPLOCK_MODE") }},
})

var variant = fixed(sqltype.Type{Kind: sqltype.SQLVariant})

// ofSession is a name that the session has; arguments are not looked at.
func ofSession(f func(s *session) string) func(*compiler, []*scalar) (*scalar, error) {
	return func(_ *compiler, args []*scalar) (*scalar, error) {
		if len(args) > 0 {
			return nil, notModelled("this function with an argument")
		}
		return &scalar{typ: nvarcharType(128), eval: func(e *env) (sqltype.Value, error) { return nvarcharValue(f(e.x.s)), nil }}, nil
	}
}

func identityOf(f func(s *session) sqltype.Value) func(*compiler, []*scalar) (*scalar, error) {
	return func(*compiler, []*scalar) (*scalar, error) {
		return &scalar{typ: sqltype.Type{Kind: sqltype.Decimal, Precision: 38}, eval: func(e *env) (sqltype.Value, error) { return f(e.x.s), nil }}, nil
	}
}

func xactState(*compiler, []*scalar) (*scalar, error) {
	return &scalar{typ: smallType, eval: func(e *env) (sqltype.Value, error) {
		return sqltype.Value{Kind: sqltype.SmallInt, N: e.x.s.xactState()}, nil
	}}, nil
}

func transactionID(*compiler, []*scalar) (*scalar, error) {
	return &scalar{typ: bigType, eval: func(e *env) (sqltype.Value, error) {
		if t := e.x.s.tran; t != nil {
			return bigValue(int64(t.id)), nil
		}
		if e.tranID == 0 { // one for the whole statement
			e.tranID = int64(e.x.s.engine.lastTransaction.Add(1))
		}
		return bigValue(e.tranID), nil
	}}, nil
}

// objectID is OBJECT_ID; its second argument is a type code of sys.objects.
func objectID(e *env, v []sqltype.Value) (sqltype.Value, error) {
	want := ""
	if len(v) > 1 {
		want = strings.ToUpper(strings.TrimSpace(v[1].S))
	}
	c := e.x.s.engine.catalog
	parts := nameParts(v[0].S)
	name := parts[len(parts)-1]
	if strings.HasPrefix(name, "#") {
		if t := e.x.s.temp.find(name); t != nil {
			return intValue(int64(t.id)), nil
		}
		return sqltype.Value{}, nil
	}
	schema := "dbo"
	if len(parts) > 1 && parts[len(parts)-2] != "" {
		schema = parts[len(parts)-2]
	}
	if len(parts) > 2 && parts[len(parts)-3] != "" && !strings.EqualFold(parts[len(parts)-3], e.x.s.engine.config.Database) {
		return sqltype.Value{}, nil
	}
	for _, o := range c.allObjects() {
		if o.code == "TT" || !strings.EqualFold(o.header.name, name) || !strings.EqualFold(o.header.schema, schema) {
			continue
		}
		if want == "" || want == strings.TrimSpace(o.code) {
			if e.x.s.hides(o.header.id) {
				return sqltype.Value{}, nil
			}
			return intValue(int64(o.header.id)), nil
		}
	}
	return sqltype.Value{}, nil
}

func byObjectID(f func(h *objectHeader) sqltype.Value) func(*env, []sqltype.Value) (sqltype.Value, error) {
	return func(e *env, v []sqltype.Value) (sqltype.Value, error) {
		for _, o := range e.x.s.engine.catalog.allObjects() {
			if int64(o.header.id) == v[0].N && !e.x.s.hides(o.header.id) {
				return f(o.header), nil
			}
		}
		return sqltype.Value{}, nil
	}
}

func schemaID(e *env, v []sqltype.Value) (sqltype.Value, error) {
	name := "dbo"
	if len(v) > 0 {
		name = v[0].S
	}
	if s := e.x.s.engine.catalog.schema(name); s != nil {
		return intValue(int64(s.id)), nil
	}
	return sqltype.Value{}, nil
}

func schemaName(e *env, v []sqltype.Value) (sqltype.Value, error) {
	if len(v) == 0 {
		return nvarcharValue("dbo"), nil
	}
	c := e.x.s.engine.catalog
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, s := range c.schemas {
		if int64(s.id) == v[0].N {
			return nvarcharValue(s.name), nil
		}
	}
	return sqltype.Value{}, nil
}

func dbName(e *env, v []sqltype.Value) (sqltype.Value, error) {
	switch {
	case len(v) == 0 || v[0].N == databaseID:
		return nvarcharValue(e.x.s.engine.config.Database), nil
	case v[0].N == 1:
		return nvarcharValue("master"), nil
	}
	return sqltype.Value{}, nil
}

func dbID(e *env, v []sqltype.Value) (sqltype.Value, error) {
	id := int64(databaseID)
	if len(v) > 0 {
		switch {
		case strings.EqualFold(v[0].S, "master"):
			id = 1
		case !strings.EqualFold(v[0].S, e.x.s.engine.config.Database):
			return sqltype.Value{}, nil
		}
	}
	return sqltype.Value{Kind: sqltype.SmallInt, N: id}, nil
}

func identCurrent(e *env, v []sqltype.Value) (sqltype.Value, error) {
	t := tableNamed(e, v[0].S)
	if t == nil || t.identity == nil {
		return sqltype.Value{}, nil
	}
	t.identity.mu.Lock()
	defer t.identity.mu.Unlock()
	n := t.identity.seed
	if t.identity.used {
		n = t.identity.next - t.identity.increment
	}
	return sqltype.Convert(bigValue(n), sqltype.Type{Kind: sqltype.Decimal, Precision: 38}, 0)
}

func tableNamed(e *env, name string) *tableDef {
	schema, base := splitName(name)
	if schema == "" {
		schema = "dbo"
	}
	if strings.HasPrefix(base, "#") {
		return e.x.s.temp.find(base)
	}
	t, _ := e.x.s.engine.catalog.find(nameOf(schema, base)).(*tableDef)
	if t != nil && e.x.s.hides(t.id) {
		return nil
	}
	return t
}

func tableByID(e *env, id int64) *tableDef {
	for _, t := range e.x.s.engine.catalog.tables() {
		if int64(t.id) == id && !e.x.s.hides(t.id) {
			return t
		}
	}
	return nil
}
