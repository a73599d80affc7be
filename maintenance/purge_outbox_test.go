package maintenance_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"azsqloutbox/maintenance"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver/emulator"
)

// purgeOutbox is an empty outbox on an engine of its own.
type purgeOutbox struct {
	*testing.T
	engine *emulator.Server
	db     *sql.DB
}

func newPurgeOutbox(t *testing.T, o scripts.Options) *purgeOutbox {
	t.Helper()
	return newPurgeOutboxOn(t, emulator.Config{}, o)
}

func newPurgeOutboxOn(t *testing.T, c emulator.Config, o scripts.Options) *purgeOutbox {
	t.Helper()
	b := newTable(t, c, o)
	return &purgeOutbox{T: t, engine: b.server, db: b.db}
}

func (b *purgeOutbox) exec(batch string) []emulator.ResultSet {
	b.Helper()
	sets, err := b.engine.Exec(context.Background(), "SET QUOTED_IDENTIFIER ON;\n"+batch)
	if err != nil {
		b.Fatalf("%v in %s", err, batch)
	}
	return sets
}

// processed writes n events with the ids from first on, processed so long ago.
func (b *purgeOutbox) processed(first, n int, ago string) {
	b.Helper()
	b.exec(fmt.Sprintf(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, created_at, processed_at)
		SELECT g.value, 'order', '42', 'placed', '{"n":1}', 1, DATEADD(SECOND, -1, t.at), t.at
		FROM (SELECT DATEADD(%s, SYSUTCDATETIME()) AS at) AS t CROSS JOIN GENERATE_SERIES(%d, %d) AS g`, ago, first, first+n-1))
}

func (b *purgeOutbox) ids() []int64 {
	b.Helper()
	var ids []int64
	for _, row := range b.exec(`SELECT id FROM dbo.outbox_event ORDER BY id`)[0].Rows {
		ids = append(ids, row[0].(int64))
	}
	return ids
}

func (b *purgeOutbox) purge() maintenance.Purge {
	return maintenance.Purge{Target: maintenance.Target{DB: b.db, Logger: zaptest.NewLogger(b)}, Retention: 72 * time.Hour}
}

func (b *purgeOutbox) run(p maintenance.Purge) maintenance.PurgeResult {
	b.Helper()
	r, err := p.Run(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return r
}
