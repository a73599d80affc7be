package engine

import (
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// procedure is CREATE PROCEDURE.
type procedure struct {
	objectHeader
	params []procParam
	mod    *module
	text   string
	// the two settings that a procedure keeps from its creation
	quotedIdentifier, ansiNulls bool
	// options are the set_options of its creation.
	options int32
	// runAs is the user that EXECUTE AS names, 0 for the caller.
	runAs int32
}

type procParam struct {
	name     string
	typ      sqltype.Type
	table    int // table variable's ordinal, -1 for a scalar
	scalar   int
	output   bool
	fallback *scalar // default, nil for none
}

// procedureSyntax is what CREATE and ALTER have in common.
type procedureSyntax struct {
	reference *ast.ProcedureReference
	params    []*ast.ProcedureParameter
	body      *ast.StatementList
	options   []ast.ProcedureOptionBase
	replace   bool // CREATE OR ALTER
	alter     bool
	runAs     *ast.ExecuteAsClause
}

func (b *builder) createProcedure(st *procedureSyntax, text string, line int32) (node, error) {
	for _, o := range st.options {
		switch o := o.(type) {
		case *ast.ExecuteAsProcedureOption:
			if o.ExecuteAs == nil {
				return nil, errSyntax("AS")
			}
			st.runAs = o.ExecuteAs
		case *ast.ProcedureOption:
			if o.OptionKind != "Recompile" {
				return nil, notModelled("procedures WITH %s", o.OptionKind)
			}
		default:
			return nil, notModelled("procedures WITH %s", syntaxName(o))
		}
	}
	if st.reference.Number != nil {
		return nil, notModelled("numbered procedures")
	}
	inner := &builder{engine: b.engine, parsed: b.parsed, mod: b.engine.emptyModule(planKey{text: text}), inProcedure: true}
	p := &procedure{mod: inner.mod, text: text}
	p.name = st.reference.Name.BaseIdentifier.Value
	for _, d := range st.params {
		param, err := inner.parameter(d.VariableName.Value, d.DataType, d.Modifier == "Output", d.Value)
		if err != nil {
			return nil, err
		}
		p.params = append(p.params, param)
	}
	var err error
	if inner.mod.body, err = inner.list(statements(st.body)); err != nil {
		return nil, err
	}
	return ddl(func(x *exec, sc *statementScope) error { return x.defineProcedure(sc, st, p) }), nil
}

// parameter declares one parameter of a procedure or of sp_executesql.
func (b *builder) parameter(name string, ref ast.DataTypeReference, output bool, fallback ast.ScalarExpression) (procParam, error) {
	p := procParam{name: name, table: -1, scalar: -1, output: output}
	if def, ok := b.engine.tableType(ref); ok {
		p.table = b.declareTable(name, def, true)
		p.typ = sqltype.Type{Kind: sqltype.TableType}
		return p, nil
	}
	t, err := b.engine.dataType(ref)
	if err != nil {
		return p, err
	}
	p.typ = t
	if p.scalar, err = b.declare(name, t); err != nil {
		return p, err
	}
	if fallback != nil {
		c := &compiler{engine: b.engine, vars: (&variables{}).now(), checking: true}
		s, err := c.expression(fallback, &scope{})
		if err != nil {
			return p, err
		}
		p.fallback = convertTo(s, t)
	}
	return p, nil
}

// parameters declares sp_executesql's parameters, given as the text between a
// procedure's name and AS.
func (b *builder) parameters(text string) ([]procParam, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	g := guard{text: text}
	if e := g.check(); e != nil {
		return nil, e
	}
	script, _, err := parseText("CREATE PROCEDURE p " + text + " AS RETURN")
	if err != nil || len(script.Batches) != 1 || len(script.Batches[0].Statements) != 1 {
		return nil, errSyntax(text)
	}
	st, ok := script.Batches[0].Statements[0].(*ast.CreateProcedureStatement)
	if !ok || len(st.Parameters) == 0 {
		return nil, errSyntax(text)
	}
	var params []procParam
	for _, d := range st.Parameters {
		p, err := b.parameter(d.VariableName.Value, d.DataType, d.Modifier == "Output", d.Value)
		if err != nil {
			return nil, err
		}
		params = append(params, p)
	}
	return params, nil
}

func (x *exec) defineProcedure(sc *statementScope, st *procedureSyntax, p *procedure) error {
	e := x.s.engine
	owner, err := x.ownerSchema(st.reference.Name)
	if err != nil {
		return err
	}
	if err := x.claimName(sc, owner, p.name); err != nil {
		return err
	}
	if err := p.mod.bindAhead(&exec{s: x.s, ctx: x.ctx, w: x.w, caller: x}); err != nil {
		return err
	}
	def := *p
	def.quotedIdentifier, def.ansiNulls = x.s.set.quotedIdentifier, x.s.set.ansiNulls
	if err := x.mayDefine(owner, p.name, "PROCEDURE"); err != nil {
		return err
	}
	if def.runAs, err = x.runsAs(st.runAs, owner); err != nil {
		return err
	}
	return e.catalog.change(sc.undo, func() (func(), error) {
		old, exists := e.catalog.objects[nameOf(owner, p.name)]
		_, isProc := old.(*procedure)
		switch {
		case exists && (!isProc || (!st.replace && !st.alter)):
			return nil, errExists(p.name)
		case !exists && st.alter:
			return nil, raise(208, 16, 6, "Invalid object name '%s'.", objectText(st.reference.Name))
		}
		def.objectHeader = e.catalog.newHeader(owner, p.name)
		if exists {
			def.id, def.created = old.header().id, old.header().created
		}
		def.options = x.s.set.setOptions(e.database.forcedParameters.Load())
		return e.catalog.put(&def), nil
	})
}

// argument is what a caller passes.
type argument struct {
	name   string // with @, empty for positional
	value  sqltype.Value
	typ    sqltype.Type
	table  *memTable
	output bool
	// useDefault: DEFAULT, or nothing was passed.
	useDefault bool
	// back receives an OUTPUT value.
	back func(v sqltype.Value, t sqltype.Type) error
}

// maxProcedureNesting is SQL Server's bound on calls within calls.
const maxProcedureNesting = 32

// invoke runs a module with arguments bound to its parameters. It returns the
// return status.
func (x *exec) invoke(name string, mod *module, params []procParam, args []argument, proc *procedure) (int32, error) {
	s := x.s
	if s.nesting >= maxProcedureNesting {
		return 0, raiseBatch(217, 16, 1, "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).")
	}
	y := &exec{s: s, ctx: x.ctx, w: x.w, caller: x, tries: x.tries, proc: proc}
	if proc == nil {
		y.proc = x.proc
	} else {
		y.chain = &proc.objectHeader
	}
	users := len(s.users)
	defer func() { s.users = s.users[:users] }()
	if proc != nil && proc.runAs != 0 {
		s.users = append(s.users[:users:users], proc.runAs)
	}
	y.users = len(s.users)
	y.enter(mod)
	backs, err := y.bindArguments(name, params, args)
	if err != nil {
		return 0, err
	}
	before, saved := s.tranCount(), s.set
	if proc != nil {
		s.set.quotedIdentifier, s.set.ansiNulls = proc.quotedIdentifier, proc.ansiNulls
	}
	identity := s.scopeIdentity
	s.scopeIdentity = sqltype.Value{}
	s.nesting++
	err = y.runModule()
	s.nesting--
	s.scopeIdentity = identity
	s.set = saved // SET within a module lasts as long as the module
	s.store.LockTimeout = s.set.lockTimeout
	if err != nil {
		return y.status, catchableOutside(err)
	}
	for _, b := range backs {
		if err := b(); err != nil {
			return y.status, err
		}
	}
	if after := s.tranCount(); after != before {
		return y.status, x.mismatch(before, after)
	}
	return y.status, nil
}

// catchableOutside: what failed to compile within a module is an ordinary error
// to the TRY block that called it.
func catchableOutside(err error) error {
	se, ok := err.(*sqlError)
	if !ok || !se.compile {
		return err
	}
	out := *se
	out.compile = false
	return &out
}

// mismatch is 266: the module left another @@TRANCOUNT than it found.
func (x *exec) mismatch(before, after int) error {
	e := raise(266, 16, 2, "Transaction count after EXECUTE indicates a mismatching number of BEGIN and COMMIT statements. Previous count = %d, current count = %d.", before, after)
	e.effect = sparesTransaction // XACT_ABORT does not act on it
	return e
}

// bindArguments fills the parameters, by name or by position.
func (x *exec) bindArguments(name string, params []procParam, args []argument) (backs []func() error, err error) {
	given := make([]bool, len(params))
	for i := range args {
		a := &args[i]
		at := i
		if a.name != "" {
			at = -1
			for j, p := range params {
				if strings.EqualFold(p.name, a.name) {
					at = j
				}
			}
			if at < 0 {
				return nil, raise(8145, 16, 2, "%s is not a parameter for procedure %s.", a.name, name)
			}
		}
		if len(params) == 0 {
			return nil, raise(8146, 16, 2, "Procedure %s has no parameters and arguments were supplied.", name)
		}
		if at >= len(params) {
			return nil, raise(8144, 16, 2, "Procedure or function %s has too many arguments specified.", name)
		}
		if given[at] {
			return nil, raise(8143, 16, 1, "Parameter '%s' was supplied multiple times.", params[at].name)
		}
		if a.useDefault && params[at].table < 0 {
			continue
		}
		given[at] = true
		if err := x.bindArgument(name, &params[at], a); err != nil {
			return nil, err
		}
		if a.output && a.back != nil {
			p := params[at]
			if !p.output {
				return nil, raise(8162, 16, 2, "The formal parameter \"%s\" was not declared as an OUTPUT parameter, but the actual parameter passed in requested output.", p.name)
			}
			backs = append(backs, func() error { return a.back(x.vars[p.scalar], p.typ) })
		}
	}
	for i, p := range params {
		switch {
		case given[i]:
		case p.table >= 0: // an absent table-valued parameter is empty
		case p.fallback != nil:
			v, err := p.fallback.eval(&env{x: x})
			if err != nil {
				return nil, err
			}
			x.vars[p.scalar] = v
		case x.mod.cached.key.prepared:
			return nil, raise(8178, 16, 1, "The parameterized query '(%s)%s' expects the parameter '%s', which was not supplied.", x.mod.cached.key.params, x.mod.text, p.name)
		default:
			return nil, raise(201, 16, 4, "Procedure or function '%s' expects parameter '%s', which was not supplied.", name, p.name)
		}
	}
	return backs, nil
}

func (x *exec) bindArgument(name string, p *procParam, a *argument) error {
	if p.table >= 0 {
		if a.table != nil {
			x.tables[p.table] = a.table
			return nil
		}
		if a.useDefault || a.value.IsNull() {
			return nil
		}
		return raise(206, 16, 2, "Operand type clash: %s is incompatible with %s", a.typ.Name(), name)
	}
	if a.table != nil {
		return raise(206, 16, 2, "Operand type clash: table type is incompatible with %s", p.typ.Name())
	}
	if err := implicitly(sqltype.Type{Kind: a.value.Kind}, p.typ); err != nil {
		return err
	}
	v, err := sqltype.Convert(a.value, p.typ, 0)
	if err != nil {
		if a.value.Kind.IsText() {
			return raise(8114, 16, 5, "Error converting data type %s to %s.", a.value.Kind, p.typ.Name())
		}
		return err
	}
	x.vars[p.scalar] = v
	return nil
}

// tableType finds the table type that a declaration names.
func (e *Engine) tableType(ref ast.DataTypeReference) (*tableDef, bool) {
	user, ok := ref.(*ast.UserDataTypeReference)
	if !ok || user.Name == nil {
		return nil, false
	}
	return e.tableTypeNamed(objectText(user.Name))
}

func (e *Engine) tableTypeNamed(name string) (*tableDef, bool) {
	if name == "" {
		return nil, false
	}
	schema, base := splitName(name)
	if schema == "" {
		schema = "dbo"
	}
	def, ok := e.catalog.find(nameOf(schema, base)).(*tableTypeDef)
	if !ok {
		return nil, false
	}
	return def.table, true
}
