package engine

import (
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/storage"
)

// What is known of indexes beyond their definition. There are no pages here, so
// that all that counts pages or bytes is NULL.

var _ = registerViews(map[string]*view{
	"sys.dm_db_index_usage_stats": {usageCols, usageRows},
	"sys.dm_db_partition_stats":   {partitionStatCols, partitionStatRows},
})

var _ = registerServerFunctions(map[string]serverFunction{
	"dm_db_index_physical_stats": {[]string{"database_id", "object_id", "index_id", "partition_number", "mode"}, physicalCols, physicalRows},
})

// hobt is a heap or an index that has rows.
type hobt struct {
	table *tableDef
	index *indexDef // nil for a heap
}

func (h hobt) id() int {
	if h.index == nil {
		return 0
	}
	return h.index.id
}

func (h hobt) storage() *storage.Index {
	if h.index == nil {
		return h.table.store.Base()
	}
	return h.index.store
}

func (h hobt) rows() int64 { return h.storage().Rows() }

func (h hobt) ghosts() int64 { return h.storage().Ghosts() }

func (h hobt) typeText() string {
	switch {
	case h.index == nil:
		return "HEAP"
	case h.index.clustered:
		return "CLUSTERED INDEX"
	}
	return "NONCLUSTERED INDEX"
}

// hobtID is sys.partitions.hobt_id.
func (h hobt) hobtID() int64 { return int64(h.table.id)<<16 | int64(h.id()) }

func (e *Engine) hobts() []hobt {
	var list []hobt
	for _, t := range e.catalog.tables() {
		if t.clustered() == nil {
			list = append(list, hobt{t, nil})
		}
		for _, ix := range t.indexes {
			if ix.store != nil {
				list = append(list, hobt{t, ix})
			}
		}
	}
	return list
}

func vTimeNull(name string) outCol { return outCol{name: name, typ: datetimeType, nullable: true} }

// usageCols are those of sys.dm_db_index_usage_stats (sql-docs).
var usageCols = []outCol{
	vSmall("database_id"), vInt("object_id"), vInt("index_id"), vBig("user_seeks"), vBig("user_scans"), vBig("user_lookups"), vBig("user_updates"),
	vTimeNull("last_user_seek"), vTimeNull("last_user_scan"), vTimeNull("last_user_lookup"), vTimeNull("last_user_update"),
	vBig("system_seeks"), vBig("system_scans"), vBig("system_lookups"), vBig("system_updates"),
	vTimeNull("last_system_seek"), vTimeNull("last_system_scan"), vTimeNull("last_system_lookup"), vTimeNull("last_system_update"),
}

// usageRows has a row for each index that has been used.
func usageRows(s *session) [][]sqltype.Value {
	var rows [][]sqltype.Value
	for _, h := range s.engine.hobts() {
		u := s.engine.usage.find(usageKey{h.table.id, h.id()})
		if u == nil {
			continue
		}
		seeks, scans, lookups, updates := u.seeks.n.Load(), u.scans.n.Load(), u.lookups.n.Load(), u.updates.n.Load()
		if seeks+scans+lookups+updates == 0 {
			continue
		}
		rows = append(rows, catalogRow(usageCols, databaseID, h.table.id, h.id(), seeks, scans, lookups, updates,
			u.seeks.when(), u.scans.when(), u.lookups.when(), u.updates.when(), 0, 0, 0, 0, nil, nil, nil, nil))
	}
	return rows
}

// partitionStatCols are those of sys.dm_db_partition_stats (sql-docs).
var partitionStatCols = []outCol{
	vBigNull("partition_id"), vInt("object_id"), vInt("index_id"), vInt("partition_number"),
	vBigNull("in_row_data_page_count"), vBigNull("in_row_used_page_count"), vBigNull("in_row_reserved_page_count"),
	vBigNull("lob_used_page_count"), vBigNull("lob_reserved_page_count"), vBigNull("row_overflow_used_page_count"), vBigNull("row_overflow_reserved_page_count"),
	vBigNull("used_page_count"), vBigNull("reserved_page_count"), vBigNull("row_count"),
}

func partitionStatRows(s *session) [][]sqltype.Value {
	return eachRow(s.engine.hobts(), func(h hobt) []sqltype.Value {
		return catalogRow(partitionStatCols, h.hobtID(), h.table.id, h.id(), 1, nil, nil, nil, nil, nil, nil, nil, nil, nil, h.rows())
	})
}

func vFloatNull(name string) outCol {
	return outCol{name: name, typ: sqltype.Type{Kind: sqltype.Float}, nullable: true}
}

// physicalCols are those of sys.dm_db_index_physical_stats (sql-docs).
var physicalCols = []outCol{
	vSmallNull("database_id"), vIntNull("object_id"), vIntNull("index_id"), vIntNull("partition_number"),
	{name: "index_type_desc", typ: nvarcharType(60), nullable: true},
	{name: "alloc_unit_type_desc", typ: nvarcharType(60), nullable: true},
	{name: "index_depth", typ: tinyType, nullable: true},
	{name: "index_level", typ: tinyType, nullable: true},
	vFloatNull("avg_fragmentation_in_percent"), vBigNull("fragment_count"), vFloatNull("avg_fragment_size_in_pages"), vBigNull("page_count"),
	vFloatNull("avg_page_space_used_in_percent"), vBigNull("record_count"), vBigNull("ghost_record_count"), vBigNull("version_ghost_record_count"),
	vIntNull("min_record_size_in_bytes"), vIntNull("max_record_size_in_bytes"), vFloatNull("avg_record_size_in_bytes"), vBigNull("forwarded_record_count"),
	vBigNull("compressed_page_count"), vBigNull("hobt_id"),
}

// physicalRows are the leaf levels. Records are counted in the modes SAMPLED and
// DETAILED only, as the page says. The engine does not tell ghosts that await
// removal from those that a transaction or snapshot keeps: all count as ghosts.
func physicalRows(s *session, args []sqltype.Value) ([][]sqltype.Value, error) {
	wanted, err := hobtArguments(args)
	if err != nil {
		return nil, err
	}
	mode := strings.ToUpper(args[4].S)
	switch mode {
	case "", "DEFAULT", "LIMITED", "SAMPLED", "DETAILED":
	default:
		return nil, raise(2561, 16, 1, "Parameter 5 is incorrect for this statement.")
	}
	var rows [][]sqltype.Value
	for _, h := range s.engine.hobts() {
		if !wanted(h) {
			continue
		}
		var records, ghosts any
		if mode == "SAMPLED" || mode == "DETAILED" {
			records, ghosts = h.rows(), h.ghosts()
		}
		rows = append(rows, catalogRow(physicalCols, databaseID, h.table.id, h.id(), 1, h.typeText(), "IN_ROW_DATA", nil, 0,
			nil, nil, nil, nil, nil, records, ghosts, nil, nil, nil, nil, nil, nil, h.hobtID()))
	}
	return rows, nil
}
