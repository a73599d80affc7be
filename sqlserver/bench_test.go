package sqlserver_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

// BenchmarkClaimAndSettle is the life of a batch on the store's side; what it
// says of time is the engine's, what it says of allocations is ours and the
// driver's.
func BenchmarkClaimAndSettle(b *testing.B) {
	const batch = 500
	o := newOutbox(b, scripts.Options{})
	s := o.store(func(c *sqlserver.Config) { c.Logger = nil })
	o.exec(`INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload, headers)
SELECT CAST(j.[key] AS BIGINT), 'order', 'customer-4711', 'a', @payload, '{"tenant":"north"}'
FROM OPENJSON(N'[' + REPLICATE(CAST(N'1,' AS NVARCHAR(MAX)), 499) + N'1]') AS j`,
		sql.Named("payload", strings.Repeat("0123456789", 60)))
	b.ReportAllocs()
	for b.Loop() {
		c := claim(b, s, "a", batch)
		if len(c.Events) != batch {
			b.Fatalf("claimed %d events", len(c.Events))
		}
		if _, err := s.SettleSent(b.Context(), []worker.Receipt{c.Receipt}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		o.exec("UPDATE {events} SET status = 0, processed_at = NULL")
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/event")
}

func BenchmarkEnqueue(b *testing.B) {
	for _, n := range []int{1, 50, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o := newOutbox(b, scripts.Options{})
			w := o.writer()
			events := make([]sqlserver.OutboxEvent, n)
			for i := range events {
				events[i] = event(strings.Repeat("0123456789", 60))
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := o.enqueue(b.Context(), w, events...); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
		})
	}
}
