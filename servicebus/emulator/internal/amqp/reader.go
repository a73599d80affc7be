package amqp

import "encoding/binary"

// Reader walks encoded values from the front. What it returns as bytes is a
// part of the buffer it reads, never a copy.
type Reader struct {
	buf []byte
}

// NewReader reads the values encoded in buf.
func NewReader(buf []byte) Reader { return Reader{buf: buf} }

// Len is how many bytes are left.
func (r *Reader) Len() int { return len(r.buf) }

// Rest is what is left, unread.
func (r *Reader) Rest() []byte { return r.buf }

func (r *Reader) take(n int) ([]byte, error) {
	if n < 0 || n > len(r.buf) {
		return nil, malformed("%d bytes wanted, %d left", n, len(r.buf))
	}
	b := r.buf[:n:n]
	r.buf = r.buf[n:]
	return b, nil
}

func (r *Reader) code() (byte, error) {
	if len(r.buf) == 0 {
		return 0, malformed("a value is missing")
	}
	c := r.buf[0]
	r.buf = r.buf[1:]
	return c, nil
}

// Null consumes the next value if it is null, and says whether it was.
func (r *Reader) Null() bool {
	if len(r.buf) > 0 && r.buf[0] == codeNull {
		r.buf = r.buf[1:]
		return true
	}
	return false
}

// width is the size in bytes of what follows the format code: the upper half
// of the code is its width class (part 1, section 1.1.2).
func (r *Reader) width(code byte) (int, error) {
	switch code >> 4 {
	case 0x4:
		return 0, nil
	case 0x5:
		return 1, nil
	case 0x6:
		return 2, nil
	case 0x7:
		return 4, nil
	case 0x8:
		return 8, nil
	case 0x9:
		return 16, nil
	case 0xa, 0xc, 0xe:
		n, err := r.take(1)
		if err != nil {
			return 0, err
		}
		return int(n[0]), nil
	case 0xb, 0xd, 0xf:
		n, err := r.take(4)
		if err != nil {
			return 0, err
		}
		return int(binary.BigEndian.Uint32(n)), nil
	default:
		return 0, malformed("unknown type 0x%02x", code)
	}
}

// Skip passes over one value. A compound value carries its size, so only
// descriptors make this more than one step.
func (r *Reader) Skip() error {
	for range MaxDepth {
		code, err := r.code()
		if err != nil {
			return err
		}
		if code != codeDescribed {
			n, err := r.width(code)
			if err != nil {
				return err
			}
			_, err = r.take(n)
			return err
		}
		if len(r.buf) > 0 && r.buf[0] == codeDescribed {
			return malformed("a descriptor that is itself described")
		}
		if err := r.Skip(); err != nil {
			return err
		}
	}
	return malformed("nested more than %d deep", MaxDepth)
}

// Raw returns the encoding of the next value.
func (r *Reader) Raw() ([]byte, error) {
	start := r.buf
	if err := r.Skip(); err != nil {
		return nil, err
	}
	n := len(start) - len(r.buf)
	return start[:n:n], nil
}

// Descriptor reads the descriptor of a described value. Only the numeric form
// is understood: every client in use sends it.
func (r *Reader) Descriptor() (uint64, error) {
	code, err := r.code()
	if err != nil {
		return 0, err
	}
	if code != codeDescribed {
		return 0, malformed("type 0x%02x where a descriptor belongs", code)
	}
	return r.Uint()
}

// Uint reads an unsigned integer of any width.
func (r *Reader) Uint() (uint64, error) {
	code, err := r.code()
	if err != nil {
		return 0, err
	}
	switch code {
	case codeUint0, codeUlong0, codeUbyte, codeSmallUint, codeSmallUlong, codeUshort, codeUint, codeUlong:
		return r.bigEndian(code)
	default:
		return 0, malformed("type 0x%02x where an unsigned integer belongs", code)
	}
}

// bigEndian reads the fixed-width number behind a format code.
func (r *Reader) bigEndian(code byte) (uint64, error) {
	n, err := r.width(code)
	if err != nil {
		return 0, err
	}
	b, err := r.take(n)
	if err != nil {
		return 0, err
	}
	switch n {
	case 0:
		return 0, nil
	case 1:
		return uint64(b[0]), nil
	case 2:
		return uint64(binary.BigEndian.Uint16(b)), nil
	case 4:
		return uint64(binary.BigEndian.Uint32(b)), nil
	default:
		return binary.BigEndian.Uint64(b), nil
	}
}

// Bool reads a boolean.
func (r *Reader) Bool() (bool, error) {
	code, err := r.code()
	if err != nil {
		return false, err
	}
	switch code {
	case codeTrue:
		return true, nil
	case codeFalse:
		return false, nil
	case codeBool:
		b, err := r.take(1)
		if err != nil {
			return false, err
		}
		return b[0] != 0, nil
	default:
		return false, malformed("type 0x%02x where a boolean belongs", code)
	}
}

// Bytes reads a binary, string or symbol.
func (r *Reader) Bytes() ([]byte, error) {
	code, err := r.code()
	if err != nil {
		return nil, err
	}
	switch code {
	case codeBinary8, codeString8, codeSymbol8, codeBinary32, codeString32, codeSymbol32:
		n, err := r.width(code)
		if err != nil {
			return nil, err
		}
		return r.take(n)
	default:
		return nil, malformed("type 0x%02x where text or binary belongs", code)
	}
}

// String reads a string or symbol (or binary) as a Go string.
func (r *Reader) String() (string, error) {
	b, err := r.Bytes()
	return string(b), err
}

// Timestamp reads milliseconds since the Unix epoch.
func (r *Reader) Timestamp() (int64, error) {
	code, err := r.code()
	if err != nil {
		return 0, err
	}
	if code != codeTimestamp {
		return 0, malformed("type 0x%02x where a timestamp belongs", code)
	}
	n, err := r.bigEndian(code)
	return int64(n), err
}

// List enters a list: the returned Reader holds exactly its elements.
func (r *Reader) List() (elements Reader, count int, err error) {
	return r.compound(codeList8, codeList32)
}

// Map enters a map; count is keys plus values.
func (r *Reader) Map() (elements Reader, count int, err error) {
	elements, count, err = r.compound(codeMap8, codeMap32)
	if err == nil && count%2 != 0 {
		err = malformed("a map of %d keys and values", count)
	}
	return elements, count, err
}

func (r *Reader) compound(small, large byte) (Reader, int, error) {
	code, err := r.code()
	if err != nil {
		return Reader{}, 0, err
	}
	if code == codeList0 && small == codeList8 {
		return Reader{}, 0, nil
	}
	if code != small && code != large {
		return Reader{}, 0, malformed("type 0x%02x where 0x%02x belongs", code, small)
	}
	return r.elements(code)
}

// elements reads size and count of a compound or array whose code was read.
func (r *Reader) elements(code byte) (Reader, int, error) {
	size, err := r.width(code)
	if err != nil {
		return Reader{}, 0, err
	}
	body, err := r.take(size)
	if err != nil {
		return Reader{}, 0, err
	}
	in := Reader{buf: body}
	width := 1
	if code>>4 == 0xd || code>>4 == 0xf {
		width = 4
	}
	n, err := in.take(width)
	if err != nil {
		return Reader{}, 0, err
	}
	count := int(n[0])
	if width == 4 {
		count = int(binary.BigEndian.Uint32(n))
	}
	// An element takes a byte at least, except in an array, whose elements may
	// be of a type without content: the callers of arrays bound them.
	if count > in.Len() && code>>4 != 0xe && code>>4 != 0xf {
		return Reader{}, 0, malformed("%d elements in %d bytes", count, in.Len())
	}
	return in, count, nil
}
