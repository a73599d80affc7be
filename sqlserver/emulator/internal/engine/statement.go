package engine

import (
	"strings"
	"unicode/utf16"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// statement turns one statement into a node. A new kind of statement is one
// case here and a file of its own.
func (b *builder) statement(st ast.Statement) (node, error) {
	switch st := st.(type) {
	case *ast.SelectStatement:
		return b.measure(st, "SELECT", func() (node, error) { return b.selectStatement(st) })
	case *ast.InsertStatement:
		return b.measure(st, "INSERT", func() (node, error) { return b.insertStatement(st) })
	case *ast.UpdateStatement:
		return b.measure(st, "UPDATE", func() (node, error) { return b.updateStatement(st) })
	case *ast.DeleteStatement:
		return b.measure(st, "DELETE", func() (node, error) { return b.deleteStatement(st) })
	case *ast.InsertBulkStatement:
		return b.insertBulk(st)
	case *ast.DeclareVariableStatement:
		return b.declareVariables(st)
	case *ast.DeclareTableVariableStatement:
		return b.declareTableVariable(st)
	case *ast.SetVariableStatement:
		return b.setVariable(st)
	case *ast.PredicateSetStatement, *ast.SetCommandStatement, *ast.SetTransactionIsolationLevelStatement,
		*ast.SetRowCountStatement, *ast.SetStatisticsStatement, *ast.SetTextSizeStatement, *ast.SetIdentityInsertStatement:
		return b.setOption(st)
	case *ast.BeginEndBlockStatement, *ast.IfStatement, *ast.WhileStatement, *ast.BreakStatement,
		*ast.ContinueStatement, *ast.ReturnStatement, *ast.TryCatchStatement, *ast.WaitForStatement:
		return b.control(st)
	case *ast.BeginTransactionStatement, *ast.CommitTransactionStatement,
		*ast.RollbackTransactionStatement, *ast.SaveTransactionStatement:
		return b.transactionStatement(st)
	case *ast.PrintStatement, *ast.ThrowStatement, *ast.RaiseErrorStatement:
		return b.messageStatement(st)
	case *ast.ExecuteStatement:
		return b.executeStatement(st)
	case *ast.UseStatement:
		return b.use(st)
	case *ast.LabelStatement:
		// the parser makes one of any word that it cannot place
		if label := strings.TrimSpace(st.Value); !strings.HasSuffix(label, ":") {
			return nil, errSyntax(label)
		}
	}
	if n, ok, err := b.definition(st); ok || err != nil {
		return n, err
	}
	return nil, notModelled("the statement %s", syntaxName(st))
}

// control builds the statements that hold others, and the jumps.
func (b *builder) control(st ast.Statement) (node, error) {
	switch st := st.(type) {
	case *ast.BeginEndBlockStatement:
		if len(statements(st.StatementList)) == 0 {
			return nil, errKeyword("END")
		}
		body, err := b.list(statements(st.StatementList))
		return &block{body}, err
	case *ast.IfStatement:
		n := &conditional{test: b.condition(st.Predicate, lineOf(st))}
		var err error
		if n.then, err = b.list([]ast.Statement{st.ThenStatement}); err != nil {
			return nil, err
		}
		n.alse, err = b.list([]ast.Statement{st.ElseStatement})
		return n, err
	case *ast.WhileStatement:
		n := &loop{test: b.condition(st.Predicate, lineOf(st))}
		b.loops++
		var err error
		n.body, err = b.list([]ast.Statement{st.Statement})
		b.loops--
		return n, err
	case *ast.BreakStatement:
		if b.loops == 0 {
			return nil, raiseBatch(135, 15, 1, "Cannot use a BREAK statement outside the scope of a WHILE statement.")
		}
		return jump{breakLoop}, nil
	case *ast.ContinueStatement:
		if b.loops == 0 {
			return nil, raiseBatch(136, 15, 1, "Cannot use a CONTINUE statement outside the scope of a WHILE statement.")
		}
		return jump{continueLoop}, nil
	case *ast.ReturnStatement:
		if st.Expression == nil {
			return &leave{}, nil
		}
		if !b.inProcedure {
			return nil, raiseBatch(178, 15, 1, "A RETURN statement with a return value cannot be used in this context.")
		}
		if takesSequence(st.Expression, false) {
			return nil, errSequenceNested()
		}
		return &leave{b.expression(st.Expression, lineOf(st))}, nil
	case *ast.TryCatchStatement:
		if len(statements(st.TryStatements)) == 0 { // CATCH may be empty (sql-docs, "TRY...CATCH")
			return nil, errKeyword("END")
		}
		body, err := b.list(statements(st.TryStatements))
		if err != nil {
			return nil, err
		}
		handler, err := b.list(statements(st.CatchStatements))
		return &try{body, handler}, err
	case *ast.WaitForStatement:
		if st.WaitForOption != "Delay" || st.Statement != nil {
			return nil, notModelled("WAITFOR %s", st.WaitForOption)
		}
		return &delay{b.expression(st.Parameter, lineOf(st))}, nil
	}
	return nil, notModelled("the statement %s", syntaxName(st))
}

// condition and expression are units outside a query.
func (b *builder) condition(x ast.BooleanExpression, line int32) *unit[*predicate] {
	return newUnit(b, line, func(c *compiler) (*predicate, error) {
		p, err := c.condition(x, &scope{})
		if err == nil {
			p.reads = c.reads
		}
		return p, err
	})
}

func (b *builder) expression(x ast.ScalarExpression, line int32) *unit[*scalar] {
	return newUnit(b, line, func(c *compiler) (*scalar, error) {
		s, err := c.expression(x, &scope{})
		if err != nil {
			return nil, err
		}
		out := *s // a literal may be shared
		out.reads = c.reads
		return &out, nil
	})
}

// assigned is an expression whose value goes into a variable.
func (b *builder) assigned(x ast.ScalarExpression, to sqltype.Type, line int32) *unit[*scalar] {
	return newUnit(b, line, func(c *compiler) (*scalar, error) {
		if err := drawsTwice(x); err != nil {
			return nil, err
		}
		s, err := c.expression(x, &scope{})
		if err != nil {
			return nil, err
		}
		out := *s // a literal may be shared
		out.reads = c.reads
		return &out, implicitly(s.typ, to)
	})
}

func (b *builder) declareVariables(st *ast.DeclareVariableStatement) (node, error) {
	var nodes []node
	for _, d := range st.Declarations {
		name := b.source(d.DataType)
		if err := b.engine.local(nameParts(name)); err != nil {
			return nil, err
		}
		if def, ok := b.engine.tableTypeNamed(name); ok {
			if err := b.undeclared(d.VariableName.Value); err != nil {
				return nil, err
			}
			b.declareTable(d.VariableName.Value, def, false)
			continue
		}
		t, err := b.engine.dataType(d.DataType)
		if d.DataType != nil && d.DataType.Name == nil && strings.EqualFold(b.source(d.DataType), "sysname") {
			t, err = nvarcharType(128), nil
		}
		if err != nil {
			if d.DataType != nil && d.DataType.Name == nil {
				return nil, errNoType(b.source(d.DataType))
			}
			return nil, err
		}
		i, err := b.declare(d.VariableName.Value, t)
		if err != nil {
			return nil, err
		}
		if d.Value != nil {
			nodes = append(nodes, &assignment{target: i, typ: t, value: b.assigned(d.Value, t, lineOf(st))})
		}
	}
	return &block{nodes}, nil
}

// source is the text of a type that the parser keeps no name of, as it does
// with those that it does not know.
func (b *builder) source(ref *ast.SqlDataTypeReference) string {
	if ref == nil || ref.Name != nil || ref.FragmentLength == 0 {
		return ""
	}
	units := utf16.Encode([]rune(b.parsed))
	return string(utf16.Decode(units[ref.StartOffset : ref.StartOffset+ref.FragmentLength]))
}

func (b *builder) declareTableVariable(st *ast.DeclareTableVariableStatement) (node, error) {
	name := st.Body.VariableName.Value
	if err := b.undeclared(name); err != nil {
		return nil, err
	}
	def, err := b.engine.memDefinition(name, st.Body.Definition)
	if err != nil {
		return nil, err
	}
	b.declareTable(name, def, false)
	return nil, nil
}

func (b *builder) setVariable(st *ast.SetVariableStatement) (node, error) {
	if st.CursorDefinition != nil || st.FunctionCallExists || st.Identifier != nil {
		return nil, notModelled("cursors and methods in SET")
	}
	i, t, ok := b.mod.vars.now().scalar(st.Variable.Name)
	if !ok {
		return nil, errUndeclared(st.Variable.Name)
	}
	op, compound := compoundOperators[st.AssignmentKind]
	if !compound {
		return &assignment{target: i, typ: t, value: b.assigned(st.Expression, t, lineOf(st))}, nil
	}
	u := newUnit(b, lineOf(st), func(c *compiler) (*scalar, error) {
		v, err := c.variable(st.Variable.Name)
		if err != nil {
			return nil, err
		}
		s, err := c.expression(st.Expression, &scope{})
		if err != nil {
			return nil, err
		}
		if s, err = c.operate(op, v, s); err != nil {
			return nil, err
		}
		s.reads = c.reads
		return s, implicitly(s.typ, t)
	})
	return &assignment{target: i, typ: t, value: u}, nil
}

// maxTransactionName is that of a transaction and of a savepoint (sql-docs, "BEGIN
// TRANSACTION"); of a variable's value the rest is left out.
const maxTransactionName = 32

func (b *builder) transactionStatement(st ast.Statement) (node, error) {
	n := &tranNode{}
	var name *ast.IdentifierOrValueExpression
	switch st := st.(type) {
	case *ast.BeginTransactionStatement:
		if st.Distributed || st.MarkDefined {
			return nil, notModelled("distributed and marked transactions")
		}
		n.do = func(s *session, w writer, name string) error {
			if err := s.begin(w); err != nil {
				return err
			}
			if s.tran.count == 1 {
				s.tran.name = name
			}
			return nil
		}
		name = st.Name
	case *ast.CommitTransactionStatement:
		n.do = func(s *session, w writer, _ string) error { return s.commit(w) }
	case *ast.RollbackTransactionStatement:
		n.do = func(s *session, w writer, name string) error {
			if name == "" || (s.tran != nil && s.tran.name == name && s.tran.saved[name] == (savepoint{})) {
				return s.rollback(w)
			}
			return s.rollbackTo(name)
		}
		name = st.Name
	case *ast.SaveTransactionStatement:
		n.do = func(s *session, _ writer, name string) error { return s.save(name) }
		name = st.Name
	}
	if name == nil {
		return n, nil
	}
	if name.Identifier != nil {
		n.text = name.Identifier.Value
		if sqltype.UTF16Length(n.text) > maxTransactionName {
			return nil, raiseBatch(103, 15, 2, "The identifier that starts with '%s' is too long. Maximum length is %d.", n.text, maxTransactionName)
		}
		return n, nil
	}
	n.name = b.expression(name.ValueExpression, lineOf(st))
	return n, nil
}

func (b *builder) use(st *ast.UseStatement) (node, error) {
	name := st.DatabaseName.Value
	return action(func(x *exec) error {
		s := x.s
		if !strings.EqualFold(name, s.engine.config.Database) {
			return raiseBatch(911, 16, 1, "Database '%s' does not exist. Make sure that the name is entered correctly.", name)
		}
		return x.w.DatabaseChanged(s.engine.config.Database, s.engine.config.Database)
	}), nil
}
