package diagnose

import (
	"context"
	"time"

	"azsqloutbox/sqlserver"
)

// MissingRight says whether err is that a right is missing to read the server's
// own views (the plan cache, transactions), and then the statement that gives it,
// for this engine and this login.
func MissingRight(ctx context.Context, conn *sqlserver.Dedicated, names sqlserver.Names, err error) (remedy string, missing bool) {
	named, missing := sqlserver.Denied(err)
	if !missing {
		return "", false
	}
	s := source{names: names, conn: conn, limit: 10 * time.Second}
	if s.readEnvironment(ctx) != nil {
		return "GRANT VIEW DATABASE STATE to this user (on a server of your own VIEW SERVER STATE, to its login)", true
	}
	return s.env.grant(ofServer, named), true
}
