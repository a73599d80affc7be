package engine

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// security is the database's principals and their permissions. It never changes
// once it is in place: statements put an edited copy there (see edit).
type security struct {
	principals map[int32]*principal
	members    map[int32][]int32 // by role
	grants     []grant
	nextID     int32
}

// principal is a user or a role of the database.
type principal struct {
	id       int32
	name     string
	role     bool
	fixed    bool
	owner    int32
	password string // of a contained user
	// loginless is a user WITHOUT LOGIN.
	loginless bool
	created   time.Time
	modified  time.Time
}

// The principals that every database has (sql-docs, sys.database_principals).
const (
	publicID          = 0
	dboID             = 1
	guestID           = 2
	dbOwnerID         = 16384
	dbAccessAdminID   = 16385
	dbSecurityAdminID = 16386
	dbDDLAdminID      = 16387
	dbDataReaderID    = 16390
	dbDataWriterID    = 16391
	dbDenyReaderID    = 16392
	dbDenyWriterID    = 16393
)

// grant is a row of sys.database_permissions.
type grant struct {
	securable
	// column is 0 for the whole of an object.
	column     int
	grantee    int32
	grantor    int32
	permission string
	state      grantState
}

type grantState byte

const (
	granted          grantState = 'G'
	denied           grantState = 'D'
	grantedWithGrant grantState = 'W'
)

// securable is what a permission is about.
type securable struct {
	class securableClass
	id    int32
}

// securableClass is class of sys.database_permissions.
type securableClass uint8

const (
	classDatabase  securableClass = 0
	classObject    securableClass = 1
	classSchema    securableClass = 3
	classPrincipal securableClass = 4
)

var database = securable{classDatabase, 0}

func newSecurity() *security {
	now := time.Now().UTC()
	s := &security{principals: make(map[int32]*principal), members: make(map[int32][]int32), nextID: 5}
	for _, p := range []principal{
		{id: publicID, name: "public", role: true, fixed: true},
		{id: dboID, name: "dbo"},
		{id: guestID, name: "guest"},
		{id: 3, name: "INFORMATION_SCHEMA"},
		{id: 4, name: "sys"},
		{id: dbOwnerID, name: "db_owner", role: true, fixed: true},
		{id: dbAccessAdminID, name: "db_accessadmin", role: true, fixed: true},
		{id: dbSecurityAdminID, name: "db_securityadmin", role: true, fixed: true},
		{id: dbDDLAdminID, name: "db_ddladmin", role: true, fixed: true},
		{id: 16389, name: "db_backupoperator", role: true, fixed: true},
		{id: dbDataReaderID, name: "db_datareader", role: true, fixed: true},
		{id: dbDataWriterID, name: "db_datawriter", role: true, fixed: true},
		{id: dbDenyReaderID, name: "db_denydatareader", role: true, fixed: true},
		{id: dbDenyWriterID, name: "db_denydatawriter", role: true, fixed: true},
	} {
		p.created, p.modified = now, now
		if p.role {
			p.owner = dboID
		}
		s.principals[p.id] = &p
	}
	s.members[dbOwnerID] = []int32{dboID}
	return s
}

// named finds a principal by its name, nil for none.
func (s *security) named(name string) *principal {
	for _, p := range s.principals {
		if strings.EqualFold(p.name, name) {
			return p
		}
	}
	return nil
}

// sorted are the principals by id.
func (s *security) sorted() []*principal {
	list := slices.Collect(maps.Values(s.principals))
	slices.SortFunc(list, func(a, b *principal) int { return int(a.id - b.id) })
	return list
}

// groups are a principal and every role that it is a member of, public
// included.
func (s *security) groups(id int32) map[int32]bool {
	all := map[int32]bool{id: true, publicID: true}
	for grew := true; grew; {
		grew = false
		for role, members := range s.members {
			if !all[role] && slices.ContainsFunc(members, func(m int32) bool { return all[m] }) {
				all[role], grew = true, true
			}
		}
	}
	return all
}

func (s *security) copy() *security {
	n := &security{principals: maps.Clone(s.principals), members: maps.Clone(s.members), grants: slices.Clone(s.grants), nextID: s.nextID}
	return n
}

// securityPointer is the newest security.
type securityPointer = atomic.Pointer[security]

// editSecurity changes principals and permissions, within the transaction.
func (x *exec) editSecurity(sc *statementScope, edit func(s *security) error) error {
	c := x.s.engine.catalog
	return c.change(sc.undo, func() (func(), error) {
		old := c.security.Load()
		next := old.copy()
		if err := edit(next); err != nil {
			return nil, err
		}
		c.security.Store(next)
		return func() { c.security.Store(old) }, nil
	})
}
