package engine

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/teesql/ast"
)

// grantSyntax is GRANT, DENY or REVOKE, which has no state.
type grantSyntax struct {
	permissions []*ast.Permission
	principals  []*ast.SecurityPrincipal
	on          *ast.SecurityTargetObject
	as          *ast.Identifier
	state       grantState
	cascade     bool
	// optionOnly is REVOKE GRANT OPTION FOR.
	optionOnly bool
}

func (b *builder) grantStatement(st *grantSyntax) (node, error) {
	if st.as != nil {
		return nil, notModelled("GRANT, DENY and REVOKE AS a principal")
	}
	if len(st.principals) == 0 {
		return nil, errSyntax("TO")
	}
	return ddl(func(x *exec, sc *statementScope) error { return x.grant(sc, st) }), nil
}

func (x *exec) grant(sc *statementScope, st *grantSyntax) error {
	on, o, err := x.securable(st.on)
	if err != nil {
		return err
	}
	var columns []*ast.Identifier
	if st.on != nil {
		columns = st.on.Columns
	}
	var changes []grant
	for _, p := range st.permissions {
		names := make([]string, len(p.Identifiers))
		for i, id := range p.Identifiers {
			names[i] = strings.ToUpper(id.Value)
		}
		name := strings.Join(names, " ")
		switch name {
		case "EXEC":
			name = "EXECUTE"
		case "ALL", "ALL PRIVILEGES":
			return notModelled("GRANT ALL")
		}
		if err := x.mayGrant(name, on, o, st.on); err != nil {
			return err
		}
		ids, err := grantColumns(name, on, o, append(slices.Clone(columns), p.Columns...))
		if err != nil {
			return err
		}
		for _, id := range ids {
			changes = append(changes, grant{securable: on, column: id, permission: name, grantor: x.s.userID(), state: st.state})
		}
	}
	var grantees []int32
	for _, p := range st.principals {
		id := int32(publicID)
		if p.PrincipalType != ast.PrincipalTypePublic {
			if id = x.s.engine.catalog.userNamed(p.Identifier.Value); id < 0 {
				return errPrincipal("find", "user", p.Identifier.Value)
			}
		}
		if id == dboID || id == x.s.userID() || id == 3 || id == 4 {
			return raise(4617, 16, 1, "Cannot grant, deny, or revoke permissions to or from special roles.")
		}
		if q := x.s.engine.catalog.security.Load().principals[id]; q.fixed && id != publicID {
			return raise(4617, 16, 1, "Cannot grant, deny, or revoke permissions to or from special roles.")
		}
		grantees = append(grantees, id)
	}
	return x.editSecurity(sc, func(s *security) error {
		for _, id := range grantees {
			for _, g := range changes {
				g.grantee = id
				if err := s.apply(g, st); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// apply puts one permission in place of what was there.
func (s *security) apply(g grant, st *grantSyntax) error {
	same := func(old grant) bool {
		return old.securable == g.securable && old.grantee == g.grantee && old.permission == g.permission && old.column == g.column
	}
	at := slices.IndexFunc(s.grants, same)
	if at >= 0 && s.grants[at].state == grantedWithGrant && g.state != grantedWithGrant && g.state != granted && !st.cascade {
		return raise(4611, 16, 1, "To revoke or deny grantable privileges, specify the CASCADE option.")
	}
	if st.cascade && slices.ContainsFunc(s.grants, func(old grant) bool {
		return old.grantor == g.grantee && old.permission == g.permission && old.securable == g.securable
	}) {
		return notModelled("CASCADE over what the principal has granted on")
	}
	switch {
	case st.optionOnly:
		if at >= 0 && s.grants[at].state == grantedWithGrant {
			s.grants[at].state = granted
		}
	case g.state == 0:
		// REVOKE of the whole takes the columns with it
		s.grants = slices.DeleteFunc(s.grants, func(old grant) bool {
			return same(old) || (g.column == 0 && old.column != 0 && old.securable == g.securable && old.grantee == g.grantee && old.permission == g.permission)
		})
	case at >= 0:
		if s.grants[at].state != grantedWithGrant || g.state != granted {
			s.grants[at] = g
		}
	default:
		if g.column == 0 { // the whole replaces what columns had
			s.grants = slices.DeleteFunc(s.grants, func(old grant) bool {
				return old.column != 0 && old.securable == g.securable && old.grantee == g.grantee && old.permission == g.permission
			})
		}
		s.grants = append(s.grants, g)
	}
	return nil
}

// securable finds what ON names; without ON it is the database.
func (x *exec) securable(on *ast.SecurityTargetObject) (securable, object, error) {
	if on == nil {
		return database, nil, nil
	}
	parts := identifiers(on.ObjectName.MultiPartIdentifier)
	if err := x.s.engine.local(parts); err != nil {
		return securable{}, nil, err
	}
	full := strings.Join(parts, ".")
	c := x.s.engine.catalog
	switch on.ObjectKind {
	case "", "NotSpecified", "Object":
		schema := "dbo"
		if len(parts) > 1 && parts[len(parts)-2] != "" {
			schema = parts[len(parts)-2]
		}
		o := c.find(nameOf(schema, parts[len(parts)-1]))
		switch o.(type) {
		case *tableDef, *procedure, *sequence:
			if c.sees(x.s.userID(), o) {
				return securable{classObject, o.header().id}, o, nil
			}
		case nil, *trigger, *tableTypeDef:
		}
		return securable{}, nil, errPrincipal("find", "object", parts[len(parts)-1])
	case "Schema":
		if s := c.schema(full); s != nil {
			return securable{classSchema, s.id}, nil, nil
		}
		return securable{}, nil, errPrincipal("find", "schema", full)
	case "Database":
		if strings.EqualFold(full, x.s.engine.config.Database) {
			return database, nil, nil
		}
		return securable{}, nil, errPrincipal("find", "database", full)
	case "User":
		if id := c.userNamed(full); id >= 0 {
			return securable{classPrincipal, id}, nil, nil
		}
		return securable{}, nil, errPrincipal("find", "user", full)
	}
	return securable{}, nil, notModelled("permissions on %s", strings.ToUpper(on.ObjectKind))
}

// mayGrant: those who have CONTROL, db_securityadmin, and who was granted the
// permission WITH GRANT OPTION.
func (x *exec) mayGrant(permission string, on securable, o object, st *ast.SecurityTargetObject) error {
	if !slices.Contains(permissionsOf(on, o), permission) {
		if slices.Contains(databasePermissions, permission) || slices.Contains(objectPermissions["U "], permission) || permission == "IMPERSONATE" || permission == "CREATE SEQUENCE" {
			return raise(4606, 16, 1, "Granted or revoked privilege %s is not compatible with object.", permission)
		}
		return errSyntax(permission)
	}
	c, user := x.s.engine.catalog, x.s.userID()
	s := c.security.Load()
	groups := s.groups(user)
	if c.may(user, "CONTROL", on, 0) || groups[dbSecurityAdminID] ||
		slices.ContainsFunc(s.grants, func(g grant) bool {
			return groups[g.grantee] && g.securable == on && g.permission == permission && g.state == grantedWithGrant
		}) {
		return nil
	}
	if st == nil {
		return raise(4613, 16, 1, "Grantor does not have GRANT permission.")
	}
	parts := identifiers(st.ObjectName.MultiPartIdentifier)
	return errPrincipal("find", "object", parts[len(parts)-1])
}

// grantColumns are the ids of the columns that a permission is about, 0 for the
// whole.
func grantColumns(permission string, on securable, o object, names []*ast.Identifier) ([]int, error) {
	if len(names) == 0 {
		return []int{0}, nil
	}
	t, ok := o.(*tableDef)
	if !ok || !columnPermissions[permission] {
		return nil, raise(1020, 15, 1, "Sub-entity lists (such as column or security expressions) cannot be specified for entity-level permissions.")
	}
	var ids []int
	for _, n := range names {
		at := t.column(n.Value)
		if at < 0 {
			return nil, raise(1911, 16, 1, "Column name '%s' does not exist in the target table or view.", n.Value)
		}
		ids = append(ids, t.columns[at].id)
	}
	return ids, nil
}
