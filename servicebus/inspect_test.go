package servicebus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"azsqloutbox/servicebus"
	"azsqloutbox/servicebus/emulator"
)

func TestInspect(t *testing.T) {
	server := startEmulator(t, emulator.Config{Entities: []emulator.Entity{
		{Name: "orders", DuplicateDetection: true, DuplicateWindow: 10 * time.Minute, MaxSizeBytes: 1 << 30},
		{Name: "sessions", RequiresSession: true},
		{Name: "off"},
		{Name: "news", Kind: emulator.Topic, DuplicateDetection: true, DuplicateWindow: time.Hour, MaxSizeBytes: 2 << 30, Subscriptions: []emulator.Subscription{
			{Name: "archive"}, {Name: "billing", RequiresSession: true},
		}},
	}})
	server.SetStatus("off", emulator.StatusDisabled)
	routes := mustRoutes(t,
		servicebus.Route{EventType: "a", Entity: "orders"}, servicebus.Route{EventType: "b", Entity: "sessions"},
		servicebus.Route{EventType: "c", Entity: "off"}, servicebus.Route{EventType: "d", Entity: "news"}, servicebus.Route{EventType: "e", Entity: "missing"})
	p := newPublisher(t, servicebus.Config{ConnectionString: server.PlainConnectionString(), Routes: routes, Source: "src"})
	r, err := p.Inspect(inTime(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if r.SKU != "Standard" {
		t.Errorf("the tier is %q", r.SKU)
	}
	want := []servicebus.EntityReport{
		{Entity: "orders", Described: true, Status: "Active", DuplicateDetection: true, DuplicateWindow: 10 * time.Minute, MaxSizeBytes: 1 << 30},
		{Entity: "sessions", Described: true, Status: "Active", RequiresSession: true},
		{Entity: "off", Described: true, Status: "Disabled"},
		{Entity: "news", Described: true, Topic: true, Status: "Active", DuplicateDetection: true, DuplicateWindow: time.Hour, MaxSizeBytes: 2 << 30, Subscriptions: []servicebus.SubscriptionReport{
			{Name: "archive"}, {Name: "billing", RequiresSession: true},
		}},
		{Entity: "missing"},
	}
	for i := range want {
		if want[i].MaxSizeBytes == 0 {
			want[i].MaxSizeBytes = r.Entities[i].MaxSizeBytes // the engine's default
		}
	}
	ignore := cmpopts.IgnoreFields(servicebus.EntityReport{}, "Send", "Unread", "MaxMessageBytes", "DuplicateWindow")
	if diff := cmp.Diff(want, r.Entities, ignore); diff != "" {
		t.Errorf("entities (-want +got):\n%s", diff)
	}
	for i, e := range r.Entities {
		if e.DuplicateDetection && e.DuplicateWindow != want[i].DuplicateWindow {
			t.Errorf("%s looks back %s", e.Entity, e.DuplicateWindow)
		}
		if sendable := e.Entity != "off" && e.Entity != "missing"; (e.Send == nil) != sendable {
			t.Errorf("%s: %v", e.Entity, e.Send)
		}
	}
	if e := r.Entities[4]; e.Unread == nil || !strings.Contains(e.Unread.Error(), "no queue and no topic") {
		t.Errorf("the missing one: %v", e.Unread)
	}
}

// Without the right Manage a sender can still be told whether it may send.
func TestInspectWithoutTheRight(t *testing.T) {
	server := startEmulator(t, emulator.Config{Entities: []emulator.Entity{{Name: orders}}})
	p := newPublisher(t, servicebus.Config{ConnectionString: server.PlainConnectionString(), Routes: mustRoutes(t, servicebus.Route{Entity: orders}), Source: "src"})
	for _, status := range []int{401, 403} {
		fault := server.Inject(emulator.Fault{Kind: emulator.AdminStatus, Status: status, Times: emulator.Forever})
		r, err := p.Inspect(inTime(t, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		e := r.Entities[0]
		if e.Send != nil || e.Described || e.Unread == nil || !strings.Contains(e.Unread.Error(), "Data Owner") || strings.Contains(e.Unread.Error(), "\n") {
			t.Errorf("status %d: got %+v", status, e)
		}
		fault.Remove()
	}
}
