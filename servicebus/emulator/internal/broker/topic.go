package broker

import (
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"
)

// TopicConfig is how a topic behaves.
type TopicConfig struct {
	Name            string
	DuplicateWindow time.Duration // 0: no duplicate detection
	MaxBytes        int64
	Partitioned     bool
}

// Topic passes each message to those of its subscriptions whose rules match.
// Without any, it keeps nothing but what is scheduled.
type Topic struct {
	cfg           TopicConfig
	quota         *quota
	subscriptions []subscription

	mu         sync.Mutex
	sequence   int64
	scheduled  *btree.BTreeG[*Message] // by time
	history    *history                // nil without duplicate detection
	enqueued   int64
	duplicates int64
	timer      *time.Timer
	closed     bool
}

type subscription struct {
	queue *Queue
	rules []Rule
}

// NewTopic makes a topic without subscriptions.
func NewTopic(cfg TopicConfig) *Topic {
	t := &Topic{
		cfg: cfg, quota: newQuota("Topic", cfg.Name, cfg.MaxBytes),
		scheduled: newTree(byTime(func(m *Message) int64 { return m.scheduled })),
	}
	if cfg.DuplicateWindow > 0 {
		t.history = newHistory(cfg.DuplicateWindow.Milliseconds())
	}
	t.timer = time.AfterFunc(time.Hour, t.onTimer)
	t.timer.Stop()
	return t
}

// Subscribe adds a subscription, which gets what any of rules matches. Call it
// before the topic is used.
func (t *Topic) Subscribe(cfg QueueConfig, rules []Rule) *Queue {
	q := newQueue(cfg, t.quota)
	t.subscriptions = append(t.subscriptions, subscription{queue: q, rules: rules})
	return q
}

// Enqueue stores a copy of each message in every subscription that wants it,
// now or at the time that the message says: all of messages or none.
func (t *Topic) Enqueue(messages []*Message) error {
	_, err := t.EnqueueNumbered(messages)
	return err
}

// EnqueueNumbered is Enqueue, and returns the number that each message has in
// the topic, 0 for a duplicate that was dropped.
func (t *Topic) EnqueueNumbered(messages []*Message) ([]int64, error) {
	if err := checkBatch(messages, false, t.cfg.Partitioned, t.history != nil); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now().UnixMilli()
	plan, err := t.plan(messages, now)
	if err != nil {
		return nil, err
	}
	if err := t.quota.take(plan.size); err != nil {
		return nil, err
	}
	if t.history != nil {
		fresh := t.history.fresh(slices.Clone(messages), now)
		if dropped := len(messages) - len(fresh); dropped > 0 {
			t.duplicates += int64(dropped)
			size := plan.size
			if plan, err = t.plan(fresh, now); err != nil {
				return nil, err
			}
			t.quota.release(size - plan.size)
		}
	}
	t.carryOut(plan, now)
	numbers := make([]int64, len(messages))
	for i, m := range messages {
		numbers[i] = m.sequence
	}
	return numbers, nil
}

// plan is what becomes of messages sent as one.
type plan struct {
	copies [][]*Message // for each subscription
	now    []*Message   // those that copies are of
	later  []*Message
	size   int64
}

func (t *Topic) plan(messages []*Message, now int64) (plan, error) {
	var p plan
	for _, m := range messages {
		if m.scheduled > now {
			p.later = append(p.later, m)
		} else {
			p.now = append(p.now, m)
		}
	}
	// What no rule could be tried on is refused at once, not when it is due.
	if _, _, err := t.fanOut(p.later); err != nil {
		return p, err
	}
	var err error
	p.copies, p.size, err = t.fanOut(p.now)
	p.size += totalSize(p.later)
	return p, err
}

// carryOut stores what there is room for. The caller holds t.mu.
func (t *Topic) carryOut(p plan, now int64) {
	t.enqueued += int64(len(p.now) + len(p.later))
	for _, m := range p.now {
		t.sequence++
		m.sequence = t.sequence
	}
	for _, m := range p.later {
		t.sequence++
		m.sequence, m.enqueued, m.state = t.sequence, now, Scheduled
		t.scheduled.Set(m)
	}
	if len(p.later) > 0 {
		t.setTimer()
	}
	for i, s := range t.subscriptions {
		s.queue.accept(p.copies[i], now)
	}
}

// fanOut copies the messages for each subscription.
func (t *Topic) fanOut(messages []*Message) (copies [][]*Message, size int64, err error) {
	copies = make([][]*Message, len(t.subscriptions))
	for i, s := range t.subscriptions {
		for _, m := range messages {
			wanted, err := matches(s.rules, m)
			if err != nil {
				return nil, 0, decodeError(err)
			}
			if wanted {
				one := *m
				copies[i] = append(copies[i], &one)
				size += m.size
			}
		}
	}
	return copies, size, nil
}

// accept stores what a topic has checked and made room for. Nobody tells the sender
// that a subscription takes messages of sessions only: one without goes to its
// dead-letter queue.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues
func (q *Queue) accept(messages []*Message, now int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cfg.RequiresSession && !q.cfg.Discard {
		messages = slices.DeleteFunc(messages, func(m *Message) bool {
			if m.hasSession {
				return false
			}
			q.enqueued++
			q.sequence++
			m.sequence, m.enqueued = q.sequence, now
			m.add(map[string]any{
				PropDeadLetterReason:      "Session ID is null.",
				PropDeadLetterDescription: "Session enabled entity doesn't allow a message whose session identifier is null.",
			})
			q.bury(m)
			return true
		})
	}
	q.store(messages, now)
}

// Close stops the timers of the topic and all its subscriptions.
func (t *Topic) Close() {
	t.mu.Lock()
	t.closed = true
	t.timer.Stop()
	t.mu.Unlock()
	for _, s := range t.subscriptions {
		s.queue.Close()
	}
}
