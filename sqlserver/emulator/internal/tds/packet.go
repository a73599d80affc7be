package tds

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// packetType is the first byte of a packet header (MS-TDS 2.2.3.1.1).
type packetType uint8

const (
	packetBatch       packetType = 1
	packetRPC         packetType = 3
	packetReply       packetType = 4
	packetAttention   packetType = 6
	packetBulk        packetType = 7
	packetTransaction packetType = 14
	packetLogin       packetType = 16
	packetPrelogin    packetType = 18
)

// Bits of the status byte of a packet header (MS-TDS 2.2.3.1.2).
const (
	statusEndOfMessage  = 0x01
	statusIgnore        = 0x02
	statusReset         = 0x08
	statusResetSkipTran = 0x10
)

const (
	headerSize = 8
	// defaultPacketSize is what both sides use until LOGIN7 has asked for
	// another (MS-TDS 2.2.3.1.3).
	defaultPacketSize = 4096
	minPacketSize     = 512
	maxPacketSize     = 32767
	// maxEncryptedPacketSize is where SQL Server caps an encrypted connection:
	// a packet and its TLS overhead have to fit one TLS record.
	maxEncryptedPacketSize = 16383
)

var errPacketLength = errors.New("a packet header gives an impossible length")

// packet is one packet as it came from the client.
type packet struct {
	kind    packetType
	status  uint8
	payload []byte
}

// readPacket reads one packet into buf, which it grows where it must: to 32 KB
// at most, the largest packet there is.
func readPacket(r io.Reader, buf []byte) (packet, []byte, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return packet{}, buf, err
	}
	length := int(binary.BigEndian.Uint16(header[2:]))
	if length < headerSize || length > maxPacketSize {
		return packet{}, buf, fmt.Errorf("%w: %d bytes, type %d", errPacketLength, length, header[0])
	}
	length -= headerSize
	if cap(buf) < length {
		buf = make([]byte, length)
	}
	buf = buf[:length]
	if _, err := io.ReadFull(r, buf); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return packet{}, buf, err
	}
	return packet{kind: packetType(header[0]), status: header[1], payload: buf}, buf, nil
}

const (
	// flushAt is how much of a reply is collected before it goes to the socket:
	// a write a packet would cost more than encoding the rows.
	flushAt = 32 << 10
	// keepBuffer is the largest reply buffer that a connection keeps for its
	// next request. One large row must not cost its memory for ever.
	keepBuffer = 256 << 10
)

// packetWriter cuts the tokens of one reply at a time into packets. Tokens are
// appended to tokens; the caller calls spill now and then and finish at the
// end.
type packetWriter struct {
	w      io.Writer
	kind   packetType
	size   int
	tokens []byte
	// before is called once a message, before its first byte goes out.
	before  func() error
	framed  []byte
	started bool
	seq     uint8
}

// spill writes what fills whole packets, once enough has come together. One
// byte at least stays, because the last packet of a message has to say so.
func (p *packetWriter) spill() error {
	if len(p.tokens) < flushAt {
		return nil
	}
	body := p.size - headerSize
	taken := 0
	p.framed = p.framed[:0]
	for len(p.tokens)-taken > body {
		p.frame(p.tokens[taken:taken+body], 0)
		taken += body
	}
	rest := copy(p.tokens, p.tokens[taken:])
	p.tokens = p.tokens[:rest]
	return p.write()
}

// flush writes what there is, in a packet that is not full where need be. The
// message goes on.
func (p *packetWriter) flush() error {
	body := p.size - headerSize
	p.framed = p.framed[:0]
	for rest := p.tokens; len(rest) > 0; {
		n := min(len(rest), body)
		p.frame(rest[:n], 0)
		rest = rest[n:]
	}
	p.tokens = p.tokens[:0]
	return p.write()
}

// finish writes everything that is left and ends the message.
func (p *packetWriter) finish() error {
	body := p.size - headerSize
	rest := p.tokens
	p.framed = p.framed[:0]
	for len(rest) > body {
		p.frame(rest[:body], 0)
		rest = rest[body:]
	}
	p.frame(rest, statusEndOfMessage)
	err := p.write()
	p.reset()
	return err
}

// reset forgets a message that was begun.
func (p *packetWriter) reset() {
	p.tokens = p.tokens[:0]
	if cap(p.tokens) > keepBuffer {
		p.tokens = nil
	}
	if cap(p.framed) > keepBuffer {
		p.framed = nil
	}
	p.started, p.seq = false, 0
}

func (p *packetWriter) frame(body []byte, status uint8) {
	p.seq++
	length := uint16(len(body) + headerSize)
	p.framed = append(p.framed,
		byte(p.kind), status, byte(length>>8), byte(length), 0, 0, p.seq, 0)
	p.framed = append(p.framed, body...)
}

func (p *packetWriter) write() error {
	if len(p.framed) == 0 {
		return nil
	}
	if !p.started {
		p.started = true
		if p.before != nil {
			if err := p.before(); err != nil {
				return err
			}
		}
	}
	_, err := p.w.Write(p.framed)
	return err
}
