package tds

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	errTruncated = errors.New("the message ends in the middle of a value")
	errTooLarge  = errors.New("the message is larger than this server takes")
	// errMalformed is wrapped by everything that the decoders refuse.
	errMalformed = errors.New("malformed request")
	// errAttention says that the client sent an attention instead of the rest
	// of its message.
	errAttention = errors.New("the client cancelled its message")
	// errIgnored says that the client ended its message with the ignore bit.
	errIgnored = errors.New("the client withdrew its message")
)

// message decodes one client message while its packets arrive. What it holds
// grows with the bytes that came, never with a length that the client merely
// claims, and never beyond limit.
//
// The first thing that goes wrong is kept in err, and every later read gives
// zeros, so decoders may look at err once for a whole element. They must look
// in every loop whose count came from the wire.
type message struct {
	next  func() (packet, error)
	kind  packetType
	buf   []byte
	pos   int
	limit int
	last  bool
	err   error
}

// begin starts over with the first packet of a message. The buffer is kept.
func (m *message) begin(first packet) {
	m.kind, m.pos, m.err = first.kind, 0, nil
	if cap(m.buf) > keepBuffer {
		m.buf = nil
	}
	m.buf = append(m.buf[:0], first.payload...)
	m.take(first)
}

func (m *message) take(p packet) {
	m.last = p.status&statusEndOfMessage != 0
	if p.status&statusIgnore != 0 && m.last {
		m.fail(errIgnored)
	}
}

func (m *message) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

func (m *message) malformed(format string, args ...any) {
	m.fail(fmt.Errorf("%w: %s", errMalformed, fmt.Sprintf(format, args...)))
}

// fill waits for the next packet.
func (m *message) fill() bool {
	switch {
	case m.err != nil:
		return false
	case m.last:
		m.fail(fmt.Errorf("%w: %w", errMalformed, errTruncated))
		return false
	}
	p, err := m.next()
	if err != nil {
		m.fail(err)
		return false
	}
	if p.kind != m.kind {
		m.malformed("a packet of type %d inside a message of type %d", p.kind, m.kind)
		return false
	}
	if len(m.buf)+len(p.payload) > m.limit {
		m.fail(fmt.Errorf("%w: the limit is %d bytes", errTooLarge, m.limit))
		return false
	}
	m.buf = append(m.buf, p.payload...)
	m.take(p)
	return m.err == nil
}

// discard forgets what was read, so that a message of any length passes
// through.
func (m *message) discard() {
	rest := copy(m.buf, m.buf[m.pos:])
	m.buf, m.pos = m.buf[:rest], 0
}

// more says whether anything is left to read.
func (m *message) more() bool {
	for m.err == nil && m.pos == len(m.buf) {
		if m.last || !m.fill() {
			return false
		}
	}
	return m.err == nil
}

// rest reads to the end of the message.
func (m *message) rest() []byte {
	for m.err == nil && !m.last {
		m.fill()
	}
	if m.err != nil {
		return nil
	}
	b := m.buf[m.pos:]
	m.pos = len(m.buf)
	return b
}

// bytes returns the next n bytes. They are good until discard or the next
// message.
func (m *message) bytes(n int) []byte {
	if n < 0 {
		m.malformed("a negative length")
	}
	for m.err == nil && len(m.buf)-m.pos < n {
		m.fill()
	}
	if m.err != nil {
		return nil
	}
	b := m.buf[m.pos : m.pos+n]
	m.pos += n
	return b
}

func (m *message) u8() uint8 {
	if b := m.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (m *message) u16() uint16 {
	if b := m.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (m *message) u32() uint32 {
	if b := m.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (m *message) u64() uint64 {
	if b := m.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// shortText reads a B_VARCHAR: a byte of length in UTF-16 units, then the text.
func (m *message) shortText() string { return decodeUTF16(m.bytes(2 * int(m.u8()))) }

// text reads a US_VARCHAR: two bytes of length.
func (m *message) text() string { return decodeUTF16(m.bytes(2 * int(m.u16()))) }

const headerTransaction = 2 // MS-TDS 2.2.5.3.2, the transaction descriptor

// allHeaders reads the headers in front of a batch, an RPC or a transaction
// request and returns the transaction that the client believes to be in.
func (m *message) allHeaders() (transaction uint64) {
	total := int(m.u32())
	if total < 4 {
		m.malformed("ALL_HEADERS of %d bytes", total)
		return 0
	}
	b := m.bytes(total - 4)
	for len(b) > 0 {
		if len(b) < 6 {
			m.malformed("a header of %d bytes", len(b))
			return 0
		}
		length := binary.LittleEndian.Uint32(b)
		if length < 6 || uint64(length) > uint64(len(b)) {
			m.malformed("a header of %d bytes", length)
			return 0
		}
		if binary.LittleEndian.Uint16(b[4:]) == headerTransaction {
			if length < 14 {
				m.malformed("a transaction descriptor of %d bytes", length)
				return 0
			}
			transaction = binary.LittleEndian.Uint64(b[6:])
		}
		b = b[length:]
	}
	return transaction
}
