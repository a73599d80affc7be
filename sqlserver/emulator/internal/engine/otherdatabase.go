package engine

import (
	"strings"
)

// systemDatabases are those of every SQL Server.
var systemDatabases = map[string]bool{"master": true, "model": true, "msdb": true, "tempdb": true}

// isOther says whether a name of several parts is of another database.
func (e *Engine) isOther(parts []string) bool {
	if len(parts) < 3 {
		return false
	}
	db := parts[len(parts)-3]
	return db != "" && !strings.EqualFold(db, e.config.Database)
}

// reach refuses a name that leads to another server, or to a database that is there
// and holds nothing here. Azure SQL Database takes the names of its own and of
// tempdb alone (sql-docs, azure-sql/database/transact-sql-tsql-differences-sql-server.md).
// Of a database that is not there the caller finds no object (sql-docs,
// mssqlserver-208-database-engine-error.md).
func (e *Engine) reach(parts []string) error {
	server, other := len(parts) > 3 && parts[0] != "", e.isOther(parts)
	if !server && !other {
		return nil
	}
	db := strings.ToLower(parts[len(parts)-3])
	switch {
	case e.config.Edition == AzureSQLDatabase && (server || db != "tempdb"):
		return raiseBatch(40515, 15, 1, "Reference to database and/or server name in '%s' is not supported in this version of SQL Server.", strings.Join(parts, "."))
	case server:
		return raiseBatch(7202, 11, 2, "Could not find server '%s' in sys.servers. Verify that the correct server name was specified.", parts[0])
	case systemDatabases[db]:
		return notModelled("objects of the database %s", db)
	}
	return nil
}

// local is reach for what would be done in the other database.
func (e *Engine) local(parts []string) error {
	if err := e.reach(parts); err != nil {
		return err
	}
	if e.isOther(parts) {
		return notModelled("objects in other databases")
	}
	return nil
}
