package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// FakeView is what a test wants a system view, or a function of sys that gives
// rows, to answer instead of the truth.
type FakeView struct {
	Name string
	// Columns are names, or a name and a type for a column that the engine does
	// not have.
	Columns []string
	Rows    [][]any
	// Denied answers as if the permission were missing.
	Denied bool
	// Error is reported instead of rows.
	Error *tds.Error
}

// fakeView is a FakeView ready to answer.
type fakeView struct {
	cols []outCol
	rows [][]sqltype.Value
	fail func(s *session) error // nil when rows answer
}

// FakeView puts f in place until undo is called, or until another one of the same
// name is put in place. Only what exists on the edition can be faked. Plans are
// made anew.
func (e *Engine) FakeView(f FakeView) (undo func(), err error) {
	key := strings.ToLower(f.Name)
	if !strings.Contains(key, ".") {
		key = "sys." + key
	}
	fake := &fakeView{}
	if fake.cols, err = e.fakeColumns(key, f.Columns); err != nil {
		return nil, fmt.Errorf("fake %s: %w", f.Name, err)
	}
	for i, row := range f.Rows {
		values, err := fakeRow(fake.cols, f.Columns, row)
		if err != nil {
			return nil, fmt.Errorf("fake %s: row %d: %w", f.Name, i, err)
		}
		fake.rows = append(fake.rows, values)
	}
	switch {
	case f.Denied:
		fake.fail = func(s *session) error { return s.engine.errDenied(key) }
	case f.Error != nil:
		fake.fail = func(*session) error { return f.Error }
	}
	e.fakesMu.Lock()
	e.fakes[key] = fake
	e.fakesMu.Unlock()
	e.catalog.version.Add(1)
	return func() {
		e.fakesMu.Lock()
		if e.fakes[key] == fake {
			delete(e.fakes, key)
		}
		e.fakesMu.Unlock()
		e.catalog.version.Add(1)
	}, nil
}

func (e *Engine) fake(key string) *fakeView {
	e.fakesMu.RLock()
	defer e.fakesMu.RUnlock()
	return e.fakes[key]
}

// fakeColumns are the columns that the engine knows of the view, and those that
// the test adds with a type.
func (e *Engine) fakeColumns(key string, declared []string) ([]outCol, error) {
	var cols []outCol
	v, known := views[key]
	f, isFunction := rowFunctions[strings.ToUpper(key)]
	switch {
	case !e.exists(key):
		return nil, errors.New("the edition has no such view")
	case known:
		cols = append(cols, v.cols...)
	case isFunction && f.server != nil:
		cols = f.cols(nil)
	}
	for i := range cols {
		cols[i].nullable = true // those that the test leaves out
	}
	for _, d := range declared {
		name, typ, typed := strings.Cut(strings.TrimSpace(d), " ")
		at := columnIn(cols, name)
		if at >= 0 && !typed {
			continue
		}
		if !typed {
			return nil, fmt.Errorf("the engine does not know the column %s: give its type behind the name", name)
		}
		t, err := e.declaredType(typ)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		if at >= 0 {
			cols[at].typ = t
		} else {
			cols = append(cols, outCol{name: name, typ: t, nullable: true})
		}
	}
	if len(cols) == 0 {
		return nil, errors.New("the engine does not know its columns: name them with their types")
	}
	return cols, nil
}

func columnIn(cols []outCol, name string) int {
	for i, c := range cols {
		if strings.EqualFold(c.name, name) {
			return i
		}
	}
	return -1
}

// declaredType reads a type as DECLARE would.
func (e *Engine) declaredType(text string) (sqltype.Type, error) {
	list, _, err := parse("DECLARE @x "+text, true)
	if err != nil {
		return sqltype.Type{}, err
	}
	d, ok := list[0].(*ast.DeclareVariableStatement)
	if !ok || len(list) != 1 || len(d.Declarations) != 1 {
		return sqltype.Type{}, fmt.Errorf("%q is not a type", text)
	}
	return e.dataType(d.Declarations[0].DataType)
}

func fakeRow(cols []outCol, declared []string, row []any) ([]sqltype.Value, error) {
	if len(row) != len(declared) {
		return nil, fmt.Errorf("%d values for %d columns", len(row), len(declared))
	}
	values := make([]sqltype.Value, len(cols))
	for i, v := range row {
		name, _, _ := strings.Cut(strings.TrimSpace(declared[i]), " ")
		at := columnIn(cols, name)
		value, err := sqlValue(v)
		if err == nil {
			value, err = sqltype.Convert(value, cols[at].typ, 0)
		}
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		values[at] = value
	}
	return values, nil
}

// sqlValue is a Go value as SQL has it.
func sqlValue(v any) (sqltype.Value, error) {
	switch v := v.(type) {
	case nil:
		return sqltype.Value{}, nil
	case bool:
		return sqltype.NewBool(v), nil
	case int:
		return bigValue(int64(v)), nil
	case int32:
		return bigValue(int64(v)), nil
	case int64:
		return bigValue(v), nil
	case float64:
		return sqltype.FloatValue(sqltype.Float, v), nil
	case string:
		return nvarcharValue(v), nil
	case []byte:
		return sqltype.Value{Kind: sqltype.VarBinary, S: string(v)}, nil
	case time.Time:
		return sqltype.Value{Kind: sqltype.DateTimeOffset, N: sqltype.TicksOf(v.UTC())}, nil
	}
	return sqltype.Value{}, fmt.Errorf("a %T has no SQL value here", v)
}

// answer are the rows for a view, or for a function with its arguments: those
// where a column that is named like a parameter has its value.
func (f *fakeView) answer(s *session, parameters []string, args []sqltype.Value) ([][]sqltype.Value, error) {
	if f.fail != nil {
		return nil, f.fail(s)
	}
	var rows [][]sqltype.Value
	for _, row := range f.rows {
		if f.matches(row, parameters, args) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (f *fakeView) matches(row []sqltype.Value, parameters []string, args []sqltype.Value) bool {
	for i, p := range parameters {
		at := columnIn(f.cols, p)
		if at < 0 || args[i].IsNull() || row[at].IsNull() {
			continue
		}
		n, err := sqltype.Convert(args[i], bigType, 0)
		all := int64(0)
		if p == "index_id" {
			all = -1
		}
		if err == nil && n.N != all && n.N != row[at].N {
			return false
		}
	}
	return true
}

// errDenied is what somebody without the permission gets: two errors, of which
// drivers show the second (297) and keep the first. Installed servers and
// instances ask for a permission of the server, but for what is of the database.
func (e *Engine) errDenied(key string) error {
	first := raise(262, 14, 1, "VIEW DATABASE STATE permission denied in database '%s'.", e.config.Database)
	database := strings.HasPrefix(key, "sys.dm_db_") && !strings.HasPrefix(key, "sys.dm_db_index_usage") && !strings.HasPrefix(key, "sys.dm_db_missing")
	switch {
	case e.config.Edition == AzureSQLDatabase || database:
	case e.config.Edition == AzureManagedInstance:
		first = raise(300, 14, 1, "VIEW SERVER STATE permission was denied on object 'server', database 'master'.")
	default:
		first = raise(300, 14, 1, "VIEW SERVER PERFORMANCE STATE permission was denied on object 'server', database 'master'.")
	}
	denied := raise(297, 16, 1, "The user does not have permission to perform this action.")
	denied.before = first
	return denied
}
