package maintenance_test

import (
	"testing"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/sqlserver/emulator"
)

// What 091_job_grants.sql gives the jobs' role is all that purge and rebuild need,
// and one of them needs each of it.
func TestJobGrantsSuffice(t *testing.T) {
	if purge, rebuild := runJobs(t, ""); purge != nil || rebuild != nil {
		t.Errorf("with all of them: purge %v, rebuild %v", purge, rebuild)
	}
	for _, right := range []string{
		"SELECT ON {events}", "DELETE ON {events}", "ALTER ON {events}", "SELECT ON {receipts}", "SELECT ON {workers}",
	} {
		if purge, rebuild := runJobs(t, right); purge == nil && rebuild == nil {
			t.Errorf("both do without %s", right)
		}
	}
}

// runJobs runs both as a user with the role of the script alone, less one right.
func runJobs(t *testing.T, without string) (purge, rebuild error) {
	t.Helper()
	b := newTable(t, emulator.Config{}, scripts.Options{})
	script, err := scripts.JobGrants(scripts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range scripts.Batches(script) {
		b.exec(batch)
	}
	b.exec(`CREATE USER [outbox-jobs] WITH PASSWORD = 'Correct-Horse-1'; ALTER ROLE [outbox_event_jobs_role] ADD MEMBER [outbox-jobs]`)
	if without != "" {
		b.exec("REVOKE " + without + " FROM [outbox_event_jobs_role]")
	}
	b.exec(`INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload, status, created_at, processed_at)
		VALUES (1, 'a', '1', 'x', '{}', 1, DATEADD(DAY, -9, SYSUTCDATETIME()), DATEADD(DAY, -9, SYSUTCDATETIME()))`)
	db, err := sqlserver.Open(b.server.DSNFor("outbox-jobs", "Correct-Horse-1"), sqlserver.Options{AppName: "jobs-test", LongStatements: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	target := maintenance.Target{DB: db, Names: b.names}
	done, purge := maintenance.Purge{Target: target, Retention: 72 * time.Hour}.Run(t.Context())
	if purge == nil && done.Rows != 1 {
		t.Errorf("without %q: %d rows were purged, want 1", without, done.Rows)
	}
	r := b.rebuild()
	r.Target, r.Index, r.Force = target, pk, true
	_, rebuild = r.Run(t.Context())
	return purge, rebuild
}
