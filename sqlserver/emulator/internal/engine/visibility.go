package engine

import (
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// statePermission is what a view or function of the server's state asks for, ""
// for none (sql-docs, the permissions of each page, on Azure SQL Database).
func statePermission(key string) string {
	switch {
	case key == "sys.dm_exec_connections":
		return "VIEW DATABASE SECURITY STATE"
	case key == "sys.dm_db_stats_properties", key == "sys.dm_exec_input_buffer": // each gives what one may see
		return ""
	case strings.HasPrefix(key, "sys.dm_"), strings.HasPrefix(key, "sys.query_store_"), key == "sys.database_query_store_options", key == "sys.query_context_settings":
		return "VIEW DATABASE PERFORMANCE STATE"
	}
	return ""
}

// ownSessionViews are the views that show everybody their own session.
var ownSessionViews = map[string]bool{"sys.dm_exec_sessions": true, "sys.dm_exec_requests": true, "sys.dm_exec_connections": true}

// mayCall asks for the permission of a function of the server's state.
func (s *session) mayCall(key string) error {
	p := statePermission(key)
	if p == "" || s.userID() == dboID || s.engine.catalog.may(s.userID(), p, database, 0) {
		return nil
	}
	return s.engine.errDenied(key)
}

// visibleRows are what the session's user sees of a system view: objects that
// it has a permission on, definitions with VIEW DEFINITION (sql-docs, "Metadata
// visibility configuration").
func (s *session) visibleRows(key string, v *view) ([][]sqltype.Value, error) {
	if s.userID() == dboID {
		return v.rows(s), nil
	}
	if err := s.mayCall(key); err != nil {
		at := columnIn(v.cols, "session_id")
		if !ownSessionViews[key] || at < 0 {
			return nil, err
		}
		return keepRows(v.rows(s), func(row []sqltype.Value) bool { return row[at].N == s.spid() }), nil
	}
	if strings.HasPrefix(key, "sys.dm_") {
		return v.rows(s), nil
	}
	rows := v.rows(s)
	seen := s.sight()
	for _, name := range []string{"object_id", "parent_object_id", "parent_id", "major_id"} {
		if at := columnIn(v.cols, name); at >= 0 {
			rows = keepRows(rows, func(row []sqltype.Value) bool { return !seen[int32(row[at].N)].hidden })
		}
	}
	if at := columnIn(v.cols, "object_id"); at >= 0 {
		for i := range v.cols {
			if name := v.cols[i].name; name != "definition" && name != "filter_definition" {
				continue
			}
			for r, row := range rows {
				if seen[int32(row[at].N)].blind {
					rows[r] = append([]sqltype.Value(nil), row...)
					rows[r][i] = sqltype.Value{}
				}
			}
		}
	}
	return rows, nil
}

func keepRows(rows [][]sqltype.Value, keep func(row []sqltype.Value) bool) [][]sqltype.Value {
	var out [][]sqltype.Value
	for _, row := range rows {
		if keep(row) {
			out = append(out, row)
		}
	}
	return out
}

// sighting is what a user lacks of an object: all sight of it, or of its
// definition.
type sighting struct{ hidden, blind bool }

// sight is that of every object that the session's user does not see in full.
func (s *session) sight() map[int32]sighting {
	c, user := s.engine.catalog, s.userID()
	lacks := make(map[int32]sighting)
	for _, o := range c.sorted() {
		base := o.header().id
		if tr, ok := o.(*trigger); ok {
			base = tr.parentID
		}
		sg := sighting{hidden: !c.sees(user, o), blind: !c.may(user, "VIEW DEFINITION", securable{classObject, base}, 0)}
		if !sg.hidden && !sg.blind {
			continue
		}
		lacks[o.header().id] = sg
		if t, ok := o.(*tableDef); ok {
			for _, h := range t.constraints() {
				lacks[h.id] = sg
			}
		}
	}
	return lacks
}

// hides says whether the session's user does not see the object of that id.
func (s *session) hides(id int32) bool {
	return s.userID() != dboID && s.sight()[id].hidden
}
