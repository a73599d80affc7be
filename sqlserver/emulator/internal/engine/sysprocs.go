package engine

import (
	"slices"
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// systemProcedures are the sp_ procedures; another one is one entry.
var systemProcedures map[string]func(x *exec, args []argument) (int32, error)

func init() { // a literal would refer to itself through EXEC
	systemProcedures = map[string]func(x *exec, args []argument) (int32, error){
		"sp_executesql":         executeSQL,
		"sp_sequence_get_range": sequenceGetRange,
		"sp_getapplock":         getAppLock,
		"sp_releaseapplock":     releaseAppLock,
		"sp_prepare":            prepare,
		"sp_execute":            executePrepared,
		"sp_prepexec":           prepareExecute,
		"sp_unprepare":          unprepare,
	}
}

// named takes an argument by its name, or by its place among the positional
// ones.
func named(args []argument, name string, position int) *argument {
	for i := range args {
		if strings.EqualFold(args[i].name, name) {
			return &args[i]
		}
	}
	if position < len(args) && args[position].name == "" {
		return &args[position]
	}
	return nil
}

// knows refuses a named argument that a system procedure does not have.
func knows(procedure string, args []argument, names ...string) error {
	for _, a := range args {
		if a.name != "" && !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, a.name) }) {
			return raise(8145, 16, 1, "%s is not a parameter for procedure %s.", a.name, procedure)
		}
	}
	return nil
}

func textOf(args []argument, name string, position int) string {
	a := named(args, name, position)
	if a == nil || a.value.IsNull() {
		return ""
	}
	return sqltype.Format(a.value)
}

// executeSQL is sp_executesql @stmt, @params, values…
func executeSQL(x *exec, args []argument) (int32, error) {
	if len(args) == 0 {
		return 0, raise(201, 16, 10, "Procedure or function 'sp_executesql' expects parameter '@statement', which was not supplied.")
	}
	if k := args[0].value.Kind; k.IsText() && !k.IsUnicode() {
		return 0, raise(214, 16, 2, "Procedure expects parameter '@statement' of type 'ntext/nchar/nvarchar'.")
	}
	rest := args[1:]
	params := ""
	if len(rest) > 0 {
		params = sqltype.Format(rest[0].value)
		rest = rest[1:]
		if args[1].value.IsNull() {
			params = ""
		}
	}
	return x.dynamic(args[0].value.S, params, rest)
}

func sequenceGetRange(x *exec, args []argument) (int32, error) {
	err := knows("sp_sequence_get_range", args, "@sequence_name", "@range_size", "@range_first_value", "@range_last_value",
		"@range_cycle_count", "@sequence_increment", "@sequence_min_value", "@sequence_max_value")
	if err != nil {
		return 0, err
	}
	name := textOf(args, "@sequence_name", 0)
	schema, base := splitName(name)
	if schema == "" {
		schema = "dbo"
	}
	if err := x.settle(schema, base); err != nil {
		return 0, err
	}
	q, ok := x.s.engine.catalog.find(nameOf(schema, base)).(*sequence)
	if !ok {
		return 0, errNoObject(name)
	}
	if !x.mayOn("UPDATE", &q.objectHeader) {
		return 0, errPermission("UPDATE", &q.objectHeader, x.s.engine.config.Database)
	}
	size := named(args, "@range_size", 1)
	if size == nil {
		return 0, raise(201, 16, 4, "Procedure or function 'sp_sequence_get_range' expects parameter '@range_size', which was not supplied.")
	}
	n, err := sqltype.Convert(size.value, bigType, 0)
	if err != nil {
		return 0, err
	}
	first, last, err := q.takeRange(n.N)
	if err != nil {
		return 0, err
	}
	t := q.typ
	for _, out := range []struct {
		name     string
		position int
		value    int64
	}{
		{"@range_first_value", 2, first},
		{"@range_last_value", 3, last},
		{"@range_cycle_count", 4, 0},
		{"@sequence_increment", 5, q.increment},
		{"@sequence_min_value", 6, q.min},
		{"@sequence_max_value", 7, q.max},
	} {
		a := named(args, out.name, out.position)
		if a == nil || a.back == nil {
			continue
		}
		if err := a.back(sqltype.Value{Kind: t.Kind, N: out.value, Scale: t.Scale}, sqltype.Type{Kind: sqltype.SQLVariant}); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// preparedHandles are sp_prepare's.
type preparedHandles struct {
	last    int32
	modules map[int32][2]string // text, params
}

func (h *preparedHandles) add(text, params string) int32 {
	h.last++
	if h.modules == nil {
		h.modules = make(map[int32][2]string)
	}
	h.modules[h.last] = [2]string{text, params}
	return h.last
}

func errNoHandle(n int64) error {
	return raise(8179, 16, 2, "Could not find prepared statement with handle %d.", n)
}

// prepare is sp_prepare @handle OUTPUT, @params, @stmt.
func prepare(x *exec, args []argument) (int32, error) {
	if len(args) < 3 {
		return 0, raise(201, 16, 4, "Procedure or function 'sp_prepare' expects parameter '@stmt', which was not supplied.")
	}
	params := args[1].value.S
	if _, err := x.s.newModule(args[2].value.S, params, true); err != nil {
		return 0, err
	}
	h := x.s.handle.add(args[2].value.S, params)
	if args[0].back != nil {
		return 0, args[0].back(intValue(int64(h)), intType)
	}
	return 0, nil
}

// executePrepared is sp_execute @handle, values…
func executePrepared(x *exec, args []argument) (int32, error) {
	if len(args) == 0 {
		return 0, errNoHandle(0)
	}
	m, ok := x.s.handle.modules[int32(args[0].value.N)]
	if !ok {
		return 0, errNoHandle(args[0].value.N)
	}
	return x.dynamic(m[0], m[1], args[1:])
}

// prepareExecute is sp_prepexec @handle OUTPUT, @params, @stmt, values…
func prepareExecute(x *exec, args []argument) (int32, error) {
	if _, err := prepare(x, args); err != nil {
		return 0, err
	}
	return x.dynamic(args[2].value.S, args[1].value.S, args[3:])
}

func unprepare(x *exec, args []argument) (int32, error) {
	if len(args) == 0 || x.s.handle.modules[int32(args[0].value.N)] == [2]string{} {
		return 0, errNoHandle(0)
	}
	delete(x.s.handle.modules, int32(args[0].value.N))
	return 0, nil
}
