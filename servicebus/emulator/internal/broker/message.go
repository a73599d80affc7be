package broker

import (
	"fmt"
	"math/rand/v2"
	"unicode/utf8"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// State is what a stored message is waiting for.
type State int32

// The states of a message. The first three have the numbers that
// x-opt-message-state carries; a locked message counts as active there.
const (
	Active    State = 0
	Deferred  State = 1
	Scheduled State = 2
	Locked    State = 3
)

// Message is one stored message. What the sender sent never changes and may be
// read without a lock; all from header on is guarded by the queue that holds
// the message.
type Message struct {
	annotations []byte // encoded map, nil for none
	rest        []byte // from the properties on, as it was sent
	id          []byte // encoded message-id
	session     string
	hasSession  bool
	partition   string
	size        int64

	header      amqp.Header
	sequence    int64
	enqueued    int64 // ms since the epoch, like all times here
	scheduled   int64 // 0: at once
	expires     int64 // 0: never
	state       State
	deliveries  uint32
	token       amqp.UUID
	lockedUntil int64
	holder      *Session
	wasDeferred bool           // given back, it is deferred again
	added       map[string]any // application properties the broker set; replaced, never changed
}

// maxIDLength is the limit on MessageId, SessionId and PartitionKey.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
const maxIDLength = 128

// annotation names that the broker reads or writes.
const (
	annPartitionKey  = "x-opt-partition-key"
	annScheduledTime = "x-opt-scheduled-enqueue-time"
	annSequence      = "x-opt-sequence-number"
	annEnqueued      = "x-opt-enqueued-time"
	annLockedUntil   = "x-opt-locked-until"
	annState         = "x-opt-message-state"
	annLockToken     = "x-opt-lock-token"
)

// Parse prepares one encoded message for storing. It keeps raw.
func Parse(raw []byte) (*Message, error) {
	m := &Message{}
	return m, m.parse(raw)
}

// ParseBatch prepares the messages of a batch, at most limit of them. It keeps
// raw.
func ParseBatch(raw []byte, limit int) ([]*Message, error) {
	var bodies [][]byte
	sections := amqp.NewSections(raw)
	for {
		section, ok, err := sections.Next()
		if err != nil {
			return nil, decodeError(err)
		}
		if !ok {
			break
		}
		switch section.Descriptor {
		case amqp.DescData:
			r := amqp.NewReader(section.Value)
			body, err := r.Bytes()
			if err != nil {
				return nil, decodeError(err)
			}
			bodies = append(bodies, body)
		case amqp.DescSequence, amqp.DescValue:
			return nil, amqp.Errorf(CondDecode, "the body of a batch is data sections, not 0x%02x", section.Descriptor)
		}
	}
	if len(bodies) > limit {
		// The service is no more helpful than this text (azure-service-bus #397);
		// that it comes with amqp:internal-error is believed.
		return nil, amqp.Errorf(CondInternal, "The service was unable to process the request; please retry the operation. "+
			"(emulator: a batch of %d messages, at most %d are taken)", len(bodies), limit)
	}
	if len(bodies) == 0 {
		return nil, amqp.Errorf(CondArgument, "a batch without messages")
	}
	slab := make([]Message, len(bodies))
	messages := make([]*Message, len(bodies))
	for i, body := range bodies {
		messages[i] = &slab[i]
		if err := messages[i].parse(body); err != nil {
			return nil, err
		}
	}
	return messages, nil
}

func decodeError(err error) *amqp.Error {
	return amqp.Errorf(CondDecode, "%s", err)
}

func (m *Message) parse(raw []byte) error {
	m.size = int64(len(raw))
	body := false
	header := 0
	var application []byte
	sections := amqp.NewSections(raw)
	for {
		section, ok, err := sections.Next()
		if err != nil {
			return decodeError(err)
		}
		if !ok {
			break
		}
		if section.Descriptor >= amqp.DescProperties && m.rest == nil {
			m.rest = raw[section.Start:]
		}
		switch section.Descriptor {
		case amqp.DescHeader:
			m.header, err = amqp.DecodeHeader(section.Value)
		case amqp.DescMessageAnnotations:
			err = m.readAnnotations(section.Value)
		case amqp.DescProperties:
			m.id, m.session, m.hasSession, err = amqp.DecodeIdentity(section.Value)
		case amqp.DescApplicationProperties:
			// What the broker may have to add to must be sound.
			err = amqp.CheckMap(section.Value)
			application = section.Value
		case amqp.DescData, amqp.DescSequence, amqp.DescValue:
			body = true
		}
		if err != nil {
			return decodeError(err)
		}
		if section.Descriptor < amqp.DescData {
			header += len(section.Value)
		}
	}
	if err := checkHeader(header, application); err != nil {
		return err
	}
	if !body {
		return amqp.Errorf(CondDecode, "a message without a body section")
	}
	if m.id == nil {
		if err := m.giveID(); err != nil {
			return decodeError(err)
		}
	}
	return m.checkIdentity()
}

// giveID sets an id where the sender set none, as the service does: receivers
// rely on there being one.
func (m *Message) giveID() (err error) {
	id := fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
	m.id = amqp.AppendString(nil, id)
	m.rest, err = amqp.WithMessageID(m.rest, id)
	return err
}

// checkIdentity refuses ids that are too long or contradict each other. That
// the service does is documented; the conditions are believed, not known.
func (m *Message) checkIdentity() error {
	for _, id := range []struct{ name, value string }{
		{"MessageId", m.MessageID()},
		{"SessionId", m.session},
		{"PartitionKey", m.partition},
	} {
		if len(id.value) > maxIDLength && utf8.RuneCountInString(id.value) > maxIDLength {
			return amqp.Errorf(CondArgument, "%s is longer than %d characters", id.name, maxIDLength)
		}
	}
	if m.hasSession && m.partition != "" && m.partition != m.session {
		return amqp.Errorf(CondNotAllowed, "PartitionKey %q and SessionId %q of a message must be equal where both are set",
			m.partition, m.session)
	}
	return nil
}

func (m *Message) readAnnotations(value []byte) error {
	r := amqp.NewReader(value)
	if r.Null() {
		return nil
	}
	in, count, err := r.Map()
	if err != nil || count == 0 {
		return err
	}
	if err := amqp.CheckMap(value); err != nil {
		return err
	}
	m.annotations = value
	for range count / 2 {
		key, err := in.Raw()
		if err != nil {
			return err
		}
		one := amqp.NewReader(key)
		name, _ := one.Bytes()
		one = in
		switch string(name) {
		case annPartitionKey:
			if !one.Null() {
				if m.partition, err = one.String(); err != nil {
					return err
				}
			}
		case annScheduledTime:
			if !one.Null() {
				if m.scheduled, err = one.Timestamp(); err != nil {
					return err
				}
			}
		}
		if err := in.Skip(); err != nil {
			return err
		}
	}
	return nil
}

// MessageID is the id as text; ids that are no text are given as they are
// encoded.
func (m *Message) MessageID() string {
	r := amqp.NewReader(m.id)
	if text, err := r.Bytes(); err == nil {
		return string(text)
	}
	return string(m.id)
}
