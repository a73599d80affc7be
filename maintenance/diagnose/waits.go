package diagnose

import (
	"context"
	"database/sql"
	"slices"
	"time"
)

// waitFacts are what section 6 judges.
type waitFacts struct {
	waits       []waitTotal
	ofServer    bool // they are the whole server's
	started     time.Time
	now         time.Time
	load        []loadPoint
	loadReason  string
	managed     bool
	database    bool
	top         int
	waitsReason string
}

// waitTotal is a row of sys.dm_db_wait_stats: milliseconds.
type waitTotal struct {
	name                   string
	count, ms, max, signal int64
}

// loadPoint is 15 seconds of load, in percent of the service objective; a
// negative value was not told.
type loadPoint struct {
	at                            time.Time
	cpu, io, log, memory, workers float64
}

// sys-dm-db-wait-stats-azure-sql-database.md: this database only, reset on
// failover; VIEW DATABASE STATE.
const diagnoseDatabaseWaitsSQL = `SELECT /* outbox:DiagnoseDatabaseWaits */ w.wait_type, w.waiting_tasks_count, w.wait_time_ms, w.max_wait_time_ms, w.signal_wait_time_ms
FROM   sys.dm_db_wait_stats AS w
WHERE  w.wait_time_ms > @least
ORDER BY w.wait_time_ms DESC;`

// sys-dm-os-wait-stats-transact-sql.md: the whole server; VIEW SERVER STATE, 2022
// and later VIEW SERVER PERFORMANCE STATE.
const diagnoseServerWaitsSQL = `SELECT /* outbox:DiagnoseServerWaits */ w.wait_type, w.waiting_tasks_count, w.wait_time_ms, w.max_wait_time_ms, w.signal_wait_time_ms
FROM   sys.dm_os_wait_stats AS w
WHERE  w.wait_time_ms > @least
ORDER BY w.wait_time_ms DESC;`

// sys-dm-db-resource-stats-azure-sql-database.md: a row each 15 s for about an
// hour, percent of the service objective's limits; VIEW DATABASE STATE. Not on
// Managed Instance.
const diagnoseLoadSQL = `SELECT /* outbox:DiagnoseLoad */ TOP (@rows) r.end_time, r.avg_cpu_percent, r.avg_data_io_percent, r.avg_log_write_percent, r.avg_memory_usage_percent, r.max_worker_percent
FROM   sys.dm_db_resource_stats AS r
ORDER BY r.end_time DESC;`

// sys-server-resource-stats-azure-sql-database.md: of the instance, a row each
// 15 s for 14 days; who may connect to master may read it.
const diagnoseInstanceLoadSQL = `SELECT /* outbox:DiagnoseInstanceLoad */ TOP (@rows) r.end_time, r.avg_cpu_percent
FROM   master.sys.server_resource_stats AS r
ORDER BY r.end_time DESC;`

// loadRows are an hour of 15 seconds each.
const loadRows = 240

func waitsSection(ctx context.Context, s *source, sec Section) (Section, error) {
	f := waitFacts{now: s.env.now, ofServer: !s.env.database(), managed: s.env.managed(), database: s.env.database(), top: s.top}
	waits, err := s.readWaits(ctx)
	if err != nil {
		sc := ofServer
		if s.env.database() {
			sc = ofDatabase
		}
		f.waitsReason = s.optional("waits", sc, err)
	}
	f.waits = waits
	var started sql.NullTime
	if err := s.each(ctx, "read when the engine started", diagnoseStartedSQL, nil, func(r *sql.Rows) error { return r.Scan(&started) }); err == nil {
		f.started = s.env.utc(started.Time)
	}
	switch {
	case s.env.database():
		f.loadReason = s.optional("load of the last hour", ofDatabase, s.readLoad(ctx, &f))
	case s.env.managed():
		f.loadReason = s.optional("load of the last hour", ofServer, s.readInstanceLoad(ctx, &f))
	default:
		f.loadReason = "SQL Server keeps no history of its load; take it from the machine."
	}
	if ctx.Err() != nil {
		return sec, context.Cause(ctx)
	}
	if f.waitsReason != "" && len(f.load) == 0 {
		return sec, err
	}
	return judgeWaits(f, sec), nil
}

func (s *source) readWaits(ctx context.Context) ([]waitTotal, error) {
	query := diagnoseServerWaitsSQL
	if s.env.database() {
		query = diagnoseDatabaseWaitsSQL
	}
	var list []waitTotal
	err := s.each(ctx, "read the waits", query, []any{sql.Named("least", 0)}, func(rows *sql.Rows) error {
		var w waitTotal
		var longest, signal sql.NullInt64
		if err := rows.Scan(&w.name, &w.count, &w.ms, &longest, &signal); err != nil {
			return err
		}
		w.max, w.signal = longest.Int64, signal.Int64
		list = append(list, w)
		return nil
	})
	return list, err
}

func (s *source) readLoad(ctx context.Context, f *waitFacts) error {
	err := s.each(ctx, "read the load of the last hour", diagnoseLoadSQL, []any{sql.Named("rows", loadRows)}, func(rows *sql.Rows) error {
		var p loadPoint
		var cpu, io, log, memory, workers sql.NullFloat64
		if err := rows.Scan(&p.at, &cpu, &io, &log, &memory, &workers); err != nil {
			return err
		}
		p.cpu, p.io, p.log, p.memory, p.workers = orNone(cpu), orNone(io), orNone(log), orNone(memory), orNone(workers)
		f.load = append(f.load, p)
		return nil
	})
	slices.Reverse(f.load)
	return err
}

func (s *source) readInstanceLoad(ctx context.Context, f *waitFacts) error {
	err := s.each(ctx, "read the load of the instance", diagnoseInstanceLoadSQL, []any{sql.Named("rows", loadRows)}, func(rows *sql.Rows) error {
		p := loadPoint{io: -1, log: -1, memory: -1, workers: -1}
		var cpu sql.NullFloat64
		if err := rows.Scan(&p.at, &cpu); err != nil {
			return err
		}
		p.cpu = orNone(cpu)
		f.load = append(f.load, p)
		return nil
	})
	slices.Reverse(f.load)
	return err
}

func orNone(v sql.NullFloat64) float64 {
	if !v.Valid {
		return -1
	}
	return v.Float64
}
