package engine

import (
	"strings"
	"time"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// setOption builds the SET statements that change the session.
func (b *builder) setOption(st ast.Statement) (node, error) {
	switch st := st.(type) {
	case *ast.PredicateSetStatement:
		return b.setOnOff(st)
	case *ast.SetStatisticsStatement:
		return nil, notModelled("SET STATISTICS")
	case *ast.SetTransactionIsolationLevelStatement:
		level, ok := isolationLevels[st.Level]
		if !ok {
			return nil, errSyntax(st.Level)
		}
		return action(func(x *exec) error {
			if level == storage.Snapshot && x.s.tran != nil && x.s.tran.isolation != storage.Snapshot {
				return raiseBatch(3951, 16, 1, "Transaction failed in database '%s' because the statement was run under snapshot isolation but the transaction did not start in snapshot isolation. You cannot change the isolation level of the transaction to snapshot after the transaction has started unless the transaction was originally started under snapshot isolation level.", x.s.engine.config.Database)
			}
			x.s.set.isolation = level
			return nil
		}), nil
	case *ast.SetRowCountStatement:
		return b.setNumber(st.NumberRows, lineOf(st), func(s *session, v sqltype.Value) error {
			s.set.rowCount = v.N
			return nil
		})
	case *ast.SetTextSizeStatement:
		return b.setNumber(st.TextSize, lineOf(st), func(s *session, v sqltype.Value) error {
			s.set.textSize = v.N
			return nil
		})
	case *ast.SetIdentityInsertStatement:
		return action(func(x *exec) error { return x.setIdentityInsert(st) }), nil
	case *ast.SetCommandStatement:
		var nodes []node
		for _, cmd := range st.Commands {
			n, err := b.setCommand(cmd, lineOf(st))
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, n)
		}
		return &block{nodes}, nil
	}
	return nil, notModelled("the statement %s", syntaxName(st))
}

// setOnOff is SET a, b ON. QUOTED_IDENTIFIER acts on the text that follows in
// the next batch; within this one the parser has spoken already.
func (b *builder) setOnOff(st *ast.PredicateSetStatement) (node, error) {
	names := strings.Split(st.Options, ", ")
	for _, name := range names {
		if name == "AnsiDefaults" {
			continue
		}
		if name == "ImplicitTransactions" || name == "NoExec" || name == "ParseOnly" {
			if st.IsOn {
				return nil, notModelled("SET %s ON", name)
			}
			continue
		}
		if _, known := new(settings).option(name); !known {
			return nil, notModelled("SET %s", name)
		}
	}
	return action(func(x *exec) error {
		for _, name := range names {
			if name == "AnsiDefaults" {
				x.s.set.setAnsiDefaults(st.IsOn)
			}
			if target, _ := x.s.set.option(name); target != nil {
				*target = st.IsOn
			}
		}
		return nil
	}), nil
}

func (b *builder) setNumber(x ast.ScalarExpression, line int32, set func(s *session, v sqltype.Value) error) (node, error) {
	u := b.expression(x, line)
	return action(func(x *exec) error {
		v, err := x.value(u)
		if err != nil {
			return err
		}
		if v, err = sqltype.Convert(v, bigType, 0); err != nil {
			return err
		}
		return set(x.s, v)
	}), nil
}

func (b *builder) setCommand(cmd ast.SetCommand, line int32) (node, error) {
	g, ok := cmd.(*ast.GeneralSetCommand)
	if !ok {
		return nil, notModelled("SET %s", syntaxName(cmd))
	}
	switch g.CommandType {
	case "LockTimeout":
		return b.setNumber(g.Parameter, line, func(s *session, v sqltype.Value) error {
			if v.N < -1 {
				return notModelled("SET LOCK_TIMEOUT %d: -1 waits for ever, and nothing is said of what is below", v.N)
			}
			s.set.lockTimeout = time.Duration(v.N) * time.Millisecond
			if v.N < 0 {
				s.set.lockTimeout = storage.Forever
			}
			s.store.LockTimeout = s.set.lockTimeout
			return nil
		})
	case "DeadlockPriority":
		return b.setDeadlockPriority(g.Parameter, line)
	case "ContextInfo", "Language", "DateFirst", "DateFormat", "QueryGovernorCostLimit":
		if lit, ok := g.Parameter.(*ast.IntegerLiteral); ok && g.CommandType == "DateFirst" && lit.Value != "7" {
			return nil, notModelled("SET DATEFIRST other than 7")
		}
		return action(func(*exec) error { return nil }), nil
	}
	return nil, notModelled("SET %s", g.CommandType)
}

// deadlockPriorities are the named levels (sql-docs, "SET DEADLOCK_PRIORITY").
var deadlockPriorities = map[string]int{"LOW": -5, "NORMAL": 0, "HIGH": 5}

func (b *builder) setDeadlockPriority(x ast.ScalarExpression, line int32) (node, error) {
	if id, ok := x.(*ast.IdentifierLiteral); ok {
		p, ok := deadlockPriorities[strings.ToUpper(id.Value)]
		if !ok {
			return nil, errSyntax(id.Value)
		}
		return action(func(x *exec) error {
			x.s.store.DeadlockPriority = p
			return nil
		}), nil
	}
	u := b.expression(x, line)
	return action(func(x *exec) error {
		v, err := x.value(u)
		if err != nil {
			return err
		}
		if p, ok := deadlockPriorities[strings.ToUpper(v.S)]; ok && v.Kind.IsText() {
			x.s.store.DeadlockPriority = p
			return nil
		}
		if v, err = sqltype.Convert(v, intType, 0); err != nil {
			return err
		}
		if v.N < -10 || v.N > 10 {
			return notModelled("SET DEADLOCK_PRIORITY %d: it is -10 to 10", v.N)
		}
		x.s.store.DeadlockPriority = int(v.N)
		return nil
	}), nil
}

func (x *exec) setIdentityInsert(st *ast.SetIdentityInsertStatement) error {
	if err := x.s.engine.reach(partsOf(st.Table)); err != nil {
		return err
	}
	o, err := x.s.engine.lookup(st.Table)
	if err != nil {
		return raise(1088, 16, 11, "Cannot find the object \"%s\" because it does not exist or you do not have permissions.", objectText(st.Table))
	}
	t, ok := o.(*tableDef)
	if ok && !x.mayOn("ALTER", &t.objectHeader) {
		return raise(1088, 16, 11, "Cannot find the object \"%s\" because it does not exist or you do not have permissions.", objectText(st.Table))
	}
	if !ok || t.identity == nil {
		return raise(8106, 16, 1, "Table '%s' does not have the identity property. Cannot perform SET operation.", objectText(st.Table))
	}
	switch {
	case !st.IsOn:
		if strings.EqualFold(x.s.identityInsert, t.qualified()) {
			x.s.identityInsert = ""
		}
	case x.s.identityInsert != "" && !strings.EqualFold(x.s.identityInsert, t.qualified()):
		return raise(8107, 16, 1, "IDENTITY_INSERT is already ON for table '%s'. Cannot perform SET operation for table '%s'.", x.s.identityInsert, t.name)
	default:
		x.s.identityInsert = t.qualified()
	}
	return nil
}
