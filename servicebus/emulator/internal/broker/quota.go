package broker

import (
	"sync/atomic"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// quota is the space of an entity; a topic's subscriptions and a queue's
// dead-letter queue share it.
type quota struct {
	kind  string // Queue or Topic
	name  string
	limit atomic.Int64
	used  atomic.Int64
}

func newQuota(kind, name string, limit int64) *quota {
	q := &quota{kind: kind, name: name}
	q.limit.Store(limit)
	return q
}

// take, whose text is that of
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-messaging-exceptions,
// reserves n bytes, or nothing. Two senders at once may both pass the
// last check, as on the service, whose limit is not exact either.
func (q *quota) take(n int64) error {
	if q.used.Load()+n > q.limit.Load() {
		return amqp.Errorf(CondResourceLimit, "The maximum entity size has been reached or exceeded for %s: '%s'. "+
			"Size of entity in bytes:%d, Max entity size in bytes:%d.", q.kind, q.name, q.used.Load(), q.limit.Load())
	}
	q.used.Add(n)
	return nil
}

func (q *quota) release(n int64) { q.used.Add(-n) }

// SetMaxBytes changes the space of the queue while it is in use.
func (q *Queue) SetMaxBytes(n int64) { q.quota.limit.Store(n) }

// UsedBytes is the space that the queue's messages take, dead letters included;
// of a subscription, that of its whole topic.
func (q *Queue) UsedBytes() int64 { return q.quota.used.Load() }

// SetMaxBytes changes the space of the topic while it is in use.
func (t *Topic) SetMaxBytes(n int64) { t.quota.limit.Store(n) }

// UsedBytes is the space that the topic's subscriptions take.
func (t *Topic) UsedBytes() int64 { return t.quota.used.Load() }

// MaxBytes is the space of the queue.
func (q *Queue) MaxBytes() int64 { return q.quota.limit.Load() }

// MaxBytes is the space of the topic.
func (t *Topic) MaxBytes() int64 { return t.quota.limit.Load() }
