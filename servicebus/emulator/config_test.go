package emulator_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"azsqloutbox/servicebus/emulator"
)

// TestStartNamesTheFieldThatIsWrong has what the service does not make, and just
// beside it what it does.
func TestStartNamesTheFieldThatIsWrong(t *testing.T) {
	entity := func(e emulator.Entity) emulator.Config {
		if e.Name == "" {
			e.Name = "e"
		}
		return emulator.Config{Entities: []emulator.Entity{e}}
	}
	subscription := func(s emulator.Subscription) emulator.Config {
		if s.Name == "" {
			s.Name = "s"
		}
		return entity(emulator.Entity{Kind: emulator.Topic, Subscriptions: []emulator.Subscription{s}})
	}
	many := func(n int) emulator.Config {
		e := emulator.Entity{Kind: emulator.Topic}
		for i := range n {
			e.Subscriptions = append(e.Subscriptions, emulator.Subscription{Name: strings.Repeat("s", 1+i%40) + string(rune('a'+i/40))})
		}
		return entity(e)
	}
	rules := func(names ...string) emulator.Config {
		var s emulator.Subscription
		for _, name := range names {
			s.Rules = append(s.Rules, emulator.Rule{Name: name, SQL: "1=1"})
		}
		return subscription(s)
	}
	const week = 7 * 24 * time.Hour
	for _, c := range []struct {
		field string // empty for a configuration that can be
		cfg   emulator.Config
	}{
		{"Entities", emulator.Config{}},
		{"Entities.Name", queues("a", "A")},
		{"MaxConnections", emulator.Config{MaxConnections: -1, Entities: queues("q").Entities}},

		{"Name", queues("a$b")},
		{"Name", queues("/a")},
		{"Name", queues("a/")},
		{"", queues("a/b")},
		{"", queues(strings.Repeat("ü", 260))},
		{"Name", queues(strings.Repeat("n", 261))},
		{"MaxMessageBytes", entity(emulator.Entity{MaxMessageBytes: 1 << 20})},
		{"", entity(emulator.Entity{MaxMessageBytes: 256 << 10})},
		{"Subscriptions", entity(emulator.Entity{Subscriptions: []emulator.Subscription{{Name: "s"}}})},
		{"RequiresSession", entity(emulator.Entity{Kind: emulator.Topic, RequiresSession: true})},

		{"DuplicateWindow", entity(emulator.Entity{DuplicateWindow: time.Minute})},
		{"DuplicateWindow", entity(emulator.Entity{DuplicateDetection: true, DuplicateWindow: 20*time.Second - 1})},
		{"", entity(emulator.Entity{DuplicateDetection: true, DuplicateWindow: 20 * time.Second})},
		{"", entity(emulator.Entity{DuplicateDetection: true, DuplicateWindow: week})},
		{"DuplicateWindow", entity(emulator.Entity{DuplicateDetection: true, DuplicateWindow: week + 1})},
		{"DuplicateWindow", entity(emulator.Entity{DuplicateDetection: true, DuplicateWindow: -1})},

		{"", entity(emulator.Entity{LockDuration: 5 * time.Minute})},
		{"LockDuration", entity(emulator.Entity{LockDuration: 5*time.Minute + 1})},
		{"LockDuration", entity(emulator.Entity{LockDuration: -1})},
		{"LockDuration", subscription(emulator.Subscription{LockDuration: 6 * time.Minute})},
		{"", entity(emulator.Entity{DefaultTTL: time.Second})},
		{"DefaultTTL", entity(emulator.Entity{DefaultTTL: time.Second - 1})},
		{"DefaultTTL", subscription(emulator.Subscription{DefaultTTL: -1})},
		{"", entity(emulator.Entity{MaxDeliveryCount: math.MaxInt32})},
		{"MaxDeliveryCount", entity(emulator.Entity{MaxDeliveryCount: math.MaxInt32 + 1})},
		{"MaxDeliveryCount", subscription(emulator.Subscription{MaxDeliveryCount: -1})},

		{"", subscription(emulator.Subscription{Name: strings.Repeat("n", 50)})},
		{"Subscriptions.Name", subscription(emulator.Subscription{Name: strings.Repeat("n", 51)})},
		{"Subscriptions.Name", subscription(emulator.Subscription{Name: "a/b"})},
		{"", many(2000)},
		{"Subscriptions", many(2001)},
		{"", rules("a", "b", strings.Repeat("n", 50))},
		{"Rules.Name", rules("a", "A")},
		{"Rules.Name", rules(strings.Repeat("n", 51))},
	} {
		server, err := emulator.Start(c.cfg)
		if err == nil {
			server.Close()
		}
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%v, of what the service makes", err)
		case c.field != "" && (err == nil || !strings.Contains(err.Error(), c.field+": ")):
			t.Errorf("%v does not name %s", err, c.field)
		}
	}
}
