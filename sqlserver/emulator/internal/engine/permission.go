package engine

import "slices"

// Which permissions there are, and which ones imply others (sql-docs,
// "Permissions (Database Engine)"). The engine enforces what its statements
// need; the others can be granted and shown.

// objectPermissions are those of tables, procedures and sequences.
var objectPermissions = map[string][]string{
	"U ": {"SELECT", "UPDATE", "REFERENCES", "INSERT", "DELETE", "VIEW CHANGE TRACKING", "VIEW DEFINITION", "ALTER", "TAKE OWNERSHIP", "CONTROL"},
	"P ": {"EXECUTE", "VIEW DEFINITION", "ALTER", "TAKE OWNERSHIP", "CONTROL"},
	"SO": {"UPDATE", "REFERENCES", "VIEW DEFINITION", "ALTER", "TAKE OWNERSHIP", "CONTROL"},
}

// columnPermissions may name columns.
var columnPermissions = map[string]bool{"SELECT": true, "UPDATE": true, "REFERENCES": true}

var schemaPermissions = []string{
	"SELECT", "INSERT", "UPDATE", "DELETE", "REFERENCES", "EXECUTE", "CREATE SEQUENCE", "VIEW CHANGE TRACKING", "VIEW DEFINITION", "ALTER", "TAKE OWNERSHIP", "CONTROL",
}

var principalPermissions = []string{"IMPERSONATE", "VIEW DEFINITION", "ALTER", "CONTROL", "TAKE OWNERSHIP"}

var databasePermissions = []string{
	"CREATE TABLE", "CREATE VIEW", "CREATE PROCEDURE", "CREATE FUNCTION", "CREATE RULE", "CREATE DEFAULT", "CREATE TYPE", "CREATE ASSEMBLY",
	"CREATE XML SCHEMA COLLECTION", "CREATE SCHEMA", "CREATE SYNONYM", "CREATE AGGREGATE", "CREATE ROLE", "CREATE USER", "CREATE MESSAGE TYPE", "CREATE SERVICE",
	"CREATE CONTRACT", "CREATE REMOTE SERVICE BINDING", "CREATE ROUTE", "CREATE QUEUE", "CREATE SYMMETRIC KEY", "CREATE ASYMMETRIC KEY", "CREATE FULLTEXT CATALOG",
	"CREATE CERTIFICATE", "CREATE DATABASE DDL EVENT NOTIFICATION", "CONNECT", "CONNECT REPLICATION", "CHECKPOINT", "SUBSCRIBE QUERY NOTIFICATIONS", "AUTHENTICATE",
	"SHOWPLAN", "ALTER ANY USER", "ALTER ANY ROLE", "ALTER ANY APPLICATION ROLE", "ALTER ANY COLUMN ENCRYPTION KEY", "ALTER ANY COLUMN MASTER KEY", "ALTER ANY SCHEMA",
	"ALTER ANY ASSEMBLY", "ALTER ANY DATABASE AUDIT", "ALTER ANY DATABASE DDL TRIGGER", "ALTER ANY DATABASE EVENT NOTIFICATION", "ALTER ANY DATABASE EVENT SESSION",
	"ALTER ANY DATABASE SCOPED CONFIGURATION", "ALTER ANY DATASPACE", "ALTER ANY EXTERNAL DATA SOURCE", "ALTER ANY EXTERNAL FILE FORMAT", "ALTER ANY MASK",
	"ALTER ANY SECURITY POLICY", "ALTER ANY SENSITIVITY CLASSIFICATION", "ALTER ANY FULLTEXT CATALOG", "ALTER ANY CERTIFICATE", "ALTER ANY ASYMMETRIC KEY",
	"ALTER ANY SYMMETRIC KEY", "SELECT", "INSERT", "UPDATE", "DELETE", "REFERENCES", "EXECUTE", "ALTER", "UNMASK", "KILL DATABASE CONNECTION",
	"ADMINISTER DATABASE BULK OPERATIONS", "VIEW ANY COLUMN ENCRYPTION KEY DEFINITION", "VIEW ANY COLUMN MASTER KEY DEFINITION", "VIEW ANY SENSITIVITY CLASSIFICATION",
	"VIEW DATABASE STATE", "VIEW DATABASE PERFORMANCE STATE", "VIEW DATABASE SECURITY STATE", "VIEW DEFINITION", "VIEW SECURITY DEFINITION",
	"VIEW PERFORMANCE DEFINITION", "TAKE OWNERSHIP", "CONTROL", "BACKUP DATABASE", "BACKUP LOG",
}

// permissionsOf are the names that a kind of securable has.
func permissionsOf(on securable, o object) []string {
	switch on.class {
	case classSchema:
		return schemaPermissions
	case classPrincipal:
		return principalPermissions
	case classDatabase:
		return databasePermissions
	}
	code, _ := objectKind(o)
	return objectPermissions[code]
}

// implies are the grants that any one of gives a permission: on the securable
// itself, its schema, the database.
func (c *catalog) implies(permission string, on securable) []grantKey {
	keys := []grantKey{{on, permission}, {on, "CONTROL"}}
	switch on.class {
	case classObject:
		if s := c.schemaOf(on.id); s != nil {
			keys = append(keys, c.implies(permission, securable{classSchema, s.id})...)
		}
		if permission == "VIEW DEFINITION" {
			keys = append(keys, grantKey{on, "ALTER"})
		}
	case classSchema:
		up := permission
		switch permission {
		case "CREATE SEQUENCE":
			keys = append(keys, grantKey{on, "ALTER"})
			up = "ALTER ANY SCHEMA"
		case "ALTER":
			up = "ALTER ANY SCHEMA"
		}
		keys = append(keys, c.implies(up, database)...)
	case classPrincipal:
		keys = append(keys, grantKey{database, "CONTROL"})
	case classDatabase:
		switch {
		case permission == "VIEW DATABASE PERFORMANCE STATE", permission == "VIEW DATABASE SECURITY STATE":
			keys = append(keys, grantKey{database, "VIEW DATABASE STATE"})
		case permission == "VIEW SECURITY DEFINITION", permission == "VIEW PERFORMANCE DEFINITION":
			keys = append(keys, grantKey{database, "VIEW DEFINITION"})
		case permission == "CREATE ROLE", permission == "CREATE USER", permission == "CREATE SCHEMA":
			keys = append(keys, grantKey{database, "ALTER ANY " + permission[len("CREATE "):]}, grantKey{database, "ALTER"})
		case len(permission) > 7 && (permission[:7] == "CREATE " || permission[:6] == "ALTER "):
			keys = append(keys, grantKey{database, "ALTER"})
		}
	}
	return keys
}

type grantKey struct {
	securable
	permission string
}

// fixedRoles are what the fixed roles may and must not (sql-docs,
// "Database-level roles"). db_owner has CONTROL.
var fixedRoles = map[int32][]string{
	dbOwnerID:         {"CONTROL"},
	dbAccessAdminID:   {"ALTER ANY USER", "CREATE SCHEMA", "CONNECT"},
	dbSecurityAdminID: {"ALTER ANY APPLICATION ROLE", "ALTER ANY ROLE", "CREATE SCHEMA", "VIEW DEFINITION"},
	dbDDLAdminID: {
		"ALTER ANY SCHEMA", "ALTER ANY DATASPACE", "CREATE TABLE", "CREATE PROCEDURE", "CREATE SCHEMA", "CREATE TYPE", "CREATE VIEW", "CREATE FUNCTION",
		"CREATE SYNONYM", "REFERENCES", "VIEW DEFINITION",
	},
	dbDataReaderID: {"SELECT"},
	dbDataWriterID: {"INSERT", "UPDATE", "DELETE"},
}

var fixedDenials = map[int32][]string{dbDenyReaderID: {"SELECT"}, dbDenyWriterID: {"INSERT", "UPDATE", "DELETE"}}

// may says whether a principal has a permission on a securable, or, with a
// column, on that column of it. DENY wins, save over dbo and owners.
func (c *catalog) may(user int32, permission string, on securable, column int) bool {
	if user == dboID {
		return true
	}
	s := c.security.Load()
	groups := s.groups(user)
	if c.owns(groups, on) {
		return true
	}
	keys := c.implies(permission, on)
	holds := func(g *grant, key grantKey, column int) bool {
		return groups[g.grantee] && g.securable == key.securable && g.permission == key.permission && g.column == column
	}
	if column != 0 {
		for i := range s.grants {
			if g := &s.grants[i]; holds(g, keys[0], column) {
				return g.state != denied // a column's own entry decides
			}
		}
	}
	given := false
	for _, key := range keys {
		for i := range s.grants {
			if g := &s.grants[i]; holds(g, key, 0) {
				if g.state == denied {
					return false
				}
				given = true
			}
		}
		if key.class != classDatabase {
			continue
		}
		for role := range groups {
			if slices.Contains(fixedDenials[role], key.permission) {
				return false
			}
			given = given || slices.Contains(fixedRoles[role], key.permission)
		}
	}
	return given
}

// owns: the owner of a schema has CONTROL over what is in it.
func (c *catalog) owns(groups map[int32]bool, on securable) bool {
	switch on.class {
	case classObject:
		if s := c.schemaOf(on.id); s != nil {
			return groups[s.owner]
		}
	case classSchema:
		if s := c.schemaByID(on.id); s != nil {
			return groups[s.owner]
		}
	}
	return false
}

// sees says whether a principal sees an object in the catalog: with any
// permission on it or on a column of it, unless VIEW DEFINITION is denied
// (sql-docs, "Metadata visibility configuration").
func (c *catalog) sees(user int32, o object) bool {
	if user == dboID {
		return true
	}
	if tr, ok := o.(*trigger); ok {
		t := c.find(tr.parent)
		return t != nil && c.may(user, "ALTER", securable{classObject, t.header().id}, 0)
	}
	if _, ok := o.(*tableTypeDef); ok {
		return true // types are not modelled as securables
	}
	on := securable{classObject, o.header().id}
	for _, p := range permissionsOf(on, o) {
		if c.may(user, p, on, 0) {
			return true
		}
	}
	s := c.security.Load()
	groups := s.groups(user)
	return slices.ContainsFunc(s.grants, func(g grant) bool {
		return groups[g.grantee] && g.securable == on && g.column != 0 && g.state != denied
	})
}

// schemaOf is an object's schema by the object's id.
func (c *catalog) schemaOf(id int32) *schema {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for n, o := range c.objects {
		if o.header().id == id {
			return c.schemas[n.schema]
		}
	}
	return nil
}

func (c *catalog) schemaByID(id int32) *schema {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, s := range c.schemas {
		if s.id == id {
			return s
		}
	}
	return nil
}

// ownerOf is the principal that owns an object: its schema's owner.
func (c *catalog) ownerOf(h *objectHeader) int32 {
	if s := c.schema(h.schema); s != nil {
		return s.owner
	}
	return dboID
}
