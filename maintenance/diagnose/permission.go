package diagnose

import (
	"errors"
	"fmt"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/sqlserver"
)

// scope is which kind of right a view needs.
type scope uint8

const (
	// ofDatabase: VIEW DATABASE STATE; since SQL Server 2022 VIEW DATABASE
	// PERFORMANCE STATE is enough (the pages of the views). On Azure SQL Database
	// some pages know the second and some do not, so that the first is asked for.
	ofDatabase scope = iota
	// ofServer: VIEW SERVER STATE (2022: VIEW SERVER PERFORMANCE STATE) on a
	// server, the database's on Azure SQL Database, and there on Basic, S0, S1 and
	// in elastic pools a server role.
	ofServer
)

// grant is the statement that gives the right, to whom, and where it is to be
// run.
func (e environment) grant(s scope, permission string) string {
	if strings.HasPrefix(permission, "VIEW SERVER") {
		s = ofServer
	}
	switch {
	case permission == "VIEW DEFINITION":
		return fmt.Sprintf("GRANT VIEW DEFINITION TO %s;", quote(e.user))
	case s == ofServer && e.database() && e.pooled():
		return fmt.Sprintf("ALTER SERVER ROLE ##MS_ServerStateReader## ADD MEMBER %s; -- in master: with %s a right in the database is not enough",
			quote(e.login), e.ServiceObjective)
	case s == ofServer && !e.database():
		if permission == "" {
			permission = "VIEW SERVER STATE"
			if e.major >= 16 && !e.managed() {
				permission = "VIEW SERVER PERFORMANCE STATE"
			}
		}
		return fmt.Sprintf("GRANT %s TO %s; -- in master", permission, quote(e.login))
	default:
		if permission == "" || s == ofServer && strings.HasPrefix(permission, "VIEW SERVER") {
			permission = "VIEW DATABASE STATE"
			if e.major >= 16 && !e.managed() {
				permission = "VIEW DATABASE PERFORMANCE STATE"
			}
		}
		return fmt.Sprintf("GRANT %s TO %s;", permission, quote(e.user))
	}
}

func quote(name string) string { return mssql.TSQLQuoter{}.ID(name) }

// reason is what err means for the reader of a report, and the GRANT where a
// right is missing.
func (e environment) reason(s scope, err error) (reason, remedy string) {
	if permission, ok := sqlserver.Denied(err); ok {
		reason = "A right is missing."
		if permission != "" {
			reason = permission + " is missing."
		}
		return reason, e.grant(s, permission)
	}
	var server mssql.Error
	if errors.As(err, &server) && (server.Number == 208 || server.Number == 207) {
		return "Not to be had on this engine: " + server.Message, ""
	}
	return err.Error(), ""
}
