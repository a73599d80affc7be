package engine

import (
	"context"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// maxParameters is how many a request may have, sp_executesql's own included.
const maxParameters = 2100

// RPC runs a procedure by name.
func (s *session) RPC(ctx context.Context, proc string, params []tds.Param, w tds.ResultWriter) error {
	s.input.Store(rpcInput(proc, params))
	return s.request(ctx, w, func(x *exec) error {
		if len(params) > maxParameters {
			return raiseBatch(8003, 16, 1, "The incoming request has too many parameters. The server supports a maximum of 2100 parameters. Reduce the number of parameters and resend the request.")
		}
		args := make([]argument, len(params))
		outs := make([]*tds.Param, len(params))
		for i := range params {
			a, err := x.rpcArgument(params[i])
			if err != nil {
				return err
			}
			if params[i].Output {
				out := &params[i]
				a.back = func(v sqltype.Value, t sqltype.Type) error {
					outs[i] = &tds.Param{Name: out.Name, Type: t, Value: v, Output: true}
					return nil
				}
			}
			args[i] = a
		}
		status, err := x.callNamed(nameParts(proc), args)
		if err != nil {
			if err = x.fail(err); err != nil {
				return err
			}
		}
		if err := w.ReturnStatus(status); err != nil {
			return err
		}
		for _, out := range outs {
			if out == nil {
				continue
			}
			if err := w.ReturnValue(*out); err != nil {
				return err
			}
		}
		return nil
	})
}

func (x *exec) rpcArgument(p tds.Param) (argument, error) {
	a := argument{name: p.Name, value: p.Value, typ: p.Type, output: p.Output, useDefault: p.Default}
	if p.Table == nil {
		return a, nil
	}
	def, ok := x.s.engine.tableTypeNamed(p.Table.TypeName)
	if !ok {
		return a, errNoType(p.Table.TypeName)
	}
	t := &target{def: def, variable: 0}
	a.table = newMemTable(def)
	for _, values := range p.Table.Rows {
		if len(values) != len(def.columns) {
			return a, raise(500, 16, 1, "Trying to pass a table-valued parameter with %d column(s) where the corresponding user-defined table type requires %d column(s).", len(values), len(def.columns))
		}
		row := make([]sqltype.Value, len(values))
		for i, v := range values {
			var err error
			if row[i], err = t.store(i, v); err != nil {
				return a, err
			}
			if row[i].IsNull() && !def.columns[i].nullable {
				return a, errNull(def.columns[i].name, def.fullName, "INSERT")
			}
		}
		if err := a.table.insert(row); err != nil {
			return a, err
		}
	}
	return a, nil
}
