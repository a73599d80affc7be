package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
)

// SERVERPROPERTY needs no right (sql-docs, serverproperty-transact-sql.md).
const editionSQL = `DECLARE @edition NVARCHAR(128) = CONVERT(NVARCHAR(128), SERVERPROPERTY('Edition'));
SELECT /* outbox:Edition */ @edition AS edition,
       CONVERT(INT, SERVERPROPERTY('EngineEdition')) AS engine_edition,
       CONVERT(NVARCHAR(128), SERVERPROPERTY('ProductVersion')) AS version;`

// Edition is which SQL Server answers.
type Edition struct {
	// Name is "SQL Azure", "Standard Edition (64-bit)", …
	Name    string
	Version string
	// Engine is SERVERPROPERTY('EngineEdition').
	Engine int
}

// ReadEdition asks the server what it is.
func ReadEdition(ctx context.Context, conn *sql.Conn) (Edition, error) {
	var e Edition
	var name, version sql.NullString
	var engine sql.NullInt64
	if err := conn.QueryRowContext(ctx, editionSQL).Scan(&name, &engine, &version); err != nil {
		return e, fmt.Errorf("ask for the edition of the server: %w", err)
	}
	return Edition{Name: name.String, Version: version.String, Engine: int(engine.Int64)}, nil
}

// Online says whether indexes can be made and rebuilt, and the type of a column
// changed, while others work: in Enterprise, Developer and Evaluation (3), Azure SQL
// Database (5), Managed Instance (8) and SQL database in Fabric (12); in no Standard,
// Web or Express (sql-docs, serverproperty-transact-sql.md,
// perform-index-operations-online.md, editions-and-components-of-sql-server-2022.md).
func (e Edition) Online() bool {
	switch e.Engine {
	case 3, 5, 8, 12:
		return true
	}
	return false
}

func (e Edition) String() string {
	return fmt.Sprintf("%s %s (engine edition %d)", e.Name, e.Version, e.Engine)
}
