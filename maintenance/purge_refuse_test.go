package maintenance_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
)

// A lease of centuries is a long one, and no negative one: a time.Duration wraps
// around at 292 years, and at 584 again.
func TestPurgeOfALeaseWithoutEnd(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	b.processed(1, 10, "DAY, -9")
	b.exec(`INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
		VALUES (NEWID(), 'w', 'placed', SYSUTCDATETIME(), SYSUTCDATETIME(), 1, '[1]')`)
	for _, end := range []string{"DATEADD(YEAR, 500, claimed_at)", "'9999-12-31'"} {
		b.exec(`UPDATE dbo.outbox_event_claim SET lease_until = ` + end)
		if r, err := b.purge().Run(t.Context()); !errors.Is(err, maintenance.ErrSetting) || len(b.ids()) != 10 {
			t.Errorf("a lease until %s: %v, %+v", end, err, r)
		}
	}
	b.exec(`UPDATE dbo.outbox_event_claim SET claimed_at = '0001-01-01', lease_until = '0001-01-02'`)
	p := b.purge()
	p.Retention = 100 * time.Hour
	b.exec(`UPDATE dbo.outbox_event SET created_at = DATEADD(HOUR, 3, processed_at) WHERE id = 4`)
	if r := b.run(p); r.Rows != 0 || r.HeldBackBy == nil || !r.Cutoff.Equal(time.Time{}) {
		t.Errorf("%+v", r)
	}
}

func TestPurgeRefusesARetentionBelowTwiceTheLease(t *testing.T) {
	for name, insert := range map[string]string{
		"none known": ``,
		"a worker": `INSERT INTO dbo.outbox_event_worker (owner, version, source, lease_ms, lanes, in_flight, started_at, seen_at)
			VALUES ('w', '1', 's', 300000, 1, 0, SYSUTCDATETIME(), SYSUTCDATETIME())`,
		"a receipt": `INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
			VALUES (NEWID(), 'w', 'placed', SYSUTCDATETIME(), DATEADD(SECOND, 300, SYSUTCDATETIME()), 1, '[1]')`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newPurgeOutbox(t, scripts.Options{})
			b.processed(1, 10, "DAY, -9")
			lease := time.Minute
			if insert != "" {
				lease = 5 * time.Minute
				b.exec(insert)
			}
			p := b.purge()
			p.Retention = 2*lease - time.Second
			if _, err := p.Plan(t.Context()); !errors.Is(err, maintenance.ErrSetting) {
				t.Errorf("planning: %v", err)
			}
			if r, err := p.Run(t.Context()); !errors.Is(err, maintenance.ErrSetting) || r.Rows != 0 || len(b.ids()) != 10 {
				t.Errorf("running: %v, %+v", err, r)
			}
			p.Retention = 2 * lease
			if r := b.run(p); r.Rows != 10 {
				t.Errorf("twice the lease: %+v", r)
			}
		})
	}
}

func TestPurgeRefusesTablesItCannotWalk(t *testing.T) {
	for name, c := range map[string]struct{ change, want string }{
		"no table":       {`DROP TABLE dbo.outbox_event`, "not there"},
		"no column":      {`DROP TABLE dbo.outbox_event; CREATE TABLE dbo.outbox_event (id BIGINT PRIMARY KEY, status TINYINT, created_at DATETIME2(3))`, "processed_at"},
		"no index by id": {`DROP TABLE dbo.outbox_event; CREATE TABLE dbo.outbox_event (id BIGINT, status TINYINT, created_at DATETIME2(3), processed_at DATETIME2(3))`, "no index"},
		"an index of some": {`DROP TABLE dbo.outbox_event; CREATE TABLE dbo.outbox_event (id BIGINT, status TINYINT, created_at DATETIME2(3), processed_at DATETIME2(3));
			CREATE INDEX ix ON dbo.outbox_event (id) WHERE status = 1`, "no index"},
		"an id of text":   {`DROP TABLE dbo.outbox_event; CREATE TABLE dbo.outbox_event (id VARCHAR(20) PRIMARY KEY, status TINYINT, created_at DATETIME2(3), processed_at DATETIME2(3))`, "no integer"},
		"a coarse time":   {`ALTER TABLE dbo.outbox_event ALTER COLUMN processed_at DATETIME NULL`, "datetime"},
		"a coarser scale": {`ALTER TABLE dbo.outbox_event ALTER COLUMN processed_at DATETIME2(0) NULL`, "datetime2(0)"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newPurgeOutbox(t, scripts.Options{})
			b.exec(c.change)
			_, err := b.purge().Plan(t.Context())
			var refusal *maintenance.Refusal
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestPurgeValidates(t *testing.T) {
	b := newPurgeOutbox(t, scripts.Options{})
	for field, spoil := range map[string]func(*maintenance.Purge){
		"Retention":   func(p *maintenance.Purge) { p.Retention = 59 * time.Second },
		"Batch":       func(p *maintenance.Purge) { p.Batch = sqlserver.MaxBatch + 1 },
		"Pause":       func(p *maintenance.Purge) { p.Pause = -1 },
		"MaxDuration": func(p *maintenance.Purge) { p.MaxDuration = -1 },
		"Window":      func(p *maintenance.Purge) { p.Window = maintenance.Hours{From: time.Hour, Until: time.Hour} },
		"DB":          func(p *maintenance.Purge) { p.DB = nil },
	} {
		p := b.purge()
		spoil(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("field %s: %v", field, err)
		}
		if _, err := p.Run(t.Context()); err == nil {
			t.Errorf("field %s: Run does not mind", field)
		}
	}
}
