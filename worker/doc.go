// Package worker moves events from an outbox table to a broker. It is the
// domain: it knows neither T-SQL nor AMQP.
//
// An event's path has no step back:
//
//	row ─Store.Claim─▶ Claim ─Publisher.Publish─▶ []Outcome ─policy─▶ Settlement ─Store.Settle─▶ row
//
// A claim flips its rows to PROCESSED and writes one receipt, in one short
// transaction that ends before anything is sent. A receipt that is still there
// when its lease is over names exactly the events that may not have gone out,
// and any worker gives them back. So delivery is at least once with no
// exception, for one insert and one delete a batch.
//
// The Worker runs a few claim lanes. Lanes draw rounds from one schedule,
// hand their claims to publishing goroutines through a bounded number of
// places, and never wait for the broker themselves. The settler ends claims in
// groups. Memory is bounded by places × batch × event size, however long the
// backlog.
package worker
