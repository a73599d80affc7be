package engine

import "azsqloutbox/sqlserver/emulator/internal/sqltype"

var _ = registerViews(map[string]*view{
	"sys.triggers": {triggerCols, func(s *session) [][]sqltype.Value {
		return eachRow(s.engine.catalog.triggers(), func(tr *trigger) []sqltype.Value {
			return catalogRow(triggerCols, tr.name, tr.id, 1, "OBJECT_OR_COLUMN", tr.parentID, "TR", "SQL_TRIGGER", tr.created, tr.modified, false, tr.disabled, tr.notForReplication, false)
		})
	}},
	"sys.trigger_events": {triggerEventCols, func(s *session) [][]sqltype.Value {
		var rows [][]sqltype.Value
		for _, tr := range s.engine.catalog.triggers() {
			for i, name := range []string{"INSERT", "UPDATE", "DELETE"} {
				if tr.events&(1<<i) != 0 {
					rows = append(rows, catalogRow(triggerEventCols, tr.id, i+1, name, true, nil, nil, false, false))
				}
			}
		}
		return rows
	}},
})

// The columns are those of sql-docs, sys.triggers and sys.trigger_events.
var (
	triggerCols = []outCol{
		vName("name"), vInt("object_id"), vTiny("parent_class"), vName("parent_class_desc"), vInt("parent_id"), vType("type"), vName("type_desc"),
		vTime("create_date"), vTime("modify_date"), vBit("is_ms_shipped"), vBit("is_disabled"), vBit("is_not_for_replication"), vBit("is_instead_of_trigger"),
	}
	triggerEventCols = []outCol{
		vInt("object_id"), vInt("type"), vName("type_desc"), vBit("is_trigger_event"), vIntNull("event_group_type"), vName("event_group_type_desc"),
		vBit("is_first"), vBit("is_last"),
	}
)

// triggers are the triggers by id.
func (c *catalog) triggers() []*trigger {
	var list []*trigger
	for _, o := range c.sorted() {
		if tr, ok := o.(*trigger); ok {
			list = append(list, tr)
		}
	}
	return list
}
