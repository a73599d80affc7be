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
		{"MaxRounds", func(c *Config) { c.MaxRounds = -1 }},
		{"MaxInFlight", func(c *Config) { c.MaxInFlight = -3 }},
		{"MaxAttempts", func(c *Config) { c.MaxAttempts = -1 }},
		{"Paused", func(c *Config) { c.Paused, c.Drain = true, true }},
		{"PublishDeadline", func(c *Config) { c.PublishDeadline = c.Lease - time.Millisecond + DefaultLease }},
		{"IdlePoll", func(c *Config) { c.IdlePoll = -time.Second }},
		{"PublishDeadline", func(c *Config) { c.PublishDeadline = time.Minute }},
		{"PublishDeadline", func(c *Config) { c.Lease, c.PublishDeadline = 10*time.Second, 10*time.Second }},
	} {
		c := good()
		tt.spoil(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), tt.field) {
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
