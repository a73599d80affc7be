package broker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

func TestSpaceIsGivenBack(t *testing.T) {
	cfg := config()
	cfg.MaxBytes = 1000
	bubble(t, cfg, func(t *testing.T, q *Queue) {
		big := sent{id: "a", body: strings.Repeat("x", 600)}
		put(t, q, big)
		err := q.Enqueue([]*Message{big.message(t)})
		var refused *amqp.Error
		if !errors.As(err, &refused) || refused.Condition != CondResourceLimit {
			t.Fatalf("into a full queue: %v", err)
		}
		d := q.Take(nil, 1, false)
		if err := q.Settle(d[0].Token, Settlement{Verb: DeadLetter}); err != nil {
			t.Fatal(err)
		}
		if err := q.Enqueue([]*Message{big.message(t)}); err == nil {
			t.Error("dead letters take no space")
		}
		q.DeadLetter().Take(nil, 1, true)
		put(t, q, big)
	})
}

func TestOrderSurvivesGivingBack(t *testing.T) {
	bubble(t, config(), func(t *testing.T, q *Queue) {
		for i := range 6 {
			put(t, q, sent{id: fmt.Sprint(i)})
		}
		held := q.Take(nil, 4, false)
		for _, i := range []int{2, 0} {
			if err := q.Settle(held[i].Token, Settlement{Verb: Release}); err != nil {
				t.Fatal(err)
			}
		}
		if got := ids(q.Take(nil, 9, true)); got != "0 2 4 5" {
			t.Errorf("received %q", got)
		}
	})
}

func TestWatchersAreWoken(t *testing.T) {
	bubble(t, config(), func(t *testing.T, q *Queue) {
		wake := make(chan struct{}, 1)
		stop := q.Watch(wake)
		put(t, q, sent{id: "a"})
		<-wake
		held := q.Take(nil, 1, false)
		pass(time.Minute)
		<-wake
		stop()
		put(t, q, sent{id: "b"})
		select {
		case <-wake:
			t.Error("woken after stop")
		default:
		}
		_ = held
	})
}
