package emulator

import (
	"iter"
	"math"
	"sync/atomic"
	"time"

	"azsqloutbox/servicebus/emulator/internal/broker"
)

// MessageState is what a message waits for.
type MessageState string

// The states of a message.
const (
	StateActive    MessageState = "active"
	StateLocked    MessageState = "locked"
	StateDeferred  MessageState = "deferred"
	StateScheduled MessageState = "scheduled"
)

// Message is a message as a test sees it: a decoded copy.
type Message struct {
	MessageID   string
	SessionID   string
	HasSession  bool
	Subject     string
	ContentType string
	// CorrelationID, To and ReplyTo are empty where there is none.
	CorrelationID string
	To            string
	ReplyTo       string
	// ApplicationProperties are in Go's types: strings, bools, numbers by width,
	// time.Time, []byte. On a dead letter they hold DeadLetterReason.
	ApplicationProperties map[string]any
	// Annotations are the sender's message annotations, such as
	// x-opt-partition-key.
	Annotations map[string]any
	Body        []byte
	// The rest is the broker's, and zero on a message that is only being sent.
	SequenceNumber int64
	EnqueuedAt     time.Time
	DeliveryCount  int // deliveries that failed
	State          MessageState
}

func newMessage(d broker.Delivery) Message {
	c, err := d.Content()
	m := Message{
		MessageID: c.MessageID, Subject: c.Properties.Subject, ContentType: c.Properties.ContentType,
		CorrelationID: c.CorrelationID, To: c.Properties.To, ReplyTo: c.Properties.ReplyTo,
		ApplicationProperties: c.Application, Annotations: c.Annotations, Body: c.Body,
		SequenceNumber: d.Sequence, DeliveryCount: int(d.DeliveryCount),
	}
	if err != nil {
		// A section that does not decode is no reason to hide the others.
		m.Annotations = map[string]any{"emulator-decode-error": err.Error()}
	}
	m.SessionID, m.HasSession = d.Session()
	if at := d.Enqueued(); at > 0 {
		m.EnqueuedAt = time.UnixMilli(at)
	}
	switch d.State {
	case broker.Deferred:
		m.State = StateDeferred
	case broker.Scheduled:
		m.State = StateScheduled
	case broker.Locked:
		m.State = StateLocked
	default:
		m.State = StateActive
	}
	return m
}

// Messages returns what a queue or subscription ("topic/subscriptions/name"),
// or the dead-letter queue behind it ("name/$deadletterqueue"), holds at this
// moment, by sequence number. It panics on a name that is not there.
func (s *Server) Messages(entity string) []Message {
	found := s.source(entity).Peek(math.MinInt64, math.MaxInt, nil)
	out := make([]Message, len(found))
	for i, d := range found {
		out[i] = newMessage(d)
	}
	return out
}

// Each is Messages for entities that hold a million: it decodes one message at a
// time, and looks again and again for those that follow, so what is sent or
// received meanwhile may be seen or not. It panics on a name that is not there.
func (s *Server) Each(entity string) iter.Seq[Message] {
	q := s.source(entity)
	return func(yield func(Message) bool) {
		const page = 1000
		for from := int64(math.MinInt64); ; {
			found := q.Peek(from, page, nil)
			for _, d := range found {
				if !yield(newMessage(d)) {
					return
				}
			}
			if len(found) < page {
				return
			}
			from = found[len(found)-1].Sequence + 1
		}
	}
}

// Counts is what a queue or subscription holds.
type Counts struct {
	// Active includes the Locked ones, as the service counts.
	Active       int64
	Locked       int64
	Deferred     int64
	Scheduled    int64
	DeadLettered int64
	// Enqueued is how many messages were ever taken; those that are scheduled
	// count when they come, duplicates never.
	Enqueued int64
	// Duplicates is how many messages duplicate detection has ever dropped.
	Duplicates int64
}

// Counts says how many messages a queue or subscription holds and has seen. For
// a topic it has Scheduled, Enqueued and Duplicates only; Enqueued there counts
// what is scheduled at once, and what no subscription wants too. It panics on a
// name that is not there.
func (s *Server) Counts(entity string) Counts {
	if n := s.namespace.mustFind(entity); n.topic != nil {
		return Counts(n.topic.Counts())
	}
	return Counts(s.source(entity).Counts())
}

func (s *Server) source(entity string) *broker.Queue {
	n := s.namespace.mustFind(entity)
	if n.source == nil {
		panic("emulator: " + entity + " is a topic: messages are in its subscriptions")
	}
	return n.source
}

// Stats counts what the server has done since it was started.
type Stats struct {
	// Connections and Links are those open now.
	Connections int64
	Links       int64
	// The rest only grows.
	ConnectionsAccepted int64
	LinksAttached       int64 // refused ones too
	Transfers           int64 // frames that carried messages from clients
	BytesReceived       int64 // payload of those frames
	Batches             int64 // batches stored
	MessagesReceived    int64 // messages accepted, single or in batches, duplicates too
	MessagesSent        int64 // deliveries to clients
	Settled             int64 // deliveries that clients settled
}

type counters struct {
	connections, links               atomic.Int64
	connectionsTotal, linksTotal     atomic.Int64
	transfers, bytesIn, batches      atomic.Int64
	messagesIn, messagesOut, settled atomic.Int64
}

// Stats returns the counters. They are read one by one, not as one moment.
func (s *Server) Stats() Stats {
	c := &s.stats
	return Stats{
		Connections: c.connections.Load(), Links: c.links.Load(),
		ConnectionsAccepted: c.connectionsTotal.Load(), LinksAttached: c.linksTotal.Load(),
		Transfers: c.transfers.Load(), BytesReceived: c.bytesIn.Load(), Batches: c.batches.Load(),
		MessagesReceived: c.messagesIn.Load(), MessagesSent: c.messagesOut.Load(), Settled: c.settled.Load(),
	}
}
