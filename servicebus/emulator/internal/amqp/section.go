package amqp

import "encoding/binary"

// BatchFormat is the message format of a batch: the body is data sections, and
// each of them holds an encoded message.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-protocol-guide
const BatchFormat = 0x80013700

// Section is one section of an encoded message.
type Section struct {
	Descriptor uint64
	// Value is the encoding of the section without its descriptor.
	Value []byte
	// Start is where the section, descriptor included, begins in the message.
	Start int
}

// Sections walks the sections of an encoded message without decoding them.
type Sections struct {
	in    Reader
	total int
	last  uint64
}

// NewSections walks message.
func NewSections(message []byte) Sections {
	return Sections{in: NewReader(message), total: len(message)}
}

// Next returns the next section; ok is false at the end. Sections must come in
// the order of the standard, and only body sections may repeat.
func (s *Sections) Next() (section Section, ok bool, err error) {
	if s.in.Len() == 0 {
		return Section{}, false, nil
	}
	section.Start = s.total - s.in.Len()
	if section.Descriptor, err = s.in.Descriptor(); err != nil {
		return Section{}, false, err
	}
	if section.Descriptor < DescHeader || section.Descriptor > DescFooter {
		return Section{}, false, malformed("section 0x%02x is unknown", section.Descriptor)
	}
	repeats := section.Descriptor == s.last && (s.last == DescData || s.last == DescSequence)
	if section.Descriptor <= s.last && !repeats {
		return Section{}, false, malformed("section 0x%02x after 0x%02x", section.Descriptor, s.last)
	}
	s.last = section.Descriptor
	section.Value, err = s.in.Raw()
	return section, err == nil, err
}

// Header is what a message's header section says, defaults filled in.
type Header struct {
	Durable  bool
	Priority uint8
	// TTLMillis is 0 where the sender set none.
	TTLMillis     uint32
	DeliveryCount uint32
}

// defaultPriority is what a message without one has (part 3, section 3.2.1).
const defaultPriority = 4

// DecodeHeader reads the value of a header section.
func DecodeHeader(value []byte) (Header, error) {
	r := NewReader(value)
	f := newFields(&r)
	h := Header{Durable: f.bool(), Priority: f.uint8(defaultPriority), TTLMillis: f.uint32(0)}
	f.skip(1) // first-acquirer
	h.DeliveryCount = f.uint32(0)
	return h, f.err
}

// AppendHeader appends h as a whole section.
func AppendHeader(b []byte, h Header) []byte {
	return appendComposite(b, DescHeader, 5, func(b []byte) []byte {
		b = AppendUbyte(AppendBool(b, h.Durable), h.Priority)
		if h.TTLMillis == 0 {
			b = AppendNull(b)
		} else {
			b = AppendUint(b, h.TTLMillis)
		}
		return AppendUint(AppendBool(b, false), h.DeliveryCount)
	})
}

// Properties are the properties of a message.
type Properties struct {
	// MessageID and CorrelationID are encoded values: they may be of several
	// types. They are nil where there is none.
	MessageID     []byte
	To            string
	Subject       string
	ReplyTo       string
	CorrelationID []byte
	ContentType   string
	// GroupID is what Service Bus calls the session id; HasGroup tells an empty
	// one from none.
	GroupID        string
	HasGroup       bool
	ReplyToGroupID string
}

// DecodeProperties reads the value of a properties section.
func DecodeProperties(value []byte) (Properties, error) {
	r := NewReader(value)
	f := newFields(&r)
	p := Properties{MessageID: f.raw()}
	f.skip(1) // user-id
	p.To, p.Subject, p.ReplyTo, p.CorrelationID, p.ContentType = f.string(), f.string(), f.string(), f.raw(), f.string()
	f.skip(3) // content-encoding, absolute-expiry-time, creation-time
	if !f.absent() {
		p.GroupID, f.err = f.in.String()
		p.HasGroup = f.err == nil
	}
	f.skip(1) // group-sequence
	p.ReplyToGroupID = f.string()
	return p, f.err
}

// DecodeIdentity reads only what identifies a message: its message-id, encoded,
// and its group-id. It is the cheap part of [DecodeProperties].
func DecodeIdentity(value []byte) (messageID []byte, group string, hasGroup bool, err error) {
	r := NewReader(value)
	f := newFields(&r)
	messageID = f.raw()
	f.skip(9)
	if !f.absent() {
		group, f.err = f.in.String()
		hasGroup = f.err == nil
	}
	return messageID, group, hasGroup, f.err
}

// WithMessageID returns rest, a message from its properties section on, which
// may be missing, with the message-id set.
func WithMessageID(rest []byte, id string) ([]byte, error) {
	b := AppendDescriptor(make([]byte, 0, len(rest)+64), DescProperties)
	sections := NewSections(rest)
	first, ok, err := sections.Next()
	if err != nil {
		return nil, err
	}
	if !ok || first.Descriptor != DescProperties {
		b, mark := StartList(b, 1)
		return append(EndCompound(AppendString(b, id), mark), rest...), nil
	}
	r := NewReader(first.Value)
	f := newFields(&r)
	count := max(f.left, 1)
	f.skip(1)
	if f.err != nil {
		return nil, f.err
	}
	b, mark := StartList(b, count)
	b = append(AppendString(b, id), f.in.Rest()...)
	return append(EndCompound(b, mark), sections.in.Rest()...), nil
}

// raw is the encoding of a field, nil where it has no value.
func (f *fields) raw() []byte {
	if f.absent() {
		return nil
	}
	b, err := f.in.Raw()
	f.err = err
	return b
}

// AppendReplyProperties appends a properties section that says only which
// message this one answers.
func AppendReplyProperties(b, correlationID []byte) []byte {
	return appendComposite(b, DescProperties, 6, func(b []byte) []byte {
		for range 5 {
			b = AppendNull(b)
		}
		if correlationID == nil {
			return AppendNull(b)
		}
		return append(b, correlationID...)
	})
}

// CheckMap says whether value is a map, or null, that can be walked to its end.
func CheckMap(value []byte) error {
	r := NewReader(value)
	if r.Null() {
		return nil
	}
	in, count, err := r.Map()
	for range count {
		if err == nil {
			err = in.Skip()
		}
	}
	if err == nil && in.Len() > 0 {
		err = malformed("%d bytes behind the last entry of a map", in.Len())
	}
	return err
}

// AppendMapWith appends the map encoded in original (nil for none) with the
// entries that add writes; entries of original whose key replaced names are
// left out. added is how many entries add writes.
func AppendMapWith(b, original []byte, replaced func(key []byte) bool, added int, add func([]byte) []byte) ([]byte, error) {
	kept := added
	b, mark := StartMap(b, 0)
	r := NewReader(original)
	if original != nil && !r.Null() {
		in, count, err := r.Map()
		if err != nil {
			return b, err
		}
		for range count / 2 {
			pair := in.Rest()
			// A key may be a ulong too; such a one is nobody's to replace.
			key := NewReader(pair)
			name, err := key.Bytes()
			known := err == nil && replaced(name)
			if err := in.Skip(); err != nil {
				return b, err
			}
			if err := in.Skip(); err != nil {
				return b, err
			}
			if !known {
				b = append(b, pair[:len(pair)-in.Len()]...)
				kept++
			}
		}
	}
	b = EndCompound(add(b), mark)
	binary.BigEndian.PutUint32(b[mark:], uint32(2*kept))
	return b, nil
}
