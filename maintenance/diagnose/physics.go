package diagnose

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"azsqloutbox/maintenance/sizing"
)

// physicsFacts are what section 4 judges.
type physicsFacts struct {
	engine    string
	objective string
	memory    limit // bytes
	logRate   limit // bytes a second
	inMemory  float64
	catalog   catalog
	storage   storage
	now       time.Time
	// measuredLog is bytes an event by Query Store, 0 where it is not known.
	measuredLog float64
	// measuredRate is bytes a second by Query Store since measuredFrom, of all
	// statements that touch the outbox; 0 where it is not known.
	measuredRate float64
	measuredFrom time.Time
	claimIndex   string
	retryIndex   string
	events       string // the event table, quoted
	reasons      []string
}

// ofWorker says that it is one of the two indexes that the worker's statements
// name in a hint: nothing may tell a person to drop it.
func (f physicsFacts) ofWorker(d indexDef) bool {
	return strings.EqualFold(d.name, f.claimIndex) || strings.EqualFold(d.name, f.retryIndex)
}

// limit is what the service gives; source says who said so, or why nobody did.
type limit struct {
	value  float64
	source string
}

// sys-dm-os-job-object-transact-sql.md: what the process may use is
// process_memory_limit_mb less non_sos_mem_gap_mb. VIEW DATABASE STATE on Azure
// SQL Database, VIEW SERVER STATE on Managed Instance.
const diagnoseJobObjectSQL = `SELECT /* outbox:DiagnoseJobObject */ j.process_memory_limit_mb - j.non_sos_mem_gap_mb AS memory_mb
FROM   sys.dm_os_job_object AS j
OPTION (RECOMPILE);`

// sys-dm-os-sys-info-transact-sql.md: committed_target_kb is what the memory
// manager may take. VIEW SERVER STATE (2022: VIEW SERVER PERFORMANCE STATE).
const diagnoseServerMemorySQL = `SELECT /* outbox:DiagnoseServerMemory */ i.committed_target_kb
FROM   sys.dm_os_sys_info AS i
OPTION (RECOMPILE);`

// sys-dm-user-db-resource-governor-azure-sql-database.md: bytes a second, one row
// a database of the pool; VIEW DATABASE STATE. Azure SQL Database only.
const diagnoseGovernanceSQL = `DECLARE @database NVARCHAR(128) = DB_NAME();
SELECT /* outbox:DiagnoseGovernance */ g.slo_name, g.primary_max_log_rate
FROM   sys.dm_user_db_resource_governance AS g
WHERE  g.database_name = @database;`

// sys-server-resource-stats-azure-sql-database.md: sku is the tier.
const diagnoseInstanceSQL = `SELECT /* outbox:DiagnoseInstance */ TOP (@one) r.sku, r.virtual_core_count
FROM   master.sys.server_resource_stats AS r
ORDER BY r.end_time DESC;`

func physicsSection(ctx context.Context, s *source, sec Section) (Section, error) {
	f := physicsFacts{engine: s.env.Engine, objective: s.env.ServiceObjective, now: s.env.now, claimIndex: s.claimIndex(), retryIndex: s.name("{retry_index}"), events: s.names.Events()}
	var err error
	if f.catalog, err = s.indexes.read(ctx); err != nil {
		return sec, err
	}
	if f.storage, err = s.storage.read(ctx); err != nil {
		return sec, err
	}
	s.readLimits(ctx, &f)
	if ctx.Err() != nil {
		return sec, context.Cause(ctx)
	}
	f.measuredLog = s.measuredLog(ctx)
	if store, err := s.store.read(ctx); err == nil && store.on() {
		f.measuredRate, f.measuredFrom = store.logPerSecond(f.now), store.from
	}
	return judgePhysics(f, sec), nil
}

// readLimits asks the database for its own limits, and takes the documented ones
// of its service objective where it does not say.
func (s *source) readLimits(ctx context.Context, f *physicsFacts) {
	objective, known := sizing.ParseObjective(f.objective)
	if known {
		f.memory = limit{objective.MemoryBytes(), "documented for " + objective.Name}
		f.logRate = limit{objective.LogBytesPerSecond(), "documented for " + objective.Name}
		f.inMemory = objective.InMemoryBytes()
	}
	var mb, kb, rate sql.NullInt64
	var slo sql.NullString
	if s.env.database() || s.env.managed() {
		err := s.each(ctx, "read the memory limit", diagnoseJobObjectSQL, nil, func(r *sql.Rows) error { return r.Scan(&mb) })
		if mb.Int64 > 0 {
			f.memory = limit{float64(mb.Int64) * sizing.MB, "sys.dm_os_job_object"}
		}
		sc := ofServer
		if s.env.database() {
			sc = ofDatabase
		}
		f.add(s.optional("memory limit from sys.dm_os_job_object", sc, err))
	} else {
		err := s.each(ctx, "read the memory target", diagnoseServerMemorySQL, nil, func(r *sql.Rows) error { return r.Scan(&kb) })
		if kb.Int64 > 0 {
			f.memory = limit{float64(kb.Int64) * sizing.KB, "committed_target_kb of sys.dm_os_sys_info"}
		}
		f.add(s.optional("memory target of the server", ofServer, err))
	}
	if s.env.managed() {
		var sku sql.NullString
		var cores sql.NullInt64
		err := s.each(ctx, "read the size of the instance", diagnoseInstanceSQL, []any{sql.Named("one", 1)}, func(r *sql.Rows) error { return r.Scan(&sku, &cores) })
		if cores.Int64 > 0 {
			f.logRate = limit{sizing.InstanceLogBytesPerSecond(sku.String, int(cores.Int64)), fmt.Sprintf("documented for %s with %d vCores, per instance", sku.String, cores.Int64)}
		}
		f.add(s.optional("log-rate limit from sys.server_resource_stats", ofServer, err))
	}
	if !s.env.database() {
		return
	}
	err := s.each(ctx, "read the log-rate limit", diagnoseGovernanceSQL, nil, func(r *sql.Rows) error { return r.Scan(&slo, &rate) })
	if rate.Int64 > 0 {
		f.logRate = limit{float64(rate.Int64), "sys.dm_user_db_resource_governance"}
	}
	f.add(s.optional("log-rate limit from sys.dm_user_db_resource_governance", ofDatabase, err))
}

func (f *physicsFacts) add(reason string) {
	if reason != "" {
		f.reasons = append(f.reasons, reason)
	}
}

// measuredLog is the log of one event over the named statements, where Query
// Store and the plan cache both know them.
func (s *source) measuredLog(ctx context.Context) float64 {
	list, err := s.cached.read(ctx)
	if err != nil {
		return 0
	}
	store, err := s.store.read(ctx)
	if err != nil || !store.on() {
		return 0
	}
	logBytes := store.logBytes()
	var events, bytes float64
	for _, c := range byLabel(list, s.env.now) {
		if c.name == "ClaimEvents" && verb(c.text) == "SELECT" {
			events += c.pace.got
		}
		for _, h := range c.queryHashes {
			if b, ok := logBytes[h]; ok && c.name != "" {
				bytes += b * c.pace.executions
				break
			}
		}
	}
	return ratio(bytes, events)
}

// shortestSpan is what a rate must be measured over, in seconds: a burst of a
// moment is no rate.
const shortestSpan = 5

// rates are events a second: over all that is kept, and of the newest rows where
// there are more than those.
func (f physicsFacts) rates() (average, recent float64) {
	rows := float64(f.rows())
	if span := f.storage.newest.Sub(f.storage.oldest).Seconds(); !f.storage.oldest.IsZero() && span > 60 {
		average = rows / span
	}
	sm := f.storage.sample
	if span := f.now.Sub(sm.from).Seconds(); sm.rows == sampleRows && !sm.from.IsZero() && span >= shortestSpan {
		recent = float64(sm.rows) / span
	}
	return average, recent
}

func (f physicsFacts) rows() int64 {
	base := f.catalog.base()
	if z, ok := f.storage.sizes[base.id]; ok && z.rows > 0 {
		return z.rows
	}
	return base.rows
}

// enoughRows is from where on pages by rows are what a row takes.
const enoughRows = 1000

// rowBytes is what a row takes, on its page and off it: as sampled on its pages,
// else by all of them, else by arithmetic.
func (f physicsFacts) rowBytes() (bytes float64, measured bool) {
	z := f.storage.sizes[f.catalog.base().id]
	rows := float64(z.rows)
	switch {
	case z.recordBytes > 0 && z.rows > enoughRows:
		return z.recordBytes + (z.lobBytes+z.overBytes)/rows, true
	case z.recordBytes > 0:
		return z.recordBytes, true
	case z.known && z.rows > enoughRows:
		return z.usedBytes / rows, true
	}
	row := sizing.Row{Columns: len(f.catalog.columns), Versioned: true}
	for _, c := range f.catalog.columns {
		switch {
		case !c.variable():
			row.FixedBytes += c.bytes
		case strings.EqualFold(c.name, "payload"):
			row.VariableColumns++
			row.VariableBytes += f.storage.sample.bytes
		default:
			row.VariableColumns++
		}
	}
	return row.Bytes(), false
}

// indexLog is what an index adds to the log of an event.
func (f physicsFacts) indexLog(d indexDef) sizing.IndexLog {
	z := f.storage.sizes[d.id]
	entry := z.recordBytes
	if entry == 0 {
		entry = 30
		if d.has("payload") {
			entry += f.storage.sample.bytes + 60
		}
	}
	return sizing.IndexLog{
		EntryBytes: entry, PendingOnly: d.onStatus() == "0", FailedOnly: d.onStatus() == "2",
		StatusKey: d.keyed("status"),
	}
}

// logPerEvent is arithmetic; see sizing.
func (f physicsFacts) logPerEvent() float64 {
	row, _ := f.rowBytes()
	var logs []sizing.IndexLog
	for _, d := range f.catalog.indexes {
		if d.id > 1 && !d.disabled {
			logs = append(logs, f.indexLog(d))
		}
	}
	return sizing.LogPerEvent(row, logs...)
}
