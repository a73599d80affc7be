package worker

import (
	"strings"
	"testing"
	"time"
)

func TestConfigNamesTheFieldThatIsWrong(t *testing.T) {
	good := func() Config {
		return Config{Store: newFakeStore(), Publisher: publishAll, EventTypes: []string{"a"}}
	}
	if err := good().Validate(); err != nil {
		t.Fatalf("the defaults are refused: %v", err)
	}
	for _, tt := range []struct {
		field string
		spoil func(*Config)
	}{
		{"Store", func(c *Config) { c.Store = nil }},
		{"Publisher", func(c *Config) { c.Publisher = nil }},
		{"EventTypes", func(c *Config) { c.EventTypes = nil }},
		{"Lanes", func(c *Config) { c.Lanes = -1 }},
		{"Lanes", func(c *Config) { c.Lanes = 65 }},
		{"Batch", func(c *Config) { c.Batch = MaxBatch + 1 }},
		{"Batch", func(c *Config) { c.Batch = -1 }},
		{"MaxRounds", func(c *Config) { c.MaxRounds = -1 }},
		{"MaxInFlight", func(c *Config) { c.MaxInFlight = -3 }},
		{"MaxInFlight", func(c *Config) { c.MaxInFlight = MaxMaxInFlight + 1 }},
		{"MaxAttempts", func(c *Config) { c.MaxAttempts = -1 }},
		{"Paused", func(c *Config) { c.Paused, c.Drain = true, true }},
		{"PublishDeadline", func(c *Config) { c.PublishDeadline = c.Lease - time.Millisecond + DefaultLease }},
		{"Lease", func(c *Config) { c.Lease = -time.Minute }},
		{"PublishDeadline", func(c *Config) { c.PublishDeadline = time.Microsecond }},
		{"Grace", func(c *Config) { c.Grace = time.Microsecond }},
		{"IdlePoll", func(c *Config) { c.IdlePoll = time.Microsecond }},
		{"ReapEvery", func(c *Config) { c.ReapEvery = time.Microsecond }},
		{"HeartbeatEvery", func(c *Config) { c.HeartbeatEvery = time.Microsecond }},
		{"PublishDeadline", func(c *Config) { c.PublishDeadline = time.Minute }},
		{"PublishDeadline", func(c *Config) { c.Lease, c.PublishDeadline = 10*time.Second, 10*time.Second }},
	} {
		c := good()
		tt.spoil(&c)
		if _, err := New(c); err == nil || !strings.HasPrefix(err.Error(), "worker: "+tt.field+" ") {
			t.Errorf("spoiled %s: got error %v, want one that names it", tt.field, err)
		}
	}
}

func TestShortLeaseShortensTheDefaultDeadline(t *testing.T) {
	c := Config{Lease: 5 * time.Second}.withDefaults()
	if c.PublishDeadline != 2500*time.Millisecond {
		t.Errorf("the publish deadline under a lease of 5s is %s, want half of it", c.PublishDeadline)
	}
}

func TestAPublishDeadlineLeavesTimeToSettle(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		time.Second: 500 * time.Millisecond, 5 * time.Second: 4500 * time.Millisecond, 10 * time.Second: 9 * time.Second, time.Minute: 54 * time.Second,
	} {
		if got := LongestPublishDeadline(lease); got != want {
			t.Errorf("under a lease of %s events may be sent for %s, want %s", lease, got, want)
		}
	}
}
