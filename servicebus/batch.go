package servicebus

import (
	"context"
	"errors"
	"math"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/worker"
)

// maxBatchMessages is the most messages Service Bus takes in one batch. The SDK
// does not check it (azure-service-bus #397).
const maxBatchMessages = 4500

// group is the events that may share a batch, by their index, in order. The
// envelope of a batch copies the properties of its first message, so session id
// and partition key must be the same throughout (Wolverine #2000, #2054). What
// the service makes of a time to live or a scheduled time on an envelope is not
// documented, so batches do not mix these either.
type group struct {
	key    groupKey
	dest   *destination
	events []int
}

type groupKey struct {
	entity    string
	session   bool
	partition bool
	// aggregate is the session id or partition key, where there is one.
	aggregate string
}

// ordered says whether the order of the group's messages means something at the
// broker: then its batches go out one after the other.
func (k groupKey) ordered() bool { return k.session || k.partition }

// groupEvents sorts events into groups, in order of each group's first event.
// An event without a route is in none: its index goes to unrouted.
func (p *Publisher) groupEvents(events []worker.Event) (groups []*group, unrouted []int) {
	byKey := make(map[groupKey]*group, 1)
	var last *group
	for i := range events {
		route, ok := p.cfg.Routes.Lookup(routeKey(&events[i]))
		if !ok {
			unrouted = append(unrouted, i)
			continue
		}
		key := groupKey{entity: route.Entity, session: route.SessionIDFromAggregate, partition: route.PartitionKeyFromAggregate}
		if key.ordered() {
			key.aggregate = events[i].AggregateID
		}
		if last == nil || last.key != key {
			if last = byKey[key]; last == nil {
				last = &group{key: key, dest: p.destinations[route.Entity]}
				byKey[key] = last
				groups = append(groups, last)
			}
		}
		last.events = append(last.events, i)
	}
	return groups, unrouted
}

// parcel is what one send carries: a batch, or one message by itself.
type parcel struct {
	dest   *destination
	events []int
	batch  *azservicebus.MessageBatch
	single *message // set where events has one element
	apart  bool     // it may break its connection, so it goes out in quarantine
}

func (p parcel) send(ctx context.Context, s *sender) error {
	var err error
	if p.single != nil {
		err = s.link.SendAMQPAnnotatedMessage(ctx, &p.single.amqp, nil)
	} else {
		err = s.link.SendMessageBatch(ctx, p.batch, nil)
	}
	if err == nil {
		s.served.Store(true)
		s.on.answers.Add(1)
	}
	return err
}

// batch is a parcel being filled.
type batch struct {
	azsb   *azservicebus.MessageBatch
	first  message // the envelope points into it
	others message // filled again for every other message
	events []int
}

// next is the message to fill for the next add.
func (b *batch) next() *message {
	if len(b.events) == 0 {
		return &b.first
	}
	return &b.others
}

// shares says whether m may travel under the envelope that the first message
// has given the batch. The group sees to session id and partition key.
func (b *batch) shares(m *message) bool {
	return len(b.events) == 0 || m.header.TTL == b.first.header.TTL &&
		m.amqp.MessageAnnotations[annotationScheduledTime] == b.first.amqp.MessageAnnotations[annotationScheduledTime]
}

func (b *batch) add(m *message, event int) error {
	if err := b.azsb.AddAMQPAnnotatedMessage(&m.amqp, nil); err != nil {
		return err
	}
	b.events = append(b.events, event)
	return nil
}

// seal ends the filling. A batch of one goes out as a plain message: it is
// smaller without the envelope, and an entity that refuses batches takes it.
func (b *batch) seal(dest *destination) parcel {
	p := parcel{dest: dest, events: b.events, batch: b.azsb}
	if len(b.events) == 1 {
		p.single, p.batch = &b.first, nil
	}
	return p
}

// pack fills parcels with the given events, in order, and hands each one to
// ship. When ship returns a failure the destination is in trouble: the events
// after it are not tried any more, and pack returns that failure.
func (d *delivery) pack(ctx context.Context, dest *destination, events []int, ship func(parcel) *failure) *failure {
	for len(events) > 0 {
		p, rest, f := d.nextParcel(ctx, dest, events)
		if f == nil && len(p.events) > 0 { // azservicebus panics on an empty batch
			f = ship(p)
		}
		if f != nil {
			d.unsent(dest, rest, f)
			return f
		}
		events = rest
	}
	return nil
}

// nextParcel fills one parcel from the front of events and returns those that
// are left. Events that can never be sent are refused on the way.
func (d *delivery) nextParcel(ctx context.Context, dest *destination, events []int) (p parcel, rest []int, f *failure) {
	if len(events) == 1 {
		m := new(message)
		if err := d.fill(m, events[0]); err != nil {
			d.refuse(events[0], err)
			return parcel{}, nil, nil
		}
		return parcel{dest: dest, events: events, single: m}, nil, nil
	}
	b := &batch{events: make([]int, 0, min(len(events), d.p.cfg.MaxBatchMessages))}
	if b.azsb, f = d.newMessageBatch(ctx, dest); f != nil {
		return parcel{}, events, f
	}
	for pos, i := range events {
		m := b.next()
		if err := d.fill(m, i); err != nil {
			d.refuse(i, err)
			continue
		}
		if !b.shares(m) {
			return b.seal(dest), events[pos:], nil
		}
		switch err := b.add(m, i); {
		case err == nil:
			if len(b.events) == d.p.cfg.MaxBatchMessages {
				return b.seal(dest), events[pos+1:], nil
			}
		case !errors.Is(err, azservicebus.ErrMessageTooLarge):
			d.refuse(i, err) // it cannot be encoded
		case len(b.events) > 0:
			return b.seal(dest), events[pos:], nil
		default:
			// Alone it may still pass: a message by itself has no envelope, and
			// large messages of the Premium tier travel only so (azure-sdk-for-net
			// #44261).
			return parcel{dest: dest, events: events[pos : pos+1], single: m}, events[pos+1:], nil
		}
	}
	return b.seal(dest), nil, nil
}

// newMessageBatch makes an empty batch with the link's limit or our lower one.
func (d *delivery) newMessageBatch(ctx context.Context, dest *destination) (*azservicebus.MessageBatch, *failure) {
	// A call that was abandoned may end at any time after.
	var made atomic.Pointer[azservicebus.MessageBatch]
	f := d.retried(ctx, dest, manner{}, func(ctx context.Context, s *sender) error {
		var options azservicebus.MessageBatchOptions
		if limit := uint64(d.p.cfg.MaxBatchBytes); limit > 0 {
			// The option would also raise the limit, so the smaller one counts.
			linkLimit, err := s.batchLimit(ctx)
			if err != nil {
				return err
			}
			options.MaxBytes = min(limit, linkLimit)
		}
		b, err := s.link.NewMessageBatch(ctx, &options)
		if err != nil {
			return err
		}
		made.Store(b)
		return nil
	})
	if f != nil {
		f.nothingSent = true
		return nil, f
	}
	return made.Load(), nil
}

// batchLimit is the largest batch in bytes that the link takes. azservicebus
// keeps that number to itself (Sender.NewMessageBatch reads it from the link),
// so it is found by trying: about twenty encodings, once a sender and only
// where the number is needed.
func (s *sender) batchLimit(ctx context.Context) (uint64, error) {
	if limit := s.limit.Load(); limit > 0 {
		return limit, nil
	}
	size := func(body int) (uint64, error) {
		b, err := s.link.NewMessageBatch(ctx, nil)
		if err != nil {
			return 0, err
		}
		err = b.AddMessage(&azservicebus.Message{MessageID: new(string), Body: make([]byte, body)}, nil)
		if errors.Is(err, azservicebus.ErrMessageTooLarge) {
			return 0, nil
		}
		return b.NumBytes(), err
	}
	const most = 128 << 20 // above any tier: Premium takes messages of 100 MB
	fits, tooLarge := 0, 64<<10
	var limit uint64
	for {
		n, err := size(tooLarge)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		fits, limit = tooLarge, n
		if tooLarge >= most {
			break
		}
		tooLarge *= 2
	}
	for tooLarge-fits > 1 && fits < most {
		middle := fits + (tooLarge-fits)/2
		n, err := size(middle)
		switch {
		case err != nil:
			return 0, err
		case n == 0:
			tooLarge = middle
		default:
			fits, limit = middle, n
		}
	}
	s.limit.Store(limit)
	return limit, nil
}

// encodedSize is the size of m in bytes as a batch of this one message, the
// number that batchLimit is about.
func (s *sender) encodedSize(ctx context.Context, m *message) (uint64, error) {
	b, err := s.link.NewMessageBatch(ctx, &azservicebus.MessageBatchOptions{MaxBytes: math.MaxInt64})
	if err != nil {
		return 0, err
	}
	err = b.AddAMQPAnnotatedMessage(&m.amqp, nil)
	return b.NumBytes(), err
}
