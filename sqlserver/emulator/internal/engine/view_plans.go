package engine

import (
	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// The views and functions of the plan cache. The columns are those of their
// pages of sql-docs that the engine can answer; figures of pages that are
// written are NULL, because there are no pages.

var _ = registerViews(map[string]*view{
	"sys.dm_exec_query_stats":  {queryStatCols, queryStatRows},
	"sys.dm_exec_cached_plans": {cachedPlanCols, cachedPlanRows},
})

var _ = registerServerFunctions(map[string]serverFunction{
	"dm_exec_sql_text":        {[]string{"handle"}, sqlTextCols, sqlTextRows},
	"dm_exec_query_plan":      {[]string{"plan_handle"}, queryPlanCols, queryPlanRows},
	"dm_exec_plan_attributes": {[]string{"plan_handle"}, planAttributeCols, planAttributeRows},
})

func vHandle(name string) outCol {
	return outCol{name: name, typ: sqltype.Type{Kind: sqltype.VarBinary, Length: 64}, nullable: true}
}

func vHash(name string) outCol {
	return outCol{name: name, typ: sqltype.Type{Kind: sqltype.Binary, Length: 8}, nullable: true}
}

func vBigNull(name string) outCol { return outCol{name: name, typ: bigType, nullable: true} }

// figures are the four columns of one measure.
func figures(name string) []outCol {
	var cols []outCol
	for _, of := range []string{"total_", "last_", "min_", "max_"} {
		cols = append(cols, vBigNull(of+name))
	}
	return cols
}

var queryStatCols = func() []outCol {
	cols := []outCol{
		vHandle("sql_handle"), vInt("statement_start_offset"), vInt("statement_end_offset"), vBig("plan_generation_num"), vHandle("plan_handle"),
		vTime("creation_time"), vTime("last_execution_time"), vBig("execution_count"),
	}
	for _, name := range []string{"worker_time", "physical_reads", "logical_writes", "logical_reads", "elapsed_time"} {
		cols = append(cols, figures(name)...)
	}
	cols = append(cols, vHash("query_hash"), vHash("query_plan_hash"))
	cols = append(cols, figures("rows")...)
	return append(cols, vHandle("statement_sql_handle"), vBigNull("statement_context_id"))
}()

func queryStatRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	for _, p := range s.engine.allPlans() {
		for _, m := range p.statements {
			if row := m.row(p); row != nil {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// row is nil for a statement that has not been executed since it was compiled.
func (m *measured) row(p plan) []sqltype.Value {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count == 0 {
		return nil
	}
	start, end := m.offsets()
	values := []any{p.sqlHandle(), start, end, m.generation, p.planHandle(), m.shape.compiled, m.last.UTC(), m.count}
	add := func(t tally) { values = append(values, t.total, t.last, t.min, t.max) }
	add(m.worker)
	add(tally{})                                // nothing is read from a disk
	values = append(values, nil, nil, nil, nil) // pages are not modelled
	add(m.reads)
	add(m.elapsed)
	values = append(values, queryHash(m.text()), m.shape.hash())
	add(m.rows)
	return catalogRow(queryStatCols, append(values, nil, nil)...)
}

var cachedPlanCols = []outCol{
	vInt("bucketid"), vInt("refcounts"), vInt("usecounts"),
	{name: "size_in_bytes", typ: intType, nullable: true},
	{name: "memory_object_address", typ: sqltype.Type{Kind: sqltype.VarBinary, Length: 8}, nullable: true},
	{name: "cacheobjtype", typ: nvarcharType(34)},
	{name: "objtype", typ: nvarcharType(16)},
	vHandle("plan_handle"),
	{name: "pool_id", typ: intType, nullable: true},
}

func cachedPlanRows(s *session) [][]sqltype.Value {
	return eachRow(s.engine.allPlans(), func(p plan) []sqltype.Value {
		return catalogRow(cachedPlanCols, nil, 1, p.cached.uses.Load(), nil, nil, "Compiled Plan", p.objectType(), p.planHandle(), nil)
	})
}

var sqlTextCols = []outCol{
	{name: "dbid", typ: smallType, nullable: true},
	{name: "objectid", typ: intType, nullable: true},
	{name: "number", typ: smallType, nullable: true},
	vBit("encrypted"), vText("text"),
}

func sqlTextRows(s *session, args []sqltype.Value) ([][]sqltype.Value, error) {
	p, ok := s.engine.planOf(args[0].S)
	if !ok {
		return nil, nil
	}
	return [][]sqltype.Value{catalogRow(sqlTextCols, databaseID, p.objectID(), nil, false, p.fullText())}, nil
}

var queryPlanCols = []outCol{
	{name: "dbid", typ: smallType, nullable: true},
	{name: "objectid", typ: intType, nullable: true},
	{name: "number", typ: smallType, nullable: true},
	vBit("encrypted"),
	{name: "query_plan", typ: sqltype.Type{Kind: sqltype.XML}, nullable: true},
}

func queryPlanRows(s *session, args []sqltype.Value) ([][]sqltype.Value, error) {
	p, ok := s.engine.planOf(args[0].S)
	if !ok {
		return nil, nil
	}
	return [][]sqltype.Value{catalogRow(queryPlanCols, databaseID, p.objectID(), nil, false, s.engine.showplan(p))}, nil
}

var planAttributeCols = []outCol{
	{name: "attribute", typ: sqltype.Type{Kind: sqltype.VarChar, Length: 128, Collation: sqltype.DefaultCollation}},
	vAny("value"), vBit("is_cache_key"),
}

func planAttributeRows(s *session, args []sqltype.Value) ([][]sqltype.Value, error) {
	p, ok := s.engine.planOf(args[0].S)
	if !ok {
		return nil, nil
	}
	row := func(name string, v sqltype.Value, key bool) []sqltype.Value {
		return catalogRow(planAttributeCols, name, v, key)
	}
	rows := [][]sqltype.Value{
		row("set_options", intValue(int64(p.options())), true),
		row("dbid", intValue(databaseID), true),
		row("dbid_execute", intValue(0), true),
		row("date_first", sqltype.Value{Kind: sqltype.TinyInt, N: 7}, true),
		row("sql_handle", sqltype.Value{Kind: sqltype.VarBinary, S: p.sqlHandle()}, false),
	}
	if p.proc != nil {
		rows = append(rows, row("objectid", intValue(int64(p.proc.id)), true))
	}
	return rows, nil
}
