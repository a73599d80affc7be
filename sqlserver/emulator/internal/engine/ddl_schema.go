package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

func (x *exec) createSchema(sc *statementScope, st *ast.CreateSchemaStatement) error {
	if st.Name == nil || len(statements(st.StatementList)) > 0 {
		return notModelled("CREATE SCHEMA with objects")
	}
	c := x.s.engine.catalog
	name := st.Name.Value
	owner := x.s.userID()
	if err := x.claimName(sc, "", name); err != nil {
		return err
	}
	if !x.mayInDatabase("CREATE SCHEMA") {
		denied := raise(2759, 16, 0, "CREATE SCHEMA failed due to previous errors.")
		denied.before = raise(262, 14, 1, "CREATE SCHEMA permission denied in database '%s'.", x.s.engine.config.Database)
		return denied
	}
	if st.Owner != nil {
		if owner = c.userNamed(st.Owner.Value); owner < 0 || (owner != x.s.userID() && x.s.userID() != dboID) {
			return raise(15151, 16, 1, "Cannot find the user '%s', because it does not exist or you do not have permission.", st.Owner.Value)
		}
	}
	return c.change(sc.undo, func() (func(), error) {
		key := strings.ToLower(name)
		if _, ok := c.schemas[key]; ok {
			return nil, errExists(name)
		}
		id := int32(5)
		for _, s := range c.schemas {
			if s.id >= id && s.id < 16384 {
				id = s.id + 1
			}
		}
		c.schemas[key] = &schema{id, name, owner}
		return func() { delete(c.schemas, key) }, nil
	})
}

func (x *exec) dropSchema(sc *statementScope, st *ast.DropSchemaStatement) error {
	c := x.s.engine.catalog
	name := st.Schema.BaseIdentifier.Value
	key := strings.ToLower(name)
	if err := x.claimName(sc, "", name); err != nil {
		return err
	}
	if s := c.schema(name); s == nil || s.id < 5 || !x.mayInSchema("CONTROL", name) {
		if st.IsIfExists && s == nil {
			return nil
		}
		return raise(15151, 16, 1, "Cannot drop the schema '%s', because it does not exist or you do not have permission.", name)
	}
	return c.change(sc.undo, func() (func(), error) {
		for n, o := range c.objects {
			if n.schema == key {
				return nil, raise(3729, 16, 1, "Cannot drop schema '%s' because it is being referenced by object '%s'.", name, o.header().name)
			}
		}
		old := c.schemas[key]
		delete(c.schemas, key)
		return func() { c.schemas[key] = old }, nil
	})
}
