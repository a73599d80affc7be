package amqp

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Frame types.
const (
	FrameAMQP = 0
	FrameSASL = 1
)

// MinMaxFrameSize is the smallest limit a peer may set, and the limit until
// the opens are exchanged.
const MinMaxFrameSize = 512

const frameHeaderSize = 8

// Protocol headers (part 2, section 2.2, and part 5, section 5.3.2).
var (
	HeaderAMQP = [8]byte{'A', 'M', 'Q', 'P', 0, 1, 0, 0}
	HeaderSASL = [8]byte{'A', 'M', 'Q', 'P', 3, 1, 0, 0}
)

// EmptyFrame keeps a connection alive and says nothing.
var EmptyFrame = [8]byte{0, 0, 0, 8, 2, FrameAMQP, 0, 0}

// Frame is one frame as it was received.
type Frame struct {
	Type    byte
	Channel uint16
	// Body is nil for an empty frame.
	Body Performative
	// Payload is what follows a transfer. It is valid until the next frame is
	// read.
	Payload []byte
	// Size is the whole frame in bytes.
	Size int
}

// FrameReader reads frames from a connection. It is not safe for concurrent
// use.
type FrameReader struct {
	in      *bufio.Reader
	limit   int
	pending int
}

// NewFrameReader reads frames of at most limit bytes. It buffers: nothing else
// may read from in afterwards.
func NewFrameReader(in io.Reader, limit int) *FrameReader {
	return &FrameReader{in: bufio.NewReaderSize(in, 2*limit), limit: limit}
}

// Header reads a protocol header.
func (r *FrameReader) Header() (header [8]byte, err error) {
	if err := r.release(); err != nil {
		return header, err
	}
	_, err = io.ReadFull(r.in, header[:])
	return header, err
}

// Buffered is how many bytes have arrived that no frame was made of yet.
func (r *FrameReader) Buffered() int { return r.in.Buffered() - r.pending }

func (r *FrameReader) release() error {
	_, err := r.in.Discard(r.pending)
	r.pending = 0
	return err
}

// Next reads a frame. An error that wraps [ErrMalformed] is the peer's fault;
// any other comes from the connection, io.EOF between two frames included.
func (r *FrameReader) Next() (Frame, error) {
	if err := r.release(); err != nil {
		return Frame{}, err
	}
	head, err := r.in.Peek(frameHeaderSize)
	if err != nil {
		if err == io.EOF && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	size := int(binary.BigEndian.Uint32(head))
	offset := 4 * int(head[4])
	f := Frame{Type: head[5], Channel: binary.BigEndian.Uint16(head[6:]), Size: size}
	if size < frameHeaderSize || offset < frameHeaderSize || offset > size {
		return f, malformed("a frame of %d bytes whose body begins at %d", size, offset)
	}
	if size > r.limit {
		return f, malformed("a frame of %d bytes, above the limit of %d", size, r.limit)
	}
	whole, err := r.in.Peek(size)
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return f, err
	}
	r.pending = size
	if offset == size {
		return f, nil
	}
	body := NewReader(whole[offset:])
	if f.Body, err = decodePerformative(&body); err != nil {
		return f, fmt.Errorf("frame on channel %d: %w", f.Channel, err)
	}
	f.Payload = body.Rest()
	return f, nil
}

// AppendFrame appends a frame with body p and, behind it, payload.
func AppendFrame(b []byte, kind byte, channel uint16, p Performative, payload []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0, 2, kind, byte(channel>>8), byte(channel))
	b = append(p.append(b), payload...)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

// transferOverhead is more than the head of any transfer frame takes: frame
// header 8, performative head 12, its fields at most 5+5+34+5+1+1.
const transferOverhead = 80

// AppendTransfer appends one transfer frame with as much of payload as fits
// maxFrame, and returns the rest of it. While there is a rest, t.More is set,
// and t has lost what only the first transfer of a delivery must carry: call
// again with both.
func AppendTransfer(b []byte, channel uint16, t *Transfer, payload []byte, maxFrame int) (appended, rest []byte) {
	room := maxFrame - transferOverhead
	t.More = len(payload) > room
	if !t.More {
		return AppendFrame(b, FrameAMQP, channel, t, payload), nil
	}
	b = AppendFrame(b, FrameAMQP, channel, t, payload[:room])
	t.DeliveryID, t.DeliveryTag, t.MessageFormat = nil, nil, nil
	return b, payload[room:]
}
