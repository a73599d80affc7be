package broker

import (
	"testing"
	"time"
)

func TestLockEndsAfterItsDuration(t *testing.T) {
	bubble(t, config(), func(t *testing.T, q *Queue) {
		put(t, q, sent{id: "a"}, sent{id: "b"})
		held := q.Take(nil, 1, false)
		pass(time.Minute - time.Millisecond)
		if got := ids(q.Take(nil, 9, false)); got != "b" {
			t.Errorf("while a is locked, %q is taken", got)
		}
		pass(time.Millisecond)
		again := q.Take(nil, 9, false)
		if ids(again) != "a" || again[0].DeliveryCount != 1 {
			t.Fatalf("after its lock: %q", ids(again))
		}
		if err := q.Settle(held[0].Token, Settlement{Verb: Complete}); err == nil {
			t.Error("the old lock still settles")
		}
		if err := q.Settle(again[0].Token, Settlement{Verb: Complete}); err != nil {
			t.Error(err)
		}
	})
}

func TestRenewMovesTheEnd(t *testing.T) {
	bubble(t, config(), func(t *testing.T, q *Queue) {
		put(t, q, sent{id: "a"})
		held := q.Take(nil, 1, false)
		pass(40 * time.Second)
		until, err := q.Renew(held[0].Token)
		if err != nil || time.Until(until) != time.Minute {
			t.Fatalf("renewed until %s, %v", until, err)
		}
		pass(40 * time.Second)
		if got := ids(q.Take(nil, 1, false)); got != "" {
			t.Errorf("%q was given away under a renewed lock", got)
		}
		pass(20 * time.Second)
		if got := ids(q.Take(nil, 1, false)); got != "a" {
			t.Errorf("after the renewed lock: %q", got)
		}
	})
}

func TestExpiredMessagesGo(t *testing.T) {
	for _, deadLetter := range []bool{false, true} {
		cfg := config()
		cfg.DefaultTTL, cfg.DeadLetterExpired = time.Hour, deadLetter
		bubble(t, cfg, func(t *testing.T, q *Queue) {
			put(t, q, sent{id: "short", ttl: time.Minute}, sent{id: "default"}, sent{id: "too-long", ttl: 24 * time.Hour})
			pass(time.Minute)
			if c := q.Counts(); c.Active != 2 || (c.DeadLettered == 1) != deadLetter {
				t.Errorf("after a minute: %+v", c)
			}
			pass(time.Hour)
			c := q.Counts()
			if c.Active != 0 || (c.DeadLettered == 3) != deadLetter {
				t.Errorf("after an hour: %+v", c)
			}
			if deadLetter {
				d := q.DeadLetter().Peek(0, 1, nil)[0]
				content, err := d.Content()
				if err != nil || content.Application[PropDeadLetterReason] != "TTLExpiredException" {
					t.Errorf("the reason is %v, %v", content.Application[PropDeadLetterReason], err)
				}
			} else if used := q.quota.used.Load(); used != 0 {
				t.Errorf("%d bytes are still in use", used)
			}
		})
	}
}

func TestScheduledMessageComesInItsTimeAndLast(t *testing.T) {
	bubble(t, config(), func(t *testing.T, q *Queue) {
		put(t, q, sent{id: "later", at: time.Now().Add(time.Hour)}, sent{id: "now"})
		if c := q.Counts(); c.Scheduled != 1 || c.Active != 1 {
			t.Errorf("counts are %+v", c)
		}
		pass(59 * time.Minute)
		put(t, q, sent{id: "meanwhile"})
		pass(time.Minute)
		got := q.Take(nil, 9, true)
		if ids(got) != "now meanwhile later" {
			t.Errorf("received %q", ids(got))
		}
	})
}

func TestLocksThatEndUseUpTheDeliveries(t *testing.T) {
	cfg := config()
	cfg.MaxDeliveryCount = 3
	bubble(t, cfg, func(t *testing.T, q *Queue) {
		put(t, q, sent{id: "a"})
		for i := range cfg.MaxDeliveryCount {
			held := q.Take(nil, 1, false)
			if ids(held) != "a" || held[0].DeliveryCount != i {
				t.Fatalf("delivery %d is %q", i, ids(held))
			}
			pass(time.Minute)
		}
		if got := ids(q.Take(nil, 1, false)); got != "" {
			t.Errorf("delivered a fourth time: %q", got)
		}
		dead := q.DeadLetter().Peek(0, 9, nil)
		if ids(dead) != "a" {
			t.Fatalf("dead letters: %q", ids(dead))
		}
		content, err := dead[0].Content()
		if err != nil || content.Application[PropDeadLetterReason] != "MaxDeliveryCountExceeded" {
			t.Errorf("the reason is %v, %v", content.Application[PropDeadLetterReason], err)
		}
	})
}
