package broker

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// QueueConfig is how a queue or a subscription behaves. Every field must be
// set; zero means what it says.
type QueueConfig struct {
	Name              string
	RequiresSession   bool
	LockDuration      time.Duration
	MaxDeliveryCount  uint32
	DefaultTTL        time.Duration // 0: messages live for ever
	DeadLetterExpired bool
	DuplicateWindow   time.Duration // 0: no duplicate detection
	MaxBytes          int64
	Partitioned       bool
	// Discard forgets what is enqueued as soon as it is counted.
	Discard bool
}

// Queue keeps messages until a receiver settles them. A subscription of a
// topic is one too, and so is a dead-letter queue.
type Queue struct {
	cfg        QueueConfig
	quota      *quota
	deadLetter *Queue // nil on a dead-letter queue

	mu         sync.Mutex
	sequence   int64
	active     *btree.BTreeG[*Message]      // by sequence; unused with sessions
	sessions   *btree.Map[string, *Session] // with sessions only
	locked     map[amqp.UUID]*Message
	locks      *btree.BTreeG[*Message] // of locked, by lockedUntil
	deferred   map[int64]*Message
	scheduled  *btree.BTreeG[*Message] // by time
	expiring   *btree.BTreeG[*Message] // of active ones, by time
	history    *history                // nil without duplicate detection
	enqueued   int64
	duplicates int64
	receivers  map[chan<- struct{}]struct{}
	timer      *time.Timer
	timerAt    int64 // when timer fires, 0 for not at all
	closed     bool
}

// NewQueue makes a queue with its dead-letter queue.
func NewQueue(cfg QueueConfig) *Queue {
	return newQueue(cfg, newQuota("Queue", cfg.Name, cfg.MaxBytes))
}

func newQueue(cfg QueueConfig, space *quota) *Queue {
	q := bareQueue(cfg, space)
	dead := cfg
	dead.Name += DeadLetterSuffix
	// Sessions, expiry and the delivery limit end at the dead-letter queue.
	// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues
	dead.RequiresSession, dead.DefaultTTL, dead.DuplicateWindow, dead.Partitioned, dead.Discard = false, 0, 0, false, false
	q.deadLetter = bareQueue(dead, space)
	return q
}

func bareQueue(cfg QueueConfig, space *quota) *Queue {
	bySequence := func(a, b *Message) bool { return a.sequence < b.sequence }
	q := &Queue{
		cfg:       cfg,
		quota:     space,
		active:    newTree(bySequence),
		sessions:  &btree.Map[string, *Session]{},
		locked:    map[amqp.UUID]*Message{},
		locks:     newTree(byTime(func(m *Message) int64 { return m.lockedUntil })),
		deferred:  map[int64]*Message{},
		scheduled: newTree(byTime(func(m *Message) int64 { return m.scheduled })),
		expiring:  newTree(byTime(func(m *Message) int64 { return m.expires })),
		receivers: map[chan<- struct{}]struct{}{},
	}
	if cfg.DuplicateWindow > 0 {
		q.history = newHistory(cfg.DuplicateWindow.Milliseconds())
	}
	q.timer = time.AfterFunc(time.Hour, q.onTimer)
	q.timer.Stop()
	return q
}

// newTree is a tree that relies on the queue's lock.
func newTree(less func(a, b *Message) bool) *btree.BTreeG[*Message] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// Name is the entity's path.
func (q *Queue) Name() string { return q.cfg.Name }

// RequiresSession says whether messages are received by session only.
func (q *Queue) RequiresSession() bool { return q.cfg.RequiresSession }

// DeadLetter is the dead-letter queue, nil on one.
func (q *Queue) DeadLetter() *Queue { return q.deadLetter }

// Close stops the timers of the queue and its dead-letter queue. Messages stay.
func (q *Queue) Close() {
	if q.deadLetter != nil {
		q.deadLetter.Close()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.timer.Stop()
}

// Watch has wake signalled whenever there may be something to take, without
// blocking: give it a channel with room for one. The returned function ends it.
func (q *Queue) Watch(wake chan<- struct{}) (stop func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.receivers[wake] = struct{}{}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.receivers, wake)
	}
}

func (q *Queue) wake() {
	for wake := range q.receivers {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// Enqueue stores messages as one: all or none.
func (q *Queue) Enqueue(messages []*Message) error {
	if err := q.check(messages); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.enqueue(messages)
}

// EnqueueNumbered is Enqueue, and returns the number of each message, 0 for a
// duplicate that was dropped.
func (q *Queue) EnqueueNumbered(messages []*Message) ([]int64, error) {
	if err := q.check(messages); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.enqueue(slices.Clone(messages)); err != nil {
		return nil, err
	}
	numbers := make([]int64, len(messages))
	for i, m := range messages {
		numbers[i] = m.sequence
	}
	return numbers, nil
}

func (q *Queue) check(messages []*Message) error {
	if q.deadLetter == nil {
		return amqp.Errorf(CondNotAllowed, "messages cannot be sent to the dead-letter queue %q", q.cfg.Name)
	}
	return checkBatch(messages, q.cfg.RequiresSession, q.cfg.Partitioned, q.history != nil)
}

// enqueue makes room, drops duplicates and stores the rest. The caller holds
// q.mu.
func (q *Queue) enqueue(messages []*Message) error {
	size := totalSize(messages)
	if err := q.quota.take(size); err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	if q.history != nil {
		before := len(messages)
		messages = q.history.fresh(messages, now)
		q.duplicates += int64(before - len(messages))
		q.quota.release(size - totalSize(messages))
	}
	q.store(messages, now)
	return nil
}

func totalSize(messages []*Message) (n int64) {
	for _, m := range messages {
		n += m.size
	}
	return n
}

// checkBatch refuses what the service refuses of messages sent as one. The
// texts are the service's where it was seen to say them.
func checkBatch(messages []*Message, session, partitioned, deduplicated bool) error {
	for _, m := range messages {
		if session && !m.hasSession {
			return amqp.Errorf(CondNotAllowed, "The SessionId was not set on a message, and it cannot be sent to the entity. "+
				"Entities that have session support enabled can only receive messages that have the SessionId set to a valid value.")
		}
		if first := messages[0]; partitioned && (m.partition != first.partition || m.session != first.session) {
			return amqp.Errorf(CondNotAllowed, "Batching brokered messages with distinct SessionId or PartitionKey "+
				"is not supported for an entity with partitioning enabled.")
		}
	}
	if partitioned && deduplicated && len(messages) > 1 && messages[0].partition == "" && !messages[0].hasSession {
		// Without a key the message id chooses the partition, so a batch has no
		// one partition (azure-sdk-for-python #36333). The condition is believed.
		return amqp.Errorf(CondNotAllowed, "a batch without a PartitionKey or SessionId cannot be sent to a partitioned entity "+
			"with duplicate detection")
	}
	return nil
}

// store takes in what has passed all checks. The caller holds q.mu.
func (q *Queue) store(messages []*Message, now int64) {
	if q.cfg.Discard {
		q.discard(messages)
		return
	}
	for _, m := range messages {
		if m.scheduled > now {
			q.sequence++
			m.sequence, m.enqueued, m.state = q.sequence, now, Scheduled
			q.scheduled.Set(m)
			q.fireAt(m.scheduled)
			continue
		}
		q.enqueueNow(m, now)
	}
	q.wake()
}

// discard forgets messages, also those that are scheduled.
func (q *Queue) discard(messages []*Message) {
	for _, m := range messages {
		q.sequence++
		m.sequence = q.sequence
	}
	q.enqueued += int64(len(messages))
	q.quota.release(totalSize(messages))
}

// enqueueNow makes m active for the first time. One that was scheduled gets a
// new number, as if it were sent now.
// https://learn.microsoft.com/azure/service-bus-messaging/message-sequencing
func (q *Queue) enqueueNow(m *Message, now int64) {
	q.enqueued++
	q.sequence++
	m.sequence, m.enqueued = q.sequence, now
	ttl := q.cfg.DefaultTTL.Milliseconds()
	if own := int64(m.header.TTLMillis); own > 0 && (ttl == 0 || own < ttl) {
		ttl = own
	}
	if ttl > 0 {
		m.expires = now + ttl
		// What the receiver sees is the TTL that is in force.
		m.header.TTLMillis = uint32(min(ttl, 1<<32-1))
	}
	q.activate(m)
}

// activate puts m where receivers find it.
func (q *Queue) activate(m *Message) {
	m.state = Active
	q.ready(m).Set(m)
	if m.expires > 0 {
		q.expiring.Set(m)
		q.fireAt(m.expires)
	}
}

// ready is where m waits for a receiver.
func (q *Queue) ready(m *Message) *btree.BTreeG[*Message] {
	if q.cfg.RequiresSession {
		return q.session(m.session).ready
	}
	return q.active
}

// Take hands out up to limit messages, oldest first, appended to into. They
// are locked, or gone at once with remove.
func (q *Queue) Take(into []Delivery, limit int, remove bool) []Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.take(into, q.active, nil, limit, remove)
}

func (q *Queue) take(into []Delivery, from *btree.BTreeG[*Message], holder *Session, limit int, remove bool) []Delivery {
	if q.closed {
		return into
	}
	now := time.Now().UnixMilli()
	q.expire(now)
	for range limit {
		m, ok := from.PopMin()
		if !ok {
			break
		}
		if m.expires > 0 {
			q.expiring.Delete(m)
		}
		if remove {
			q.quota.release(m.size)
		} else {
			q.lock(m, holder, now)
		}
		into = append(into, m.delivery())
	}
	return into
}

func (q *Queue) lock(m *Message, holder *Session, now int64) {
	m.state = Locked
	m.holder = holder
	binary.NativeEndian.PutUint64(m.token[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(m.token[8:], rand.Uint64())
	q.locked[m.token] = m
	if holder != nil {
		// A message of a session is locked as long as the session is.
		m.lockedUntil = holder.lockedUntil
		return
	}
	m.lockedUntil = now + q.cfg.LockDuration.Milliseconds()
	q.locks.Set(m)
	q.fireAt(m.lockedUntil)
}

// unlock forgets the lock on m, which the caller then puts elsewhere.
func (q *Queue) unlock(m *Message) {
	delete(q.locked, m.token)
	if m.holder == nil {
		q.locks.Delete(m)
	}
	m.holder, m.token, m.lockedUntil = nil, amqp.UUID{}, 0
}
