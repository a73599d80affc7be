package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// rowFunction is a function that gives rows.
type rowFunction struct {
	min, max int
	cols     func(args []*scalar) []outCol
	rows     func(args []sqltype.Value, emit func(row []sqltype.Value) error) error
	// server is set instead of rows for a dynamic management function, whose
	// arguments may be DEFAULT.
	server func(s *session, args []sqltype.Value) ([][]sqltype.Value, error)
	// parameters are the names of a dynamic management function's parameters.
	parameters []string
}

// rowFunctions is where another one is added.
var rowFunctions = map[string]rowFunction{
	"STRING_SPLIT":    {min: 2, max: 3, cols: splitColumns, rows: splitRows},
	"GENERATE_SERIES": {min: 2, max: 3, cols: seriesColumns, rows: seriesRows},
}

// registerServerFunctions adds dynamic management functions by the names of
// sys.
func registerServerFunctions(list map[string]serverFunction) bool {
	for name, f := range list {
		cols := func([]*scalar) []outCol { return slices.Clone(f.cols) }
		rowFunctions["SYS."+strings.ToUpper(name)] = rowFunction{len(f.parameters), len(f.parameters), cols, nil, f.rows, f.parameters}
	}
	return true
}

// serverFunction is a dynamic management function. Without rows it has its columns
// as documented, and the engine does not model it.
type serverFunction struct {
	parameters []string
	cols       []outCol
	rows       func(s *session, args []sqltype.Value) ([][]sqltype.Value, error)
}

func splitColumns(args []*scalar) []outCol {
	t := args[0].typ
	if !t.Kind.IsText() {
		t = nvarcharType(4000)
	}
	cols := []outCol{{name: "value", typ: t}}
	if len(args) == 3 {
		cols = append(cols, outCol{name: "ordinal", typ: bigType})
	}
	return cols
}

func splitRows(args []sqltype.Value, emit func(row []sqltype.Value) error) error {
	if args[0].IsNull() {
		return nil
	}
	if sqltype.UTF16Length(args[1].S) != 1 {
		return raise(214, 16, 11, "Procedure expects parameter 'separator' of type 'nchar(1)/nvarchar(1)'.")
	}
	for i, part := range strings.Split(args[0].S, args[1].S) {
		row := []sqltype.Value{{Kind: args[0].Kind, S: part}}
		if len(args) == 3 {
			row = append(row, bigValue(int64(i+1)))
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}

func seriesColumns(args []*scalar) []outCol { return []outCol{{name: "value", typ: args[0].typ}} }

func seriesRows(args []sqltype.Value, emit func(row []sqltype.Value) error) error {
	step := int64(1)
	if args[0].N > args[1].N {
		step = -1
	}
	if len(args) == 3 {
		step = args[2].N
	}
	if step == 0 {
		return raise(4199, 16, 1, "Argument value 0 is invalid for argument 3 of generate_series function.")
	}
	for n := args[0].N; (step > 0 && n <= args[1].N) || (step < 0 && n >= args[1].N); n += step {
		if err := emit([]sqltype.Value{{Kind: args[0].Kind, N: n}}); err != nil {
			return err
		}
	}
	return nil
}

// rowFunction finds a function by its name as it was written.
func (e *Engine) rowFunction(name string) (rowFunction, error) {
	key := strings.ToLower(name)
	f, ok := rowFunctions[strings.ToUpper(name)]
	_, isView := views[key]
	if isView || ok && f.rows == nil && !e.exists(key) {
		return f, errNoObject(name)
	}
	fake := e.fake(key)
	switch {
	case fake != nil && !ok:
		return f, notModelled("%s: a function that it does not know cannot be faked", key)
	case fake != nil:
		f.cols = func([]*scalar) []outCol { return slices.Clone(fake.cols) }
		f.server = func(s *session, args []sqltype.Value) ([][]sqltype.Value, error) {
			return fake.answer(s, f.parameters, args)
		}
	case ok && f.rows == nil && f.server == nil, !ok && e.exists(key):
		return f, notModelled("%s", key)
	case !ok:
		return f, errNoObject(name)
	}
	return f, nil
}

func (c *compiler) tableFunction(name string, params []ast.ScalarExpression, as string, columns []*ast.Identifier, sc *scope) (*joinTree, error) {
	f, err := c.engine.rowFunction(name)
	if err != nil {
		return nil, err
	}
	if len(params) > f.max {
		return nil, raiseBatch(8144, 16, 3, "Procedure or function %s has too many arguments specified.", strings.ToLower(name))
	}
	if len(params) < f.min {
		return nil, raiseBatch(313, 16, 3, "An insufficient number of arguments were supplied for the procedure or function %s.", strings.ToLower(name))
	}
	if f.server != nil {
		params = slices.Clone(params)
		for i, p := range params {
			if _, ok := p.(*ast.DefaultLiteral); ok {
				params[i] = &ast.NullLiteral{}
			}
		}
	}
	outer := c.touched
	c.touched = 0
	args, err := c.expressions(params, c.lateral(sc))
	if err != nil {
		return nil, err
	}
	needs := c.touched
	c.touched |= outer
	if as == "" {
		as = name[strings.LastIndexByte(name, '.')+1:]
	}
	cols := f.cols(args)
	if err := nameColumns(cols, columns, as); err != nil {
		return nil, err
	}
	src, err := c.newSource(as, "", cols)
	if err != nil {
		return nil, err
	}
	sc.sources = append(sc.sources, src)
	rows := stepFunc(func(e *env, next func() error) error {
		values := make([]sqltype.Value, len(args))
		for i, a := range args {
			v, err := a.eval(e)
			if err != nil {
				return err
			}
			values[i] = v
		}
		emit := func(row []sqltype.Value) error {
			e.rows[src.slot] = row
			return next()
		}
		if f.server == nil {
			return f.rows(values, emit)
		}
		if err := e.x.s.mayCall(strings.ToLower(name)); err != nil {
			return err
		}
		list, err := f.server(e.x.s, values)
		if err != nil {
			return err
		}
		for _, row := range list {
			if err := emit(row); err != nil {
				return err
			}
		}
		return nil
	})
	return leafTree(&leaf{src: src, hints: &tableHints{indexID: -1}, rows: rows}, needs), nil
}
