package worker

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Waiting, for work, for a database or for a person, is not being stuck; a
// publisher that never comes back is.
func TestAlive(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config, *fakeStore)
		stuck  string
	}{
		"idle":   {func(*Config, *fakeStore) {}, ""},
		"paused": {func(c *Config, _ *fakeStore) { c.Paused = true }, ""},
		"database away": {func(_ *Config, s *fakeStore) {
			s.setFail(func(string, int) error { return errAway })
		}, ""},
		"long pauses between heartbeats and reaps": {func(c *Config, _ *fakeStore) {
			c.HeartbeatEvery, c.ReapEvery = 20*time.Minute, 20*time.Minute
		}, ""},
		"long pauses between looks": {func(c *Config, _ *fakeStore) { c.IdlePoll = 6 * time.Minute }, ""},
		"many lanes and a database that hangs": {func(c *Config, s *fakeStore) {
			c.Lanes = 16
			s.setHang(func(call string) bool { return call == "Pending" })
		}, ""},
		"many lanes and few places": {func(c *Config, s *fakeStore) {
			c.Lanes, c.MaxInFlight = 16, 1
			s.add("a", 5000)
			c.Publisher = publisherFunc(func(ctx context.Context, events []Event) []Outcome {
				<-ctx.Done()
				return all(len(events), Outcome{Verdict: Unsent, Err: errAway})
			})
		}, ""},
		"settling refused": {func(_ *Config, s *fakeStore) {
			s.add("a", 5000)
			s.setFail(func(call string, _ int) error {
				if strings.HasPrefix(call, "Settle") {
					return errAway
				}
				return nil
			})
		}, ""},
		"broker away": {func(c *Config, s *fakeStore) {
			s.add("a", 5000)
			c.Publisher = publisherFunc(func(ctx context.Context, events []Event) []Outcome {
				<-ctx.Done()
				return all(len(events), Outcome{Verdict: Unsent, Err: errAway})
			})
		}, ""},
		"publisher that hangs": {func(c *Config, s *fakeStore) {
			s.add("a", 5000)
			ended := make(chan struct{})
			once := sync.OnceFunc(func() { close(ended) })
			time.AfterFunc(20*time.Minute, once) // so that the test ends
			c.Publisher = publisherFunc(func(_ context.Context, events []Event) []Outcome {
				<-ended
				return all(len(events), Outcome{Verdict: Unsent, Err: errAway})
			})
		}, "publishing"},
		"heartbeat that hangs": {func(_ *Config, s *fakeStore) { s.stick("Heartbeat", 2, 20*time.Minute) }, "the heartbeat"},
		"reaping that hangs":   {func(_ *Config, s *fakeStore) { s.stick("Reap", 2, 20*time.Minute) }, "reaping"},
		"a slow reaping":       {func(_ *Config, s *fakeStore) { s.stick("Reap", 2, time.Minute) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				cfg := Config{Store: store, Publisher: publishAll, EventTypes: []string{"a"}}
				c.change(&cfg, store)
				w, stop := start(t, cfg)
				var stuck string
				for range 10 {
					time.Sleep(time.Minute)
					if err := w.Alive(); err != nil {
						stuck = err.Error()
					}
				}
				if (stuck == "") != (c.stuck == "") || !strings.Contains(stuck, c.stuck) {
					t.Errorf("stuck: %q, want %q", stuck, c.stuck)
				}
				if c.stuck != "" {
					time.Sleep(15 * time.Minute)
				}
				stop()
				if err := w.Alive(); err != nil {
					t.Errorf("after the stop: %v", err)
				}
			})
		})
	}
}
