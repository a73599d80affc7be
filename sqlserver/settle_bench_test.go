package sqlserver_test

import (
	"testing"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

// BenchmarkSettleSent ends eight claims in one statement, as the worker does with
// what came back together.
func BenchmarkSettleSent(b *testing.B) {
	const claims = 8
	o := newOutbox(b, scripts.Options{})
	s := o.store(func(c *sqlserver.Config) { c.Logger = nil })
	o.add("a", claims)
	receipts := make([]worker.Receipt, claims)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for i := range receipts {
			receipts[i] = claim(b, s, "a", 1).Receipt
		}
		b.StartTimer()
		if lost, err := s.SettleSent(b.Context(), receipts); err != nil || lost != 0 {
			b.Fatalf("%d lost, %v", lost, err)
		}
		b.StopTimer()
		o.exec("UPDATE {events} SET status = 0, processed_at = NULL")
		b.StartTimer()
	}
}
