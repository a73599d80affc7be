package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

// Other sessions wait for what a transaction creates or drops: whether the name
// is there is known when it ends.

// claimName keeps a name for the transaction that creates or drops what has it.
func (x *exec) claimName(sc *statementScope, schema, name string) error {
	return sc.tx.LockName(x.ctx, nameKey(nameOf(schema, name)))
}

// settle waits for another session's transaction that has a name.
func (x *exec) settle(schema, name string) error {
	_, err := x.s.store.AwaitName(x.ctx, nameKey(nameOf(schema, name)))
	return err
}

func (x *exec) settleObject(name *ast.SchemaObjectName) error {
	if strings.HasPrefix(name.BaseIdentifier.Value, "#") {
		return nil
	}
	if err := x.s.engine.reach(partsOf(name)); err != nil {
		return err
	}
	return x.settle(schemaOf(name), name.BaseIdentifier.Value)
}

// ownerSchema is the schema that a new object goes into.
func (x *exec) ownerSchema(name *ast.SchemaObjectName) (string, error) {
	if err := x.settle("", schemaOf(name)); err != nil {
		return "", err
	}
	return x.s.engine.ownerSchema(name)
}

// nameKey is a name as storage locks it; a schema's own name is in no schema.
func nameKey(n objectName) string { return n.schema + "." + n.name }

// settleNames waits for the names that a unit was compiled with. true asks for
// compiling it again.
func (x *exec) settleNames(names []objectName) (again bool, err error) {
	for _, n := range names {
		waited, err := x.s.store.AwaitName(x.ctx, nameKey(n))
		if err != nil {
			return false, err
		}
		again = again || waited
	}
	return again, nil
}

// lookup finds an object for a plan, which remembers the name.
func (c *compiler) lookup(name *ast.SchemaObjectName) (object, error) {
	c.names = append(c.names, nameOf(schemaOf(name), name.BaseIdentifier.Value))
	return c.engine.lookup(name)
}
