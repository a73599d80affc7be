package engine

import (
	"time"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

var _ = registerServerFunctions(map[string]serverFunction{
	"dm_exec_input_buffer":    {[]string{"session_id", "request_id"}, inputBufferCols, inputBufferRows},
	"dm_exec_text_query_plan": {[]string{"plan_handle", "statement_start_offset", "statement_end_offset"}, textPlanCols, textPlanRows},
})

// The columns of sys-dm-exec-input-buffer-transact-sql.md.
var inputBufferCols = documented(`event_type nvarchar(256); parameters smallint; event_info nvarchar(max)`)

// inputBufferRows is what a session sent last. Who does not own the database sees
// its own only.
func inputBufferRows(s *session, args []sqltype.Value) ([][]sqltype.Value, error) {
	if args[0].IsNull() || !args[1].IsNull() && args[1].N != 0 {
		return nil, nil
	}
	var rows [][]sqltype.Value
	all := s.userID() == dboID
	s.engine.eachSession(func(o *session) {
		if last := o.input.Load(); o.spid() == args[0].N && (all || o == s) && last != nil {
			rows = append(rows, catalogRow(inputBufferCols, last.event, 0, last.shown()))
		}
	})
	return rows, nil
}

// input is a request's text as the input buffer shows it.
type input struct {
	at    time.Time
	event string
	text  string // of a procedure its name
	// declared are the parameters of sp_executesql.
	declared string
}

func rpcInput(proc string, params []tds.Param) *input {
	i := &input{at: time.Now().UTC(), event: "RPC Event", text: proc}
	if proc == "sp_executesql" && len(params) > 0 {
		i.text = params[0].Value.S
		if len(params) > 1 {
			i.declared = params[1].Value.S
		}
	}
	return i
}

// shown is the text, with the declaration of its parameters in front.
func (i *input) shown() string {
	if i.declared == "" {
		return i.text
	}
	return "(" + i.declared + ")" + i.text
}

// The columns of sys-dm-exec-text-query-plan-transact-sql.md.
var textPlanCols = documented(`dbid smallint; objectid int; number smallint; encrypted bit; query_plan nvarchar(max)`)

// textPlanRows is the plan of a whole batch; of one of its statements when there
// are offsets.
func textPlanRows(s *session, args []sqltype.Value) ([][]sqltype.Value, error) {
	p, ok := s.engine.planOf(args[0].S)
	if !ok {
		return nil, nil
	}
	statements := p.statements
	if from, to := args[1], args[2]; !from.IsNull() && (from.N != 0 || !to.IsNull() && to.N != -1) {
		var one []*measured
		for _, m := range statements {
			if start, end := m.offsets(); int64(start) == from.N && (to.IsNull() || int64(end) == to.N) {
				one = append(one, m)
			}
		}
		statements = one
	}
	return [][]sqltype.Value{catalogRow(textPlanCols, databaseID, p.objectID(), nil, false, s.engine.showplanOf(p, statements))}, nil
}
