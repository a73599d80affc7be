package engine

import (
	"slices"
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var _ = register(map[string]function{
	"SUSER_SNAME":           {0, 1, ofSession((*session).loginName)},
	"SUSER_NAME":            {0, 1, ofSession((*session).loginName)},
	"ORIGINAL_LOGIN":        {0, 0, ofSession(func(s *session) string { return s.login.User })},
	"USER_NAME":             {0, 1, userNameOf},
	"USER_ID":               {0, 1, values(fixed(intType), principalIDOf)},
	"DATABASE_PRINCIPAL_ID": {0, 1, values(fixed(intType), principalIDOf)},
	"HAS_PERMS_BY_NAME":     {3, 5, hasPermissions},
	"IS_MEMBER":             {1, 1, values(fixed(intType), isMember)},
	"IS_ROLEMEMBER":         {1, 2, values(fixed(intType), isRoleMember)},
})

// userNameOf is USER_NAME, of the session or of an id.
func userNameOf(c *compiler, args []*scalar) (*scalar, error) {
	if len(args) == 0 {
		return ofSession((*session).userName)(c, args)
	}
	return values(fixed(nvarcharType(128)), func(e *env, v []sqltype.Value) (sqltype.Value, error) {
		if p := e.x.s.engine.catalog.security.Load().principals[int32(v[0].N)]; p != nil {
			return nvarcharValue(p.name), nil
		}
		return sqltype.Value{}, nil
	})(c, args)
}

func principalIDOf(e *env, v []sqltype.Value) (sqltype.Value, error) {
	if len(v) == 0 {
		return intValue(int64(e.x.s.userID())), nil
	}
	if id := e.x.s.engine.catalog.userNamed(v[0].S); id >= 0 {
		return intValue(int64(id)), nil
	}
	return sqltype.Value{}, nil
}

func isMember(e *env, v []sqltype.Value) (sqltype.Value, error) {
	return e.x.s.memberOf(v[0].S, e.x.s.userID()), nil
}

func isRoleMember(e *env, v []sqltype.Value) (sqltype.Value, error) {
	id := e.x.s.userID()
	if len(v) > 1 {
		if id = e.x.s.engine.catalog.userNamed(v[1].S); id < 0 {
			return sqltype.Value{}, nil
		}
	}
	return e.x.s.memberOf(v[0].S, id), nil
}

// memberOf is NULL where there is no such role.
func (s *session) memberOf(role string, id int32) sqltype.Value {
	sec := s.engine.catalog.security.Load()
	p := sec.named(role)
	if p == nil || !p.role {
		return sqltype.Value{}
	}
	if sec.groups(id)[p.id] {
		return intValue(1)
	}
	return intValue(0)
}

// hasPermissions is HAS_PERMS_BY_NAME: effective permissions, NULL for what is
// not there.
func hasPermissions(_ *compiler, args []*scalar) (*scalar, error) {
	s := derive(intType, func(e *env) (sqltype.Value, error) {
		texts := make([]string, 5)
		for i, a := range args {
			v, err := a.eval(e)
			if err != nil {
				return v, err
			}
			texts[i] = sqltype.Format(v)
			if v.IsNull() {
				texts[i] = ""
			}
		}
		return e.x.s.hasPermission(texts[0], texts[1], strings.ToUpper(strings.TrimSpace(texts[2])), texts[3], texts[4])
	}, args...)
	s.constant = false
	return s, nil
}

func (s *session) hasPermission(name, class, permission, column, columnClass string) (sqltype.Value, error) {
	if permission == "" {
		return sqltype.Value{}, nil
	}
	if class == "" || strings.EqualFold(class, "SERVER") {
		return flag(s.userID() == dboID), nil // the login is the server's administrator
	}
	on, o, ok := s.named(name, class)
	if !ok {
		return sqltype.Value{}, nil
	}
	known := permissionsOf(on, o)
	if permission == "ANY" {
		return flag(slices.ContainsFunc(known, func(p string) bool { return s.engine.catalog.may(s.userID(), p, on, 0) })), nil
	}
	if !slices.Contains(known, permission) {
		return sqltype.Value{}, nil
	}
	id := 0
	if column != "" {
		t, isTable := o.(*tableDef)
		if !isTable || !strings.EqualFold(columnClass, "COLUMN") || !columnPermissions[permission] || t.column(column) < 0 {
			return sqltype.Value{}, nil
		}
		id = t.columns[t.column(column)].id
	}
	return flag(s.engine.catalog.may(s.userID(), permission, on, id)), nil
}

// named finds a securable by name and class. What the user does not see is not
// there.
func (s *session) named(name, class string) (securable, object, bool) {
	c := s.engine.catalog
	switch strings.ToUpper(class) {
	case "DATABASE":
		db := nameParts(name)
		return database, nil, name == "" || strings.EqualFold(db[len(db)-1], s.engine.config.Database)
	case "SCHEMA":
		parts := nameParts(name)
		if sch := c.schema(parts[len(parts)-1]); sch != nil {
			return securable{classSchema, sch.id}, nil, true
		}
	case "OBJECT":
		schema, base := splitName(name)
		if schema == "" {
			schema = "dbo"
		}
		o := c.find(nameOf(schema, base))
		switch o.(type) {
		case *tableDef, *procedure, *sequence:
			return securable{classObject, o.header().id}, o, c.sees(s.userID(), o)
		}
	case "USER":
		if id := c.userNamed(name); id >= 0 {
			return securable{classPrincipal, id}, nil, true
		}
	}
	return securable{}, nil, false
}

// myPermissions are the rows of fn_my_permissions.
func (s *session) myPermissions(args []sqltype.Value) ([][]sqltype.Value, error) {
	name, class := "", "OBJECT"
	if !args[0].IsNull() {
		name = args[0].S
	}
	if !args[1].IsNull() {
		class = args[1].S
	}
	if strings.EqualFold(class, "SERVER") {
		return nil, notModelled("fn_my_permissions of the server")
	}
	on, o, ok := s.named(name, class)
	if !ok {
		return nil, nil
	}
	entity := name
	if on == database {
		entity = "database"
	}
	var rows [][]sqltype.Value
	add := func(column, permission string) {
		rows = append(rows, catalogRow(myPermissionCols, entity, column, permission))
	}
	for _, p := range permissionsOf(on, o) {
		if s.engine.catalog.may(s.userID(), p, on, 0) {
			add("", p)
		}
		t, isTable := o.(*tableDef)
		if !isTable || !columnPermissions[p] {
			continue
		}
		for _, col := range t.columns {
			if s.engine.catalog.may(s.userID(), p, on, col.id) {
				add(col.name, p)
			}
		}
	}
	return rows, nil
}

var myPermissionCols = []outCol{vName("entity_name"), vName("subentity_name"), {name: "permission_name", typ: nvarcharType(60), nullable: true}}

func init() {
	registerServerFunctions(map[string]serverFunction{
		"fn_my_permissions": {[]string{"securable", "securable_class"}, myPermissionCols, (*session).myPermissions},
	})
	rowFunctions["FN_MY_PERMISSIONS"] = rowFunctions["SYS.FN_MY_PERMISSIONS"] // it needs no schema
}
