package engine

import "strings"

// need is a permission that a statement needs, found when it is compiled and
// asked for when it runs: plans are shared by users.
type need struct {
	object     *objectHeader
	permission string
	// columns are what the statement reads or writes of a table; none is the
	// table as such.
	table   *tableDef
	columns columnSet
}

func (c *compiler) need(n need) { c.needs = append(c.needs, n) }

// readNeeds are SELECT on the tables that a statement reads. Of the table that
// it changes it reads only what WHERE, SET or OUTPUT name (sql-docs, "UPDATE"
// and "DELETE", permissions).
func (c *compiler) readNeeds() {
	for _, src := range c.slots {
		t := src.table
		if t == nil || t.temp || (src.written && src.used|src.fixed == 0) {
			continue
		}
		c.need(need{&t.objectHeader, "SELECT", t, src.used | src.fixed})
	}
	for _, p := range c.pseudo {
		if p.src.used|p.src.fixed != 0 && !p.table.temp {
			c.need(need{&p.table.objectHeader, "SELECT", p.table, p.src.used | p.src.fixed})
		}
	}
}

// pseudoTable is inserted or deleted of an OUTPUT clause.
type pseudoTable struct {
	src   *source
	table *tableDef
}

// writeNeed is what changing a stored table needs.
func (c *compiler) writeNeed(t *tableDef, permission string, columns columnSet) {
	if t.temp || t.store == nil {
		return
	}
	c.need(need{&t.objectHeader, permission, t, columns})
}

// chainDefault: a sequence in the default of a column whose table has the same
// owner needs no permission (sql-docs, "NEXT VALUE FOR").
func (c *compiler) chainDefault(before int, table *objectHeader) {
	kept := c.needs[:before:before]
	for _, n := range c.needs[before:] {
		if c.engine.catalog.ownerOf(n.object) != c.engine.catalog.ownerOf(table) {
			kept = append(kept, n)
		}
	}
	c.needs = kept
}

// allowed checks what a statement needs. Within a module the owner of what it
// names must be the module's (sql-docs, "Ownership chains").
func (x *exec) allowed(needs []need) error {
	user := x.s.userID()
	if user == dboID {
		return nil
	}
	c := x.s.engine.catalog
	for _, n := range needs {
		if x.chain != nil && c.ownerOf(x.chain) == c.ownerOf(n.object) {
			continue
		}
		if err := c.meets(user, n, x.s.engine.config.Database); err != nil {
			return err
		}
	}
	return nil
}

func (c *catalog) meets(user int32, n need, db string) error {
	on := securable{classObject, n.object.id}
	if n.table == nil || len(n.table.columns) > 62 || !columnPermissions[n.permission] {
		if c.may(user, n.permission, on, 0) {
			return nil
		}
		return errPermission(n.permission, n.object, db)
	}
	any, whole := false, c.may(user, n.permission, on, 0)
	missing := ""
	for i, col := range n.table.columns {
		ok := c.may(user, n.permission, on, col.id)
		any = any || ok
		if !ok && missing == "" && n.columns&(1<<i) != 0 {
			missing = col.name
		}
	}
	switch {
	case n.columns == 0 && !whole && !any, missing != "" && !any:
		return errPermission(n.permission, n.object, db)
	case missing != "":
		return raise(230, 14, 1, "The %s permission was denied on the column '%s' of the object '%s', database '%s', schema '%s'.", n.permission, missing, n.object.name, db, n.object.schema)
	}
	return nil
}

func errPermission(permission string, h *objectHeader, db string) error {
	return raise(229, 14, 5, "The %s permission was denied on the object '%s', database '%s', schema '%s'.", permission, h.name, db, h.schema)
}

// mayOn asks for a permission on an object, without a chain of ownership.
func (x *exec) mayOn(permission string, h *objectHeader) bool {
	return x.s.engine.catalog.may(x.s.userID(), permission, securable{classObject, h.id}, 0)
}

// mayInDatabase asks for a permission on the database.
func (x *exec) mayInDatabase(permission string) bool {
	return x.s.engine.catalog.may(x.s.userID(), permission, database, 0)
}

// mayInSchema asks for a permission on a schema.
func (x *exec) mayInSchema(permission, name string) bool {
	s := x.s.engine.catalog.schema(name)
	return s != nil && x.s.engine.catalog.may(x.s.userID(), permission, securable{classSchema, s.id}, 0)
}

// mayCreate refuses CREATE of an object: 262 for the statement, 2760 for the
// schema.
func (x *exec) mayCreate(statement, owner string) error {
	if x.s.userID() == dboID {
		return nil
	}
	schemaPermission := "ALTER"
	switch statement {
	case "CREATE SEQUENCE":
		schemaPermission = statement
	default:
		if !x.mayInDatabase(statement) {
			return raise(262, 14, 1, "%s permission denied in database '%s'.", statement, x.s.engine.config.Database)
		}
	}
	if !x.mayInSchema(schemaPermission, owner) {
		return raise(2760, 16, 1, "The specified schema name \"%s\" either does not exist or you do not have permission to use it.", owner)
	}
	return nil
}

// mayDrop: ALTER on the schema or CONTROL on the object.
func (x *exec) mayDrop(h *objectHeader) bool {
	return x.mayInSchema("ALTER", h.schema) || x.mayOn("CONTROL", h)
}

// userNamed is the id of the user or role of that name, or -1.
func (c *catalog) userNamed(name string) int32 {
	if p := c.security.Load().named(strings.TrimSpace(name)); p != nil {
		return p.id
	}
	return -1
}
