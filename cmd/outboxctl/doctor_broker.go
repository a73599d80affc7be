package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance/doctor"
	"azsqloutbox/maintenance/sizing"
	"azsqloutbox/servicebus"
	"azsqloutbox/worker"
)

const (
	// reapMargin is what a redelivery may take beyond the lease and the retry:
	// until a worker looks for what is overdue, claims it again and sends it.
	reapMargin = time.Minute
	// nearFull is where a queue or topic should be looked at.
	nearFull = 0.8
)

// broker is the Service Bus side of doctor; without a publisher none was named.
type broker struct {
	publisher *servicebus.Publisher
	routes    servicebus.Routes
}

// broker reads the settings; an error is about them.
func (c *doctorCmd) broker() (b broker, err error) {
	if c.ServiceBus.Given() {
		b.publisher, b.routes, err = c.ServiceBus.Publisher(zap.NewNop())
	}
	return b, err
}

func (b broker) close(ctx context.Context) {
	if b.publisher == nil {
		return
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = b.publisher.Close(end)
}

// look examines the queues and topics of the routes. What cannot be looked at is
// a finding too: the rest of the report stands.
func (b broker) look(ctx context.Context, lease time.Duration, perSecond *float64) []doctor.Finding {
	const check = "service bus"
	if b.publisher == nil {
		return []doctor.Finding{{
			Check: check, Verdict: doctor.Unknown, Found: "no namespace was named",
			Remedy: "give --servicebus-namespace or --servicebus-connection-string, and --entity or --config",
		}}
	}
	r, err := b.publisher.Inspect(ctx)
	if err != nil {
		return []doctor.Finding{{Check: check, Verdict: doctor.Unknown, Found: "it could not be looked at: " + err.Error()}}
	}
	found := []doctor.Finding{judgeNamespace(r, perSecond)}
	for _, e := range r.Entities {
		found = append(found, judgeEntity(e, b.routes, lease)...)
	}
	return found
}

// judgeNamespace; perSecond is nil where nobody knows.
func judgeNamespace(r servicebus.NamespaceReport, perSecond *float64) doctor.Finding {
	f := doctor.Finding{Check: "namespace", Verdict: doctor.OK}
	rate := "how many events/s go out could not be read"
	if perSecond != nil {
		rate = fmt.Sprintf("%.0f events/s go out", *perSecond)
	}
	switch {
	case r.SKU == "":
		f.Verdict, f.Found = doctor.Unknown, "its tier could not be read: that needs the right Manage, or the role Azure Service Bus Data Owner"
	case r.SKU == "Basic":
		f.Verdict, f.Found = doctor.Warn, "the Basic tier has neither topics nor duplicate detection: every redelivery reaches the consumers"
		f.Remedy = "take the Standard tier, or make sure that every consumer is idempotent"
	case r.SKU == "Standard" && perSecond == nil:
		f.Verdict, f.Found = doctor.Unknown, fmt.Sprintf("Standard, which has %d credits a second; %s", sizing.StandardCredits, rate)
	case r.SKU == "Standard" && *perSecond > sizing.StandardCredits*nearFull:
		f.Verdict, f.Found = doctor.Warn, fmt.Sprintf("%s, and a Standard namespace has %d credits a second for all that it does, one for each message", rate, sizing.StandardCredits)
		f.Remedy = "take the Premium tier, or keep below the limit by --servicebus-rate"
	default:
		f.Found = r.SKU + ", " + rate
	}
	return f
}

func judgeEntity(e servicebus.EntityReport, routes servicebus.Routes, lease time.Duration) (found []doctor.Finding) {
	add := func(verdict doctor.Verdict, what, remedy string) {
		found = append(found, doctor.Finding{Check: fmt.Sprintf("entity %q", e.Entity), Verdict: verdict, Found: what, Remedy: remedy})
	}
	if e.Send != nil {
		add(doctor.NoGo, "it cannot be sent to: "+e.Send.Error(), "make the entity, enable it, or give the worker's identity the role Azure Service Bus Data Sender on it")
	} else {
		add(doctor.OK, "a link for sending can be opened", "")
	}
	if !e.Described {
		add(doctor.Unknown, e.Unread.Error(), "sessions, duplicate detection and size are not checked without it")
		return found
	}
	if e.Status != "" && e.Status != "Active" {
		add(doctor.NoGo, "its status is "+e.Status, "set it to Active")
	}
	sessions, keys := sessionsTo(routes, e.Entity)
	without := sessions < routesTo(routes, e.Entity)
	switch {
	case e.Topic:
		judgeSubscriptions(e, sessions > 0, without, add)
	case e.RequiresSession && without:
		add(doctor.NoGo, "it requires sessions, and a route to it sets no session id: every message would be refused", "set session-id-from-aggregate: true in the routes to it")
	case sessions > 0 && !e.RequiresSession:
		add(doctor.Warn, "routes to it set a session id, and it has no sessions: the id means nothing, and makes a batch for each aggregate", "make the queue with sessions, or leave session-id-from-aggregate out")
	}
	// An event whose acknowledgement was lost comes again when its lease is over, or
	// as one that failed, after up to the longest retry delay.
	window := lease + worker.LongestRetry + reapMargin
	switch {
	case !e.DuplicateDetection:
		add(doctor.Warn, "it has no duplicate detection: an event that is sent a second time reaches the consumers", "make the entity anew with duplicate detection; it cannot be turned on later")
	case e.DuplicateWindow < window:
		add(doctor.Warn, fmt.Sprintf("its duplicate detection looks back %s, and a redelivery may come after %s", e.DuplicateWindow, window),
			fmt.Sprintf("make the window longer than %s; an outage, a pause or a parked event lasts longer than any window, so consumers must be idempotent all the same", window))
	default:
		add(doctor.OK, fmt.Sprintf("duplicate detection over %s", e.DuplicateWindow), "")
	}
	if e.Partitioned && e.DuplicateDetection && sessions+keys == 0 {
		add(doctor.NoGo, "it is partitioned and has duplicate detection: batches without a partition key are refused there",
			"set partition-key-from-aggregate: true in the routes to it, or take an entity that is not partitioned")
	}
	if e.MaxSizeBytes > 0 && float64(e.SizeBytes) > nearFull*float64(e.MaxSizeBytes) {
		add(doctor.Warn, fmt.Sprintf("%d of %d MB are used; when it is full, its events wait in the table", e.SizeBytes>>20, e.MaxSizeBytes>>20), "look at its consumers and at its dead-letter queue")
	}
	return found
}

// judgeSubscriptions is about what a topic confirms and no consumer will see. with
// says that a route sets a session id, without that one does not. A message without
// one is confirmed, and goes to the dead-letter queue of each subscription with
// sessions whose rules take it (azure-docs, service-bus-dead-letter-queues.md,
// "Session ID is null."); where there is no subscription, it is confirmed and gone.
func judgeSubscriptions(e servicebus.EntityReport, with, without bool, add func(verdict doctor.Verdict, what, remedy string)) {
	if e.SubscriptionsUnread != nil {
		add(doctor.Unknown, "its subscriptions could not be read: "+e.SubscriptionsUnread.Error(), "whether they require sessions is not checked without it")
		return
	}
	first, requiring := "", 0
	for _, s := range e.Subscriptions {
		if s.RequiresSession {
			first = cmp.Or(first, strconv.Quote(s.Name))
			requiring++
		}
	}
	if requiring > 1 {
		first += " and " + quantity.Of(requiring-1, "other")
	}
	switch {
	case len(e.Subscriptions) == 0:
		add(doctor.Warn, "the topic has no subscription: events are confirmed and gone", "make the consumers' subscriptions before a worker sends")
	case requiring > 0 && without:
		add(doctor.Warn, "a route to it sets no session id, and sessions are required by its subscription "+first+": events without one count as sent and go to the dead-letter queue there",
			"set session-id-from-aggregate: true in the routes to it, or make the subscription anew without sessions; a rule whose action sets sys.SessionId does it too, and is not seen here")
	case requiring == 0 && with:
		add(doctor.Warn, "routes to it set a session id, and none of its subscriptions has sessions: the id means nothing, and makes a batch for each aggregate",
			"make a subscription with sessions, or leave session-id-from-aggregate out")
	}
}

// routesTo counts the routes to an entity.
func routesTo(routes servicebus.Routes, entity string) (n int) {
	for range each(routes, entity) {
		n++
	}
	return n
}

// sessionsTo counts those that set a session id and those that set a partition
// key.
func sessionsTo(routes servicebus.Routes, entity string) (sessions, keys int) {
	for r := range each(routes, entity) {
		if r.SessionIDFromAggregate {
			sessions++
		}
		if r.PartitionKeyFromAggregate {
			keys++
		}
	}
	return sessions, keys
}

func each(routes servicebus.Routes, entity string) func(func(*servicebus.Route) bool) {
	return func(yield func(*servicebus.Route) bool) {
		seen := make(map[*servicebus.Route]bool)
		for _, eventType := range append(routes.EventTypes(), "\x00none has this name") {
			if r, ok := routes.Lookup(eventType); ok && !seen[r] && strings.EqualFold(r.Entity, entity) {
				seen[r] = true
				if !yield(r) {
					return
				}
			}
		}
	}
}
