package broker

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTopicKeepsScheduledMessagesUntilTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topic := NewTopic(TopicConfig{Name: "t", MaxBytes: 1 << 20, DuplicateWindow: time.Hour})
		defer topic.Close()
		all := topic.Subscribe(config(), []Rule{{}})
		some := topic.Subscribe(config(), []Rule{{MessageID: "b"}})
		in := func(d time.Duration) time.Time { return time.Now().Add(d) }

		numbers, err := topic.EnqueueNumbered([]*Message{
			sent{id: "b", at: in(2 * time.Minute)}.message(t),
			sent{id: "now"}.message(t),
			sent{id: "a", at: in(time.Minute)}.message(t),
			sent{id: "b", at: in(time.Minute)}.message(t), // a duplicate
			sent{id: "never", at: in(time.Minute)}.message(t),
		})
		if err != nil {
			t.Fatal(err)
		}
		if numbers[0] == 0 || numbers[2] == 0 || numbers[0] == numbers[2] || numbers[3] != 0 {
			t.Errorf("numbers are %v", numbers)
		}
		if c := topic.Counts(); c.Scheduled != 3 || c.Duplicates != 1 {
			t.Errorf("counts are %+v", c)
		}
		if c := all.Counts(); c.Active != 1 || c.Scheduled != 0 {
			t.Errorf("a subscription's counts are %+v", c)
		}
		if err := topic.Cancel([]int64{numbers[4], 99}); err == nil {
			t.Error("a number that is not there was cancelled")
		}
		if err := topic.Cancel(numbers[4:]); err != nil {
			t.Error(err)
		}
		pass(time.Minute - time.Millisecond)
		if got := ids(all.Take(nil, 9, true)); got != "now" {
			t.Errorf("before its time: %q", got)
		}
		pass(time.Millisecond)
		if got := ids(all.Take(nil, 9, true)); got != "a" {
			t.Errorf("after a minute: %q", got)
		}
		pass(time.Minute)
		if got := ids(all.Take(nil, 9, true)) + ids(some.Take(nil, 9, true)); got != "bb" {
			t.Errorf("after two minutes: %q", got)
		}
		if used := topic.UsedBytes(); used != 0 {
			t.Errorf("%d bytes are still in use", used)
		}
	})
}

func TestTopicDeadLettersWhatHasNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topic := NewTopic(TopicConfig{Name: "t", MaxBytes: 1 << 20})
		defer topic.Close()
		cfg := config()
		cfg.RequiresSession = true
		sessions, all := topic.Subscribe(cfg, []Rule{{}}), topic.Subscribe(config(), []Rule{{}})
		if err := topic.Enqueue([]*Message{sent{id: "a"}.message(t), sent{id: "b", at: time.Now().Add(time.Minute)}.message(t)}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		dead := sessions.DeadLetter().Take(nil, 9, true)
		if got := ids(dead) + ids(all.Take(nil, 9, true)); got != "a ba b" {
			t.Fatalf("dead letters and another subscription: %q", got)
		}
		if content, err := dead[0].Content(); err != nil || content.Application[PropDeadLetterReason] != "Session ID is null." {
			t.Errorf("the reason is %v, %v", content.Application[PropDeadLetterReason], err)
		}
		if c := sessions.Counts(); c.Active != 0 || c.Enqueued != 2 || topic.UsedBytes() != 0 {
			t.Errorf("counts are %+v, %d bytes in use", c, topic.UsedBytes())
		}
	})
}
