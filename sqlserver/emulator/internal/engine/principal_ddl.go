package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/sqlc-dev/teesql/ast"
)

// securityStatement builds the statements about principals and permissions; ok
// is false for others.
func (b *builder) securityStatement(st ast.Statement) (n node, ok bool, err error) {
	switch st := st.(type) {
	case *ast.CreateUserStatement:
		n = ddl(func(x *exec, sc *statementScope) error { return x.createUser(sc, st) })
	case *ast.DropUserStatement:
		n = ddl(func(x *exec, sc *statementScope) error { return x.dropUser(sc, st) })
	case *ast.CreateRoleStatement:
		n = ddl(func(x *exec, sc *statementScope) error { return x.createRole(sc, st) })
	case *ast.DropRoleStatement:
		n = ddl(func(x *exec, sc *statementScope) error { return x.dropRole(sc, st) })
	case *ast.AlterRoleStatement:
		n = ddl(func(x *exec, sc *statementScope) error { return x.alterRole(sc, st) })
	case *ast.GrantStatement:
		state := granted
		if st.WithGrantOption {
			state = grantedWithGrant
		}
		n, err = b.grantStatement(&grantSyntax{permissions: st.Permissions, principals: st.Principals, on: st.SecurityTargetObject, as: st.AsClause, state: state})
	case *ast.DenyStatement:
		n, err = b.grantStatement(&grantSyntax{permissions: st.Permissions, principals: st.Principals, on: st.SecurityTargetObject, as: st.AsClause, state: denied, cascade: st.CascadeOption})
	case *ast.RevokeStatement:
		n, err = b.grantStatement(&grantSyntax{permissions: st.Permissions, principals: st.Principals, on: st.SecurityTargetObject, as: st.AsClause, cascade: st.CascadeOption, optionOnly: st.GrantOptionFor})
	case *ast.ExecuteAsStatement:
		n, err = b.executeAs(st)
	case *ast.RevertStatement:
		if st.Cookie != nil {
			return nil, true, notModelled("REVERT WITH COOKIE")
		}
		n = action(func(x *exec) error {
			if n := len(x.s.users); n > max(x.users, 1) {
				x.s.users = x.s.users[:n-1]
			}
			return nil
		})
	default:
		return nil, false, nil
	}
	return n, true, err
}

func errPrincipal(verb, kind, name string) error {
	return raise(15151, 16, 1, "Cannot %s the %s '%s', because it does not exist or you do not have permission.", verb, kind, name)
}

func errMayNot() error {
	return raise(15247, 16, 1, "User does not have permission to perform this action.")
}

// createUser is CREATE USER WITHOUT LOGIN and WITH PASSWORD. The one login that
// there is has its user, dbo.
func (x *exec) createUser(sc *statementScope, st *ast.CreateUserStatement) error {
	name := st.Name.Value
	p := &principal{name: name, created: time.Now().UTC()}
	p.modified = p.created
	if o := st.UserLoginOption; o != nil {
		switch o.UserLoginOptionType {
		case "WithoutLogin":
			p.loginless = true
		case "Login", "ForLogin", "FromLogin":
			return raise(15007, 16, 1, "'%s' is not a valid login or you do not have permission.", o.Identifier.Value)
		default:
			return notModelled("CREATE USER FROM %s", strings.ToUpper(o.UserLoginOptionType))
		}
	}
	for _, o := range st.UserOptions {
		switch o := o.(type) {
		case *ast.LiteralPrincipalOption:
			lit, ok := o.Value.(*ast.StringLiteral)
			if o.OptionKind != "Password" || !ok {
				return notModelled("CREATE USER WITH %s", o.OptionKind)
			}
			p.password = lit.Value
		case *ast.IdentifierPrincipalOption:
			if o.OptionKind != "DefaultSchema" || !strings.EqualFold(o.Identifier.Value, "dbo") {
				return notModelled("CREATE USER WITH %s other than dbo", o.OptionKind)
			}
		case *ast.DefaultSchemaPrincipalOption:
			if o.Identifier == nil || !strings.EqualFold(o.Identifier.Value, "dbo") {
				return notModelled("a default schema other than dbo")
			}
		default:
			return notModelled("CREATE USER WITH %s", syntaxName(o))
		}
	}
	if st.UserLoginOption == nil && p.password == "" { // FOR LOGIN of the same name
		return raise(15007, 16, 1, "'%s' is not a valid login or you do not have permission.", name)
	}
	if !x.mayInDatabase("CREATE USER") {
		return errMayNot()
	}
	self := x.s.userID()
	return x.editSecurity(sc, func(s *security) error {
		if err := s.add(p); err != nil {
			return err
		}
		s.grants = append(s.grants, grant{database, 0, p.id, self, "CONNECT", granted})
		return nil
	})
}

// add gives a new principal its id.
func (s *security) add(p *principal) error {
	if s.named(p.name) != nil {
		return raise(15023, 16, 1, "User, group, or role '%s' already exists in the current database.", p.name)
	}
	p.id = s.nextID
	s.nextID++
	s.principals[p.id] = p
	return nil
}

func (s *security) remove(id int32) {
	delete(s.principals, id)
	delete(s.members, id)
	for role, members := range s.members {
		s.members[role] = slices.DeleteFunc(slices.Clone(members), func(m int32) bool { return m == id })
	}
	s.grants = slices.DeleteFunc(s.grants, func(g grant) bool { return g.grantee == id || g.securable == securable{classPrincipal, id} })
}

func (x *exec) dropUser(sc *statementScope, st *ast.DropUserStatement) error {
	c, name := x.s.engine.catalog, st.Name.Value
	p := c.security.Load().named(name)
	if p == nil || p.role || p.id < 5 || !x.mayInDatabase("ALTER ANY USER") {
		if st.IsIfExists && p == nil {
			return nil
		}
		return errPrincipal("drop", "user", name)
	}
	if err := c.ownsNothing(p.id); err != nil {
		return err
	}
	return x.editSecurity(sc, func(s *security) error {
		s.remove(p.id)
		return nil
	})
}

func (c *catalog) ownsNothing(id int32) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, s := range c.schemas {
		if s.owner == id {
			return raise(15138, 16, 1, "The database principal owns a schema in the database, and cannot be dropped.")
		}
	}
	for _, p := range c.security.Load().principals {
		if p.role && p.owner == id {
			return raise(15421, 16, 1, "The database principal owns a database role and cannot be dropped.")
		}
	}
	return nil
}

func (x *exec) createRole(sc *statementScope, st *ast.CreateRoleStatement) error {
	p := &principal{name: st.Name.Value, role: true, owner: x.s.userID(), created: time.Now().UTC()}
	p.modified = p.created
	if !x.mayInDatabase("CREATE ROLE") {
		return errMayNot()
	}
	if st.Owner != nil {
		if p.owner = x.s.engine.catalog.userNamed(st.Owner.Value); p.owner < 0 || (p.owner != x.s.userID() && x.s.userID() != dboID) {
			return errPrincipal("find", "user", st.Owner.Value)
		}
	}
	return x.editSecurity(sc, func(s *security) error { return s.add(p) })
}

func (x *exec) dropRole(sc *statementScope, st *ast.DropRoleStatement) error {
	c, name := x.s.engine.catalog, st.Name.Value
	p := c.security.Load().named(name)
	if p == nil || !p.role || p.fixed || !x.mayAlterRole(p) {
		if st.IsIfExists && p == nil {
			return nil
		}
		return errPrincipal("drop", "role", name)
	}
	if len(c.security.Load().members[p.id]) > 0 {
		return raise(15144, 16, 1, "The role has members. It must be empty before it can be dropped.")
	}
	if err := c.ownsNothing(p.id); err != nil {
		return err
	}
	return x.editSecurity(sc, func(s *security) error {
		s.remove(p.id)
		return nil
	})
}

// mayAlterRole: a fixed role is changed by those who have CONTROL of the
// database.
func (x *exec) mayAlterRole(role *principal) bool {
	c, user := x.s.engine.catalog, x.s.userID()
	switch {
	case role.fixed:
		return c.may(user, "CONTROL", database, 0)
	case user == dboID, c.security.Load().groups(user)[role.owner]:
		return true
	}
	return x.mayInDatabase("ALTER ANY ROLE") || c.may(user, "ALTER", securable{classPrincipal, role.id}, 0)
}

func (x *exec) alterRole(sc *statementScope, st *ast.AlterRoleStatement) error {
	now := x.s.engine.catalog.security.Load()
	role := now.named(st.Name.Value)
	if role == nil || !role.role || !x.mayAlterRole(role) {
		return errPrincipal("alter", "role", st.Name.Value)
	}
	if role.id == publicID {
		return raise(15081, 16, 1, "Membership of the public role cannot be changed.")
	}
	var name string
	add := false
	switch a := st.Action.(type) {
	case *ast.AddMemberAlterRoleAction:
		name, add = a.Member.Value, true
	case *ast.DropMemberAlterRoleAction:
		name = a.Member.Value
	default:
		return notModelled("ALTER ROLE WITH NAME")
	}
	member := now.named(name)
	switch {
	case member == nil || member.fixed && add:
		return errPrincipal(map[bool]string{true: "add", false: "drop"}[add], "principal", name)
	case member.id == dboID:
		return raise(15405, 16, 1, "Cannot use the special principal 'dbo'.")
	case add && now.groups(role.id)[member.id]:
		return raise(15413, 16, 1, "Cannot make a role a member of itself.")
	}
	return x.editSecurity(sc, func(s *security) error {
		list := slices.DeleteFunc(slices.Clone(s.members[role.id]), func(m int32) bool { return m == member.id })
		if add {
			list = append(list, member.id)
		}
		s.members[role.id] = list
		return nil
	})
}
