package claimbench

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/sqlserver"
)

// CREATE TABLE needs ALTER on the schema too (sql-docs,
// create-table-transact-sql.md, Permissions), and who makes a table in the schema of
// another does not own it: what is done with it needs rights of its own. They are
// asked for on the schema, where alone they can be given before. HAS_PERMS_BY_NAME
// needs none; as a securable NULL is this database, as an answer it is no answer
// (has-perms-by-name-transact-sql.md), and the server says itself what is missing.
const rightsSQL = `DECLARE @kind VARCHAR(10) = 'SCHEMA';
SELECT /* outbox:BenchRights */ HAS_PERMS_BY_NAME(NULL, 'DATABASE', 'CREATE TABLE') AS may_create,
       HAS_PERMS_BY_NAME(@schema, @kind, 'ALTER') AS may_alter,
       HAS_PERMS_BY_NAME(@schema, @kind, 'SELECT') AS may_select,
       HAS_PERMS_BY_NAME(@schema, @kind, 'INSERT') AS may_insert,
       HAS_PERMS_BY_NAME(@schema, @kind, 'UPDATE') AS may_update,
       HAS_PERMS_BY_NAME(@schema, @kind, 'DELETE') AS may_delete,
       USER_NAME() AS user_name;`

// rights are those that a scratch table needs; grants give what is missing.
type rights struct {
	grants []string
}

func quoted(name string) string { return mssql.TSQLQuoter{}.ID(name) }

func readRights(ctx context.Context, conn *sql.Conn, n sqlserver.Names) (rights, error) {
	var create sql.NullBool
	var user sql.NullString
	names := []string{"ALTER", "SELECT", "INSERT", "UPDATE", "DELETE"}
	has := make([]sql.NullBool, len(names))
	into := []any{&create, &has[0], &has[1], &has[2], &has[3], &has[4], &user}
	if err := conn.QueryRowContext(ctx, rightsSQL, sql.Named("schema", quoted(n.WithDefaults().Schema))).Scan(into...); err != nil {
		return rights{}, fmt.Errorf("ask for the rights of this login: %w", err)
	}
	var r rights
	if create.Valid && !create.Bool {
		r.grants = append(r.grants, fmt.Sprintf("GRANT CREATE TABLE TO %s;", quoted(user.String)))
	}
	var missing []string
	for i, name := range names {
		if has[i].Valid && !has[i].Bool {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		r.grants = append(r.grants, fmt.Sprintf("GRANT %s ON SCHEMA::%s TO %s;", strings.Join(missing, ", "), quoted(n.WithDefaults().Schema), quoted(user.String)))
	}
	return r, nil
}
