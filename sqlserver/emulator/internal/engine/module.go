package engine

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// module is a parsed batch or procedure body: a tree of nodes whose queries
// are compiled when they first run. It is shared by every session that sends
// the same text.
type module struct {
	text  string
	body  []node
	vars  *variables
	units []binder
	// params are sp_executesql's.
	params []procParam
	// statements are those with a plan of their own, in the order of the text.
	statements []*measured
	cached     cachedPlan
	// bound remembers for which catalog and settings bindAll went well.
	bound atomic.Pointer[boundFor]
}

// variables are a module's scalar and table variables. A name is visible from
// its declaration to the end of the module.
type variables struct {
	scalars []variable
	tables  []tableVariable
}

type variable struct {
	name string
	typ  sqltype.Type
}

type tableVariable struct {
	name string
	// def describes the rows; nil for a table-valued parameter until its type
	// is looked up.
	def *tableDef
	// readOnly is a table-valued parameter.
	readOnly bool
}

// visible is how much of variables a statement sees.
type visible struct {
	all             *variables
	scalars, tables int
}

func (v *variables) now() visible { return visible{v, len(v.scalars), len(v.tables)} }

func (v visible) scalar(name string) (int, sqltype.Type, bool) {
	for i, s := range v.all.scalars[:v.scalars] {
		if strings.EqualFold(s.name, name) {
			return i, s.typ, true
		}
	}
	return 0, sqltype.Type{}, false
}

func (v visible) table(name string) (int, *tableVariable, bool) {
	for i := range v.all.tables[:v.tables] {
		if strings.EqualFold(v.all.tables[i].name, name) {
			return i, &v.all.tables[i], true
		}
	}
	return 0, nil, false
}

// builder turns statements into nodes.
type builder struct {
	engine *Engine
	mod    *module
	// parsed is the text that the positions in the tree are in.
	parsed string
	loops  int
	// inProcedure allows RETURN with a value.
	inProcedure bool
	// inTrigger refuses the statements that a DML trigger must not hold.
	inTrigger bool
}

// declare adds a scalar variable.
func (b *builder) declare(name string, typ sqltype.Type) (int, error) {
	if err := b.undeclared(name); err != nil {
		return 0, err
	}
	b.mod.vars.scalars = append(b.mod.vars.scalars, variable{name, typ})
	return len(b.mod.vars.scalars) - 1, nil
}

// undeclared refuses a name that a variable of the module has.
func (b *builder) undeclared(name string) error {
	vars := b.mod.vars.now()
	_, _, scalar := vars.scalar(name)
	if _, _, table := vars.table(name); scalar || table {
		return raiseBatch(134, 15, 2, "The variable name '%s' has already been declared. Variable names must be unique within a query batch or stored procedure.", name)
	}
	return nil
}

// declareTable adds a table variable.
func (b *builder) declareTable(name string, def *tableDef, readOnly bool) int {
	b.mod.vars.tables = append(b.mod.vars.tables, tableVariable{name, def, readOnly})
	return len(b.mod.vars.tables) - 1
}

func (b *builder) list(list []ast.Statement) ([]node, error) {
	nodes := make([]node, 0, len(list))
	for _, st := range list {
		if st == nil {
			continue
		}
		n, err := b.statement(st)
		if err != nil {
			return nil, at(err, st)
		}
		if n != nil {
			nodes = append(nodes, &lined{n, lineOf(st)})
		}
	}
	return nodes, nil
}

// lined is a statement that knows its line, for the errors of running it.
type lined struct {
	node
	line int32
}

func (n *lined) run(x *exec) (signal, error) {
	sig, err := n.node.run(x)
	if err == nil {
		return sig, nil
	}
	se, other := asSQLError(err)
	if se == nil {
		return sig, other
	}
	if se.Line == 0 {
		own := *se
		own.Line = n.line
		return sig, &own
	}
	return sig, se
}

// at gives an error the line of the statement, unless it has one.
func at(err error, st ast.Statement) error {
	se, ok := err.(*sqlError)
	if !ok || se.Line != 0 {
		return err
	}
	se.Line = lineOf(st)
	return se
}

func lineOf(st ast.Statement) int32 {
	if f, ok := st.(interface{ Frag() *ast.Fragment }); ok {
		return int32(f.Frag().StartLine)
	}
	return 0
}

// newModule builds a batch, or finds it in the plan cache. params declares
// sp_executesql's parameters.
func (s *session) newModule(text, params string, prepared bool) (*module, error) {
	e := s.engine
	k := planKey{text, params, prepared, s.set.setOptions(e.database.forcedParameters.Load())}
	if m := e.plans.get(k); m != nil {
		return m, nil
	}
	b := &builder{engine: e, mod: e.emptyModule(k)}
	var err error
	if b.mod.params, err = b.parameters(params); err != nil {
		return nil, err
	}
	if err := b.build(text, s.set.quotedIdentifier); err != nil {
		return nil, err
	}
	return e.plans.put(k, b.mod), nil
}

func (e *Engine) emptyModule(k planKey) *module {
	m := &module{text: k.text, vars: new(variables)}
	m.cached.id, m.cached.key, m.cached.created = e.plans.last.Add(1), k, time.Now().UTC()
	return m
}

func (b *builder) build(text string, quotedIdentifier bool) (err error) {
	list, parsed, err := parse(text, quotedIdentifier)
	if err != nil {
		return err
	}
	b.parsed = parsed
	defer incomplete(&err)
	b.mod.body, err = b.list(list)
	return err
}
