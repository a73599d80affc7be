package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
)

// need is one right of a worker.
type need struct {
	object     string // quoted
	permission string
}

// needs are the rights of scripts/090_grants.sql.
func needs(n sqlserver.Names) []need {
	var all []need
	for _, of := range []struct {
		object      string
		permissions []string
	}{
		{n.Events(), []string{"SELECT", "UPDATE", "VIEW DEFINITION"}},
		{n.Receipts(), []string{"SELECT", "INSERT", "DELETE"}},
		{n.Workers(), []string{"SELECT", "INSERT", "UPDATE", "DELETE"}},
		{n.Controls(), []string{"SELECT"}},
	} {
		for _, p := range of.permissions {
			all = append(all, need{of.object, p})
		}
	}
	return all
}

// grants is the script that gives a worker these rights.
func grants(n sqlserver.Names) (string, error) {
	return scripts.Grants(scripts.Options{Schema: n.Schema, Table: n.Table})
}

// HAS_PERMS_BY_NAME is about the current user and needs no right; NULL for an
// object that is not there or a name that is no permission (sql-docs,
// has-perms-by-name-transact-sql.md).
const doctorRightSQL = `SELECT /* outbox:DoctorRight */ HAS_PERMS_BY_NAME(@object, 'OBJECT', @permission) AS has;`

// Rights that a worker has no use for: it could do harm with them, and so could
// whoever gets hold of its identity.
const doctorExcessSQL = `DECLARE @yes INT = 1;
SELECT /* outbox:DoctorExcess */ CASE WHEN IS_ROLEMEMBER('db_owner') = @yes THEN 'member of db_owner; ' ELSE '' END
     + CASE WHEN IS_ROLEMEMBER('db_ddladmin') = @yes THEN 'member of db_ddladmin; ' ELSE '' END
     + CASE WHEN IS_ROLEMEMBER('db_datawriter') = @yes THEN 'member of db_datawriter; ' ELSE '' END
     + CASE WHEN HAS_PERMS_BY_NAME(@events, 'OBJECT', 'DELETE') = @yes THEN 'may delete events; ' ELSE '' END
     + CASE WHEN HAS_PERMS_BY_NAME(@events, 'OBJECT', 'ALTER') = @yes THEN 'may change the table; ' ELSE '' END AS excess;`

func (v *visit) rights(ctx context.Context) ([]Finding, error) {
	const check = "rights"
	var missing []string
	for _, n := range needs(v.Names) {
		var has sql.NullBool
		err := v.conn.QueryRowContext(ctx, doctorRightSQL, sql.Named("object", n.object), sql.Named("permission", n.permission)).Scan(&has)
		if err != nil {
			return nil, err
		}
		if !has.Bool {
			missing = append(missing, n.permission+" on "+n.object)
		}
	}
	var excess string
	if err := v.conn.QueryRowContext(ctx, doctorExcessSQL, sql.Named("events", v.Events())).Scan(&excess); err != nil {
		return nil, err
	}
	whose := fmt.Sprintf("user %s", v.facts.user)
	switch {
	case len(missing) > 0:
		return one(check, NoGo, whose+" lacks "+strings.Join(missing, ", "),
			"run the script that outboxctl doctor --grants"+v.Names.Flags()+" prints, and add the worker's user to its role"), nil
	case excess != "":
		return one(check, Warn, whose+" has all that a worker needs and more: "+strings.TrimSuffix(excess, "; ")+". Fine for the person who looks, not for a worker",
			"run doctor as the worker's identity, or give it the role that outboxctl doctor --grants"+v.Names.Flags()+" makes and nothing else"), nil
	}
	return one(check, OK, whose+" has what a worker needs, and none of what could do harm", ""), nil
}
