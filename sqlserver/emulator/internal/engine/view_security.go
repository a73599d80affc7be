package engine

import (
	"cmp"
	"slices"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// The columns are those of sql-docs, sys.database_principals,
// sys.database_permissions and sys.database_role_members.
var (
	principalCols = []outCol{
		vName("name"), vInt("principal_id"),
		{name: "type", typ: sqltype.Type{Kind: sqltype.Char, Length: 1, Collation: binaryCollation}},
		vName("type_desc"), vName("default_schema_name"), vTime("create_date"), vTime("modify_date"), vIntNull("owning_principal_id"), vBit("is_fixed_role"),
		vInt("authentication_type"), vName("authentication_type_desc"), vName("default_language_name"), vIntNull("default_language_lcid"),
		vBit("allow_encrypted_value_modifications"),
	}
	permissionCols = []outCol{
		vTiny("class"), vName("class_desc"), vInt("major_id"), vInt("minor_id"), vInt("grantee_principal_id"), vInt("grantor_principal_id"),
		{name: "type", typ: sqltype.Type{Kind: sqltype.Char, Length: 4, Collation: binaryCollation}, nullable: true},
		vName("permission_name"),
		{name: "state", typ: sqltype.Type{Kind: sqltype.Char, Length: 1, Collation: binaryCollation}},
		vName("state_desc"),
	}
	memberCols = []outCol{vInt("role_principal_id"), vInt("member_principal_id")}
)

var _ = registerViews(map[string]*view{
	"sys.database_principals":   {principalCols, principalRows},
	"sys.database_permissions":  {permissionCols, permissionRows},
	"sys.database_role_members": {memberCols, memberRows},
})

// principalRows: users see themselves, roles and the system's; who may define
// users sees all.
func principalRows(s *session) [][]sqltype.Value {
	all := s.engine.catalog.may(s.userID(), "VIEW DEFINITION", database, 0) || s.engine.catalog.may(s.userID(), "ALTER ANY USER", database, 0)
	var rows [][]sqltype.Value
	for _, p := range s.engine.catalog.security.Load().sorted() {
		if !all && !p.role && p.id >= 5 && p.id != s.userID() {
			continue
		}
		code, desc, schema, owner := "S", "SQL_USER", any("dbo"), any(nil)
		auth, authDesc := 0, "NONE"
		switch {
		case p.role:
			code, desc, schema, owner = "R", "DATABASE_ROLE", nil, p.owner
			if p.id == publicID {
				owner = int32(dboID)
			}
		case p.id == dboID:
			auth, authDesc = 1, "INSTANCE"
		case p.id == guestID:
			schema = "guest"
		case p.id < 5:
			schema = nil
		case p.password != "":
			auth, authDesc = 2, "DATABASE"
		}
		rows = append(rows, catalogRow(principalCols, p.name, p.id, code, desc, schema, p.created, p.modified, owner, p.fixed && p.id != publicID, auth, authDesc, nil, nil, false))
	}
	return rows
}

var stateNames = map[grantState]string{granted: "GRANT", denied: "DENY", grantedWithGrant: "GRANT_WITH_GRANT_OPTION"}

var classNames = map[securableClass]string{classDatabase: "DATABASE", classObject: "OBJECT_OR_COLUMN", classSchema: "SCHEMA", classPrincipal: "DATABASE_PRINCIPAL"}

// permissionCodes are type of the permissions that the engine enforces; the
// others are NULL.
var permissionCodes = map[string]string{
	"ALTER": "AL", "CONTROL": "CL", "CONNECT": "CO", "DELETE": "DL", "EXECUTE": "EX", "IMPERSONATE": "IM", "INSERT": "IN", "REFERENCES": "RF",
	"SELECT": "SL", "UPDATE": "UP", "VIEW DEFINITION": "VW", "TAKE OWNERSHIP": "TO", "VIEW CHANGE TRACKING": "VWCT", "VIEW DATABASE STATE": "VWDS",
	"CREATE TABLE": "CRTB", "CREATE PROCEDURE": "CRPR", "CREATE SCHEMA": "CRSM", "CREATE TYPE": "CRTY", "CREATE ROLE": "CRRL", "CREATE SEQUENCE": "CRSO",
	"ALTER ANY USER": "ALUS", "ALTER ANY ROLE": "ALRL", "ALTER ANY SCHEMA": "ALSM", "SHOWPLAN": "SPLN",
}

// permissionRows: users see their own, who may define users or roles all.
func permissionRows(s *session) [][]sqltype.Value {
	c := s.engine.catalog
	sec := c.security.Load()
	all := c.may(s.userID(), "VIEW DEFINITION", database, 0) || c.may(s.userID(), "ALTER ANY ROLE", database, 0)
	groups := sec.groups(s.userID())
	list := slices.Clone(sec.grants)
	slices.SortStableFunc(list, func(a, b grant) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.id, b.id), cmp.Compare(a.column, b.column), cmp.Compare(a.grantee, b.grantee))
	})
	var rows [][]sqltype.Value
	for _, g := range list {
		gone := g.class == classObject && c.schemaOf(g.id) == nil || g.class == classSchema && c.schemaByID(g.id) == nil
		if gone || (!all && !groups[g.grantee]) {
			continue
		}
		var code any
		if short, ok := permissionCodes[g.permission]; ok {
			code = (short + "    ")[:4]
		}
		rows = append(rows, catalogRow(permissionCols, int(g.class), classNames[g.class], g.id, g.column, g.grantee, g.grantor, code, g.permission, string(g.state), stateNames[g.state]))
	}
	return rows
}

func memberRows(s *session) [][]sqltype.Value {
	sec := s.engine.catalog.security.Load()
	groups := sec.groups(s.userID())
	all := s.engine.catalog.may(s.userID(), "VIEW DEFINITION", database, 0)
	var rows [][]sqltype.Value
	for _, role := range sec.sorted() {
		for _, m := range sec.members[role.id] {
			if all || groups[m] || m == dboID {
				rows = append(rows, catalogRow(memberCols, role.id, m))
			}
		}
	}
	return rows
}
