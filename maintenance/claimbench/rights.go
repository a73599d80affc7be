package claimbench

import (
	"context"
	"database/sql"
	"fmt"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/sqlserver"
)

// CREATE TABLE needs both (sql-docs, create-table-transact-sql.md, Permissions);
// HAS_PERMS_BY_NAME none, and is NULL for a schema that is not there
// (has-perms-by-name-transact-sql.md).
const rightsSQL = `-- outbox:BenchRights
SELECT HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'CREATE TABLE') AS may_create,
       HAS_PERMS_BY_NAME(@schema, 'SCHEMA', 'ALTER') AS may_alter,
       USER_NAME() AS user_name;`

type rights struct {
	create bool
	user   string
}

func (r rights) quotedUser() string { return quoted(r.user) }

func quoted(name string) string { return mssql.TSQLQuoter{}.ID(name) }

func readRights(ctx context.Context, conn *sql.Conn, n sqlserver.Names) (rights, error) {
	var create, alter sql.NullBool
	var user sql.NullString
	if err := conn.QueryRowContext(ctx, rightsSQL, sql.Named("schema", quoted(schemaName(n)))).Scan(&create, &alter, &user); err != nil {
		return rights{}, fmt.Errorf("ask for the rights of this login: %w", err)
	}
	return rights{create: create.Bool && alter.Bool, user: user.String}, nil
}
