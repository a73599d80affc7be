package broker

import (
	"fmt"
	"maps"
	"slices"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// Delivery is a message at the moment it was handed out or looked at. It stays
// as it is whatever becomes of the message.
type Delivery struct {
	message  *Message
	header   amqp.Header
	enqueued int64
	// Token is the lock, zero for a message that is not locked.
	Token         amqp.UUID
	Sequence      int64
	LockedUntil   int64
	State         State
	DeliveryCount uint32
	added         map[string]any
	// lockAnnotation asks for the lock token inside the message: a message that
	// is answered over a management link has no delivery tag.
	lockAnnotation bool
	stateful       bool
}

func (m *Message) delivery() Delivery {
	d := Delivery{
		message: m, header: m.header, enqueued: m.enqueued,
		Sequence: m.sequence, State: m.state, DeliveryCount: m.deliveries, added: m.added,
	}
	if m.state == Locked {
		d.Token, d.LockedUntil = m.token, m.lockedUntil
	}
	return d
}

// Append appends the message as the service sends it: the sender's sections
// with a header and message annotations of the broker's own.
func (d *Delivery) Append(b []byte) ([]byte, error) {
	m := d.message
	header := d.header
	header.DeliveryCount = d.DeliveryCount
	b = amqp.AppendHeader(b, header)
	if d.lockAnnotation {
		b = amqp.AppendDescriptor(b, amqp.DescDeliveryAnnotations)
		b = amqp.AppendValue(b, map[amqp.Symbol]any{annLockToken: d.Token})
	}

	b = amqp.AppendDescriptor(b, amqp.DescMessageAnnotations)
	added := 2
	if d.LockedUntil != 0 {
		added++
	}
	if d.stateful {
		added++
	}
	b, err := amqp.AppendMapWith(b, m.annotations, isBrokerAnnotation, added, func(b []byte) []byte {
		b = amqp.AppendLong(amqp.AppendSymbol(b, annSequence), d.Sequence)
		b = amqp.AppendTimestamp(amqp.AppendSymbol(b, annEnqueued), d.enqueued)
		if d.LockedUntil != 0 {
			b = amqp.AppendTimestamp(amqp.AppendSymbol(b, annLockedUntil), d.LockedUntil)
		}
		if d.stateful {
			state := d.State
			if state == Locked {
				state = Active
			}
			b = amqp.AppendInt(amqp.AppendSymbol(b, annState), int32(state))
		}
		return b
	})
	if err != nil {
		return b, fmt.Errorf("message annotations: %w", err)
	}
	if len(d.added) == 0 {
		return append(b, m.rest...), nil
	}
	return d.appendWithAdded(b)
}

func isBrokerAnnotation(key []byte) bool {
	switch string(key) {
	case annSequence, annEnqueued, annLockedUntil, annState:
		return true
	}
	return false
}

// appendWithAdded appends the sections from the properties on, with the
// broker's application properties among the sender's.
func (d *Delivery) appendWithAdded(b []byte) ([]byte, error) {
	rest := d.message.rest
	var before, original, after []byte
	sections := amqp.NewSections(rest)
	for {
		section, ok, err := sections.Next()
		if err != nil {
			return b, err
		}
		if !ok {
			break
		}
		switch {
		case section.Descriptor < amqp.DescApplicationProperties:
			continue
		case section.Descriptor == amqp.DescApplicationProperties:
			before, original = rest[:section.Start], section.Value
			continue
		}
		after = rest[section.Start:]
		if original == nil {
			before = rest[:section.Start]
		}
		break
	}
	b = amqp.AppendDescriptor(append(b, before...), amqp.DescApplicationProperties)
	names := slices.Sorted(maps.Keys(d.added))
	b, err := amqp.AppendMapWith(b, original,
		func(key []byte) bool { _, replaced := d.added[string(key)]; return replaced },
		len(names),
		func(b []byte) []byte {
			for _, name := range names {
				b = amqp.AppendValue(amqp.AppendString(b, name), d.added[name])
			}
			return b
		})
	return append(b, after...), err
}

// Enqueued is when the message was stored, in ms since the epoch.
func (d *Delivery) Enqueued() int64 { return d.enqueued }

// Session is the session id, and whether there is one.
func (d *Delivery) Session() (string, bool) { return d.message.session, d.message.hasSession }

// Message is what was sent.
func (d *Delivery) Message() *Message { return d.message }

// Preview is a message that is not stored yet.
func (m *Message) Preview() Delivery { return Delivery{message: m} }
