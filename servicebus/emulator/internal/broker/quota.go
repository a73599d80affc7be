package broker

import (
	"sync/atomic"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// quota is the space of an entity; a topic's subscriptions and a queue's
// dead-letter queue share it.
type quota struct {
	name  string
	limit int64
	used  atomic.Int64
}

// take reserves n bytes, or nothing. Two senders at once may both pass the
// last check, as on the service, whose limit is not exact either.
func (q *quota) take(n int64) error {
	if q.used.Load()+n > q.limit {
		return amqp.Errorf(CondResourceLimit, "The maximum entity size has been reached or exceeded for %q: "+
			"%d bytes of %d are in use", q.name, q.used.Load(), q.limit)
	}
	q.used.Add(n)
	return nil
}

func (q *quota) release(n int64) { q.used.Add(-n) }
