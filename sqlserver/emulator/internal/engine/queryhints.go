package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

// queryHints are the OPTION hints that matter here.
type queryHints struct {
	forceOrder bool
	recompile  bool
	// joins are the kinds of join that are allowed; none means all.
	joins []string
}

// optimizerHints reads OPTION (…). Several joins are a choice; a number that is
// given twice and differs is none (sql-docs, "Query hints").
func optimizerHints(list []ast.OptimizerHintBase) (h queryHints, err error) {
	numbers := make(map[string]int64)
	for _, hint := range list {
		kind := ""
		switch hint := hint.(type) {
		case *ast.OptimizerHint:
			kind = hint.HintKind
		case *ast.LiteralOptimizerHint:
			kind = hint.HintKind
			if numeric := kind == "MaxDop" || kind == "Fast" || kind == "MaxRecursion"; !numeric {
				break
			}
			if _, ok := hint.Value.(*ast.IntegerLiteral); !ok {
				return h, errSyntax(strings.ToUpper(kind))
			}
			n, err := wholeNumber(hint.Value)
			if err != nil {
				return h, err
			}
			if before, ok := numbers[kind]; ok && before != n {
				return h, errHintsDiffer(strings.ToLower(kind))
			}
			numbers[kind] = n
		case *ast.OptimizeForOptimizerHint:
			if len(hint.Pairs) > 0 {
				return h, notModelled("OPTIMIZE FOR a variable's value")
			}
			continue
		default:
			return h, notModelled("the query hint %s", syntaxName(hint))
		}
		switch kind {
		case "ForceOrder":
			h.forceOrder = true
		case "Recompile":
			h.recompile = true
		case "LoopJoin", "HashJoin", "MergeJoin":
			h.joins = append(h.joins, strings.TrimSuffix(kind, "Join"))
		case "MaxDop", "Fast", "KeepPlan", "KeepFixedPlan",
			"MaxRecursion", "HashGroup", "OrderGroup", "Label", "OptimizeFor", "ParameterizationSimple",
			"ParameterizationForced", "RobustPlan", "ExpandViews", "MinGrantPercent", "MaxGrantPercent",
			"NoPerformanceSpool", "OptimizeForUnknown", "IgnoreNonClusteredColumnStoreIndex", "QueryTraceOn":
		default:
			return h, errSyntax(kind)
		}
	}
	return h, nil
}

func errHintsDiffer(name string) error {
	return raiseBatch(1042, 15, 1, "Conflicting %s optimizer hints specified.", name)
}

// joinable says whether a join of two tables can be of the kinds that its own hint
// and those of the statement leave. A hash or a merge join needs an equality.
func (c *compiler) joinable(hint string, on ast.BooleanExpression) error {
	allowed := c.hints.joins
	if hint != "" && hint != "None" {
		if len(allowed) > 0 && !slices.Contains(allowed, hint) {
			return errHintsDiffer("JOIN")
		}
		allowed = []string{hint}
	}
	if len(allowed) > 0 && !slices.Contains(allowed, "Loop") && !equates(on) {
		return errNoPlan()
	}
	return nil
}

// parameterize says whether forced parameterization turns the literals of a
// statement into parameters, which no filtered index can be matched with:
// statements outside modules that have no variable and no RECOMPILE.
func (b *builder) parameterize(st ast.Statement, h queryHints) func() bool {
	open := !b.inProcedure && !h.recompile && len(b.mod.vars.scalars) == 0 && !hasVariable(st)
	return func() bool { return open && b.engine.database.forcedParameters.Load() }
}
