package broker

import (
	"sync"
	"time"
)

// TopicConfig is how a topic behaves.
type TopicConfig struct {
	Name            string
	DuplicateWindow time.Duration // 0: no duplicate detection
	MaxBytes        int64
	Partitioned     bool
}

// Topic passes each message to those of its subscriptions whose rules match.
// Without any, it keeps nothing.
type Topic struct {
	cfg           TopicConfig
	quota         *quota
	subscriptions []subscription

	mu         sync.Mutex
	history    *history
	duplicates int64
}

type subscription struct {
	queue *Queue
	rules []Rule
}

// NewTopic makes a topic without subscriptions.
func NewTopic(cfg TopicConfig) *Topic {
	t := &Topic{cfg: cfg, quota: newQuota(cfg.Name, cfg.MaxBytes)}
	if cfg.DuplicateWindow > 0 {
		t.history = newHistory(cfg.DuplicateWindow.Milliseconds())
	}
	return t
}

// Subscribe adds a subscription, which gets what any of rules matches. Call it
// before the topic is used.
func (t *Topic) Subscribe(cfg QueueConfig, rules []Rule) *Queue {
	q := newQueue(cfg, t.quota)
	t.subscriptions = append(t.subscriptions, subscription{queue: q, rules: rules})
	return q
}

// Enqueue stores a copy of each message in every subscription that wants it:
// all of messages or none.
func (t *Topic) Enqueue(messages []*Message) error {
	if err := checkBatch(messages, false, t.cfg.Partitioned, t.history != nil); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	copies, size, err := t.fanOut(messages)
	if err != nil {
		return err
	}
	if err := t.quota.take(size); err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	if t.history != nil {
		fresh := t.history.fresh(messages, now)
		if dropped := len(messages) - len(fresh); dropped > 0 {
			t.duplicates += int64(dropped)
			var left int64
			if copies, left, err = t.fanOut(fresh); err != nil {
				return err
			}
			t.quota.release(size - left)
		}
	}
	for i, s := range t.subscriptions {
		s.queue.accept(copies[i], now)
	}
	return nil
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
		if err := checkBatch(copies[i], s.queue.cfg.RequiresSession, false, false); err != nil {
			return nil, 0, err
		}
	}
	return copies, size, nil
}

// accept stores what a topic has checked and made room for.
func (q *Queue) accept(messages []*Message, now int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.store(messages, now)
}

// Duplicates is how many messages duplicate detection dropped.
func (t *Topic) Duplicates() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.duplicates
}

// Close stops the timers of all subscriptions.
func (t *Topic) Close() {
	for _, s := range t.subscriptions {
		s.queue.Close()
	}
}
