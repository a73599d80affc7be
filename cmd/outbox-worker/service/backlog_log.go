package service

import (
	"time"

	"go.uber.org/zap"

	"azsqloutbox/worker"
)

// backlogLogEvery is how often a worker's log says what waits in the table, for
// alerts on logs where nothing scrapes metrics: infra/modules/alerts.bicep reads
// these lines by the names below.
const backlogLogEvery = time.Minute

// logBacklog tells the numbers that a person would be woken for.
func logBacklog(log *zap.Logger, b worker.Backlog) {
	var oldest worker.TypeBacklog
	for _, t := range b.Types {
		if t.OldestAge > oldest.OldestAge {
			oldest = t
		}
	}
	log.Info("backlog",
		zap.Int64("pending", b.Total), zap.Float64("oldest_seconds", oldest.OldestAge.Seconds()), zap.String("oldest_event_type", oldest.EventType),
		zap.Int64("waiting", b.Waiting), zap.Int64("parked", b.Parked), zap.Int64("overdue_claims", b.OverdueReceipts))
}
