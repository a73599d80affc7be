package diagnose

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Database is where the outbox lives.
type Database struct {
	Name string `json:"database"`
	// Engine is "Azure SQL Database", "Azure SQL Managed Instance" or "SQL Server".
	Engine  string `json:"engine"`
	Version string `json:"version"`
	// ServiceObjective is empty outside Azure SQL Database.
	ServiceObjective string `json:"service_objective"`
}

// environment is what the other sections depend on. It needs no permission.
type environment struct {
	Database
	edition      int // SERVERPROPERTY('EngineEdition')
	major        int
	user, login  string
	updatability string
	now          time.Time
	zone         time.Duration // of the server, east of UTC
	compat       int
	forced       bool
	rcsi         bool
}

// Engine editions (sql-docs, serverproperty-transact-sql.md).
const (
	editionDatabase = 5
	editionManaged  = 8
	editionFabric   = 12
)

// database says whether the engine is Azure SQL Database, where views of the
// database stand in for those of the server.
func (e environment) database() bool {
	return e.edition == editionDatabase || e.edition == editionFabric
}

func (e environment) managed() bool { return e.edition == editionManaged }

// pooled says whether server-scoped views need a server role: Basic, S0, S1 and
// elastic pools (sys-dm-exec-query-stats-transact-sql.md, Permissions).
func (e environment) pooled() bool {
	switch strings.ToUpper(e.ServiceObjective) {
	case "BASIC", "S0", "S1", "ELASTICPOOL":
		return true
	}
	return false
}

// Properties need no right (databasepropertyex-transact-sql.md,
// serverproperty-transact-sql.md). A login sees its own database in
// sys.databases, there by its name and not by DB_ID() (sys-databases-transact-sql.md).
const diagnoseEnvironmentSQL = `DECLARE @database NVARCHAR(128) = DB_NAME();
SELECT /* outbox:DiagnoseEnvironment */ @database AS database_name,
       CONVERT(INT, SERVERPROPERTY('EngineEdition')) AS engine_edition,
       CONVERT(NVARCHAR(128), SERVERPROPERTY('ProductVersion')) AS version,
       CONVERT(NVARCHAR(128), DATABASEPROPERTYEX(@database, 'ServiceObjective')) AS service_objective,
       CONVERT(NVARCHAR(128), DATABASEPROPERTYEX(@database, 'Updateability')) AS updateability,
       USER_NAME() AS user_name,
       ORIGINAL_LOGIN() AS login_name,
       SYSUTCDATETIME() AS now,
       DATEDIFF(MINUTE, SYSUTCDATETIME(), SYSDATETIME()) AS zone_minutes,
       (SELECT d.compatibility_level FROM sys.databases AS d WHERE d.name = @database) AS compatibility_level,
       (SELECT d.is_parameterization_forced FROM sys.databases AS d WHERE d.name = @database) AS is_parameterization_forced,
       (SELECT d.is_read_committed_snapshot_on FROM sys.databases AS d WHERE d.name = @database) AS is_read_committed_snapshot_on;`

func (s *source) readEnvironment(ctx context.Context) error {
	return s.use(ctx, "ask what database this is", func(ctx context.Context, conn *sql.Conn) error {
		e := &s.env
		var objective, updatability, user, login sql.NullString
		var edition, compat sql.NullInt64
		var forced, rcsi sql.NullBool
		var minutes int64
		err := conn.QueryRowContext(ctx, diagnoseEnvironmentSQL).Scan(&e.Name, &edition, &e.Version, &objective, &updatability,
			&user, &login, &e.now, &minutes, &compat, &forced, &rcsi)
		if err != nil {
			return err
		}
		e.edition, e.compat, e.forced = int(edition.Int64), int(compat.Int64), forced.Bool
		e.rcsi = rcsi.Bool || !rcsi.Valid // who may not see it is told nothing of it
		e.zone = time.Duration(minutes) * time.Minute
		e.user, e.login, e.updatability, e.ServiceObjective = user.String, login.String, updatability.String, objective.String
		major, _, _ := strings.Cut(e.Version, ".")
		e.major, _ = strconv.Atoi(major)
		switch e.edition {
		case editionDatabase:
			e.Engine = "Azure SQL Database"
		case editionManaged:
			e.Engine = "Azure SQL Managed Instance"
		case editionFabric:
			e.Engine = "SQL database in Fabric"
		default:
			e.Engine = "SQL Server"
		}
		return nil
	})
}

// utc is a time of those views that tell the server's own time, as UTC: Azure SQL
// Database is always on UTC, a Managed Instance (managed-instance/timezones-overview.md)
// and a server need not be. One from before a change to or from summer time is an
// hour off.
func (e environment) utc(local time.Time) time.Time {
	if local.IsZero() {
		return local
	}
	// The two clocks were read one behind the other; zones are quarters of an hour.
	return local.Add(-e.zone.Round(15 * time.Minute))
}

// headline is the database in a few words.
func (d Database) headline() string {
	if d.ServiceObjective == "" {
		return fmt.Sprintf("%s, %s %s", d.Name, d.Engine, d.Version)
	}
	return fmt.Sprintf("%s, %s %s", d.Name, d.Engine, d.ServiceObjective)
}
