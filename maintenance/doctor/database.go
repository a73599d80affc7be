package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// databaseFacts are what several checks need. Zero before the first has read
// them.
type databaseFacts struct {
	now                        time.Time
	login, user                string
	edition                    int64
	objective, updateability   string
	snapshot, recovery, forced sql.NullBool
}

// Properties need no right (sql-docs, databasepropertyex-transact-sql.md,
// serverproperty-transact-sql.md). A login sees its own database in
// sys.databases, there by its name (sys-databases-transact-sql.md, which also has
// is_accelerated_database_recovery_on since SQL Server 2019).
const doctorDatabaseSQL = `DECLARE @database NVARCHAR(128) = DB_NAME();
SELECT /* outbox:DoctorDatabase */ SYSUTCDATETIME() AS now, SUSER_SNAME() AS login_name, USER_NAME() AS user_name,
       CONVERT(BIGINT, SERVERPROPERTY('EngineEdition')) AS edition,
       ISNULL(CONVERT(NVARCHAR(128), DATABASEPROPERTYEX(@database, 'ServiceObjective')), N'') AS objective,
       ISNULL(CONVERT(NVARCHAR(128), DATABASEPROPERTYEX(@database, 'Updateability')), N'') AS updateability,
       d.is_read_committed_snapshot_on, d.is_accelerated_database_recovery_on, d.is_parameterization_forced
FROM   sys.databases AS d
WHERE  d.name = @database;`

// skewToNotice is far above a round trip; nothing of the worker depends on this
// clock, but people compare log lines with rows.
const skewToNotice = 5 * time.Second

func (v *visit) connection(ctx context.Context) ([]Finding, error) {
	f := &v.facts
	asked := time.Now()
	err := v.conn.QueryRowContext(ctx, doctorDatabaseSQL).Scan(&f.now, &f.login, &f.user, &f.edition, &f.objective, &f.updateability,
		&f.snapshot, &f.recovery, &f.forced)
	answered := time.Now()
	if err != nil {
		return nil, err
	}
	found := one("connection", OK, fmt.Sprintf("connected as %s, user %s of the database", f.login, f.user), "")
	skew := f.now.Sub(asked.Add(answered.Sub(asked) / 2)).Round(time.Millisecond)
	if skew.Abs() > skewToNotice {
		return append(found, Finding{
			Check: "clock", Verdict: Warn, Found: fmt.Sprintf("this machine's clock and the database's differ by %s", skew.Abs()),
			Remedy: "nothing in the table depends on this machine's clock, but its log lines will not match the rows: set it right",
		}), nil
	}
	return append(found, one("clock", OK, fmt.Sprintf("differs from the database's by %s", skew.Abs()), "")...), nil
}

// SESSIONPROPERTY of what filtered indexes need (sql-docs,
// create-index-transact-sql.md, required SET options for filtered indexes).
const doctorOptionsSQL = `DECLARE @on INT = 1;
SELECT /* outbox:DoctorOptions */ CASE WHEN SESSIONPROPERTY('QUOTED_IDENTIFIER') = @on THEN '' ELSE 'QUOTED_IDENTIFIER must be ON; ' END
     + CASE WHEN SESSIONPROPERTY('ANSI_NULLS') = @on THEN '' ELSE 'ANSI_NULLS must be ON; ' END
     + CASE WHEN SESSIONPROPERTY('ANSI_PADDING') = @on THEN '' ELSE 'ANSI_PADDING must be ON; ' END
     + CASE WHEN SESSIONPROPERTY('ANSI_WARNINGS') = @on THEN '' ELSE 'ANSI_WARNINGS must be ON; ' END
     + CASE WHEN SESSIONPROPERTY('CONCAT_NULL_YIELDS_NULL') = @on THEN '' ELSE 'CONCAT_NULL_YIELDS_NULL must be ON; ' END
     + CASE WHEN SESSIONPROPERTY('NUMERIC_ROUNDABORT') = @on THEN 'NUMERIC_ROUNDABORT must be OFF; ' ELSE '' END AS wrong;`

func (v *visit) options(ctx context.Context) ([]Finding, error) {
	var wrong string
	if err := v.conn.QueryRowContext(ctx, doctorOptionsSQL).Scan(&wrong); err != nil {
		return nil, err
	}
	if wrong != "" {
		return one("session options", NoGo, strings.TrimSuffix(wrong, "; "),
			"filtered indexes need these: a write would fail with 1934 and a read would scan; look for a proxy or an option of the login that changes them"), nil
	}
	return one("session options", OK, "what filtered indexes need", ""), nil
}

func (v *visit) database(_ context.Context) (found []Finding, err error) {
	f := v.facts
	if f.now.IsZero() {
		return nil, fmt.Errorf("the properties of the database could not be read")
	}
	add := func(check string, verdict Verdict, what, remedy string) {
		found = append(found, Finding{Check: check, Verdict: verdict, Found: what, Remedy: remedy})
	}
	switch {
	case f.updateability == "READ_ONLY":
		add("writable", NoGo, "the database is READ_ONLY here: a secondary replica, or the primary before a failover", "connect to the primary: leave ApplicationIntent=ReadOnly out of the DSN")
	default:
		add("writable", OK, "the database takes writes", "")
	}
	if f.snapshot.Valid && !f.snapshot.Bool {
		add("row versioning", Warn, "READ_COMMITTED_SNAPSHOT is off: looks at the table wait for rows that a writer or a claim has not committed yet",
			"ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON;")
	} else {
		add("row versioning", OK, "READ_COMMITTED_SNAPSHOT is on", "")
	}
	switch {
	case !f.recovery.Valid:
		add("accelerated recovery", Unknown, "this engine does not say", "")
	case !f.recovery.Bool:
		add("accelerated recovery", Warn, "it is off: after a failover in the middle of a long transaction the database may be away for as long as that took",
			"ALTER DATABASE CURRENT SET ACCELERATED_DATABASE_RECOVERY = ON;")
	default:
		add("accelerated recovery", OK, "on", "")
	}
	if f.forced.Bool {
		add("parameterization", Warn, "PARAMETERIZATION FORCED turns literals into parameters, and a filtered index matches none; the statements of this project are written so that it cannot, those of others on this table are not",
			"ALTER DATABASE CURRENT SET PARAMETERIZATION SIMPLE; or give each such statement OPTION (RECOMPILE)")
	} else {
		add("parameterization", OK, "simple", "")
	}
	if serverless(f.objective) {
		add("serverless", Warn, f.objective+" is serverless: a worker that looks for events keeps it awake, so that auto-pause never comes and is paid for all the same",
			"take a provisioned objective, or let the worker run at times only (--drain in a scheduled job)")
	}
	return found, nil
}

// serverless objectives are named GP_S_… and HS_S_… (azure-docs and sql-docs,
// serverless-tier-overview.md).
func serverless(objective string) bool {
	return strings.HasPrefix(objective, "GP_S_") || strings.HasPrefix(objective, "HS_S_")
}
