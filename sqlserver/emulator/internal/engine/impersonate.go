package engine

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// userID is the user that permissions are asked of.
func (s *session) userID() int32 { return s.users[len(s.users)-1] }

// userOf is a login's user: a contained user's own, dbo for the others.
func (e *Engine) userOf(l tds.Login) int32 {
	if p := e.contained(l.User); p != nil {
		return p.id
	}
	return dboID
}

func (e *Engine) contained(name string) *principal {
	if strings.EqualFold(name, e.config.Admin) {
		return nil
	}
	if p := e.catalog.security.Load().named(name); p != nil && p.password != "" {
		return p
	}
	return nil
}

// Authenticate says whether a contained user has that password, and CONNECT.
func (e *Engine) Authenticate(user, password string) bool {
	p := e.contained(user)
	if p == nil {
		return false
	}
	given, want := sha256.Sum256([]byte(password)), sha256.Sum256([]byte(p.password))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1 && e.catalog.may(p.id, "CONNECT", database, 0)
}

// executeAs is EXECUTE AS USER, to the next REVERT or the end of the module.
func (b *builder) executeAs(st *ast.ExecuteAsStatement) (node, error) {
	if st.Cookie != nil || st.WithNoRevert {
		return nil, notModelled("EXECUTE AS WITH NO REVERT or COOKIE")
	}
	if st.ExecuteContext == nil || st.ExecuteContext.Kind != "User" {
		return nil, notModelled("EXECUTE AS LOGIN and CALLER")
	}
	name := b.expression(st.ExecuteContext.Principal, lineOf(st))
	return action(func(x *exec) error {
		v, err := x.value(name)
		if err != nil {
			return err
		}
		id, err := x.impersonated(sqltype.Format(v))
		if err != nil {
			return err
		}
		x.s.users = append(x.s.users[:len(x.s.users):len(x.s.users)], id)
		return nil
	}), nil
}

// impersonated finds the user of an EXECUTE AS, who must be there, may be
// impersonated, and may connect.
func (x *exec) impersonated(name string) (int32, error) {
	c := x.s.engine.catalog
	p := c.security.Load().named(name)
	if p == nil || p.role || p.id == 3 || p.id == 4 || !c.may(x.s.userID(), "IMPERSONATE", securable{classPrincipal, p.id}, 0) {
		return 0, raise(15517, 16, 1, "Cannot execute as the database principal because the principal \"%s\" does not exist, this type of principal cannot be impersonated, or you do not have permission.", name)
	}
	if !c.may(p.id, "CONNECT", database, 0) {
		return 0, raise(916, 14, 1, "The server principal \"%s\" is not able to access the database \"%s\" under the current security context.", p.name, x.s.engine.config.Database)
	}
	return p.id, nil
}

// runsAs is the user that a procedure's EXECUTE AS names, 0 for its caller.
func (x *exec) runsAs(as *ast.ExecuteAsClause, schema string) (int32, error) {
	if as == nil {
		return 0, nil
	}
	switch as.ExecuteAsOption {
	case "Caller":
		return 0, nil
	case "Self":
		return x.s.userID(), nil
	case "Owner":
		return x.s.engine.catalog.ownerOf(&objectHeader{schema: schema}), nil
	case "String":
		return x.impersonated(as.Literal.Value)
	}
	return 0, errSyntax("AS")
}

// userName is USER_NAME(), and loginName SUSER_SNAME(): a user without a login
// has only a SID.
func (s *session) userName() string {
	if p := s.engine.catalog.security.Load().principals[s.userID()]; p != nil {
		return p.name
	}
	return "guest"
}

func (s *session) loginName() string {
	if len(s.users) == 1 {
		return s.login.User
	}
	p := s.engine.catalog.security.Load().principals[s.userID()]
	switch {
	case p == nil || p.loginless:
		sum := sha256.Sum256([]byte(s.userName()))
		return fmt.Sprintf("S-1-9-3-%d-%d-%d-%d", binary.LittleEndian.Uint32(sum[0:]), binary.LittleEndian.Uint32(sum[4:]), binary.LittleEndian.Uint32(sum[8:]), binary.LittleEndian.Uint32(sum[12:]))
	case p.id == dboID:
		return s.engine.config.Admin
	}
	return p.name
}

// mayDefine refuses CREATE and ALTER of a procedure.
func (x *exec) mayDefine(owner, name, kind string) error {
	if o := x.s.engine.catalog.find(nameOf(owner, name)); o != nil {
		if x.mayOn("ALTER", o.header()) {
			return nil
		}
		return raise(3704, 16, 1, "User does not have permission to perform this operation on %s '%s'.", strings.ToLower(kind), name)
	}
	return x.mayCreate("CREATE "+kind, owner)
}

func (x *exec) mayAlterParent(tr *trigger) bool {
	t := x.s.engine.catalog.find(tr.parent)
	return t != nil && x.mayOn("ALTER", t.header())
}
