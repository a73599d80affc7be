package amqp

import (
	"math"
	"time"
)

// Value decodes the next value into Go: nil, bool, uint8 to uint64, int8 to
// int64, float32, float64, rune, time.Time, UUID, []byte (a copy), string,
// Symbol, []any for lists and arrays, map[string]any for maps with string or
// symbol keys, Described. Decimals are refused: nothing here sends them.
func (r *Reader) Value() (any, error) { return r.value(0) }

func (r *Reader) value(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, malformed("nested more than %d deep", MaxDepth)
	}
	code, err := r.code()
	if err != nil {
		return nil, err
	}
	switch code {
	case codeDescribed:
		if len(r.buf) > 0 && r.buf[0] == codeDescribed {
			return nil, malformed("a descriptor that is itself described")
		}
		descriptor, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		value, err := r.value(depth + 1)
		return Described{Descriptor: descriptor, Value: value}, err
	case codeList0:
		return []any{}, nil
	case codeList8, codeList32:
		in, count, err := r.elements(code)
		if err != nil {
			return nil, err
		}
		return in.values(count, depth)
	case codeMap8, codeMap32:
		in, count, err := r.elements(code)
		if err != nil {
			return nil, err
		}
		return in.pairs(count, depth)
	case codeArray8, codeArray32:
		return r.array(code, depth)
	default:
		return r.primitive(code)
	}
}

func (r *Reader) values(count, depth int) ([]any, error) {
	list := make([]any, 0, count)
	for range count {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (r *Reader) pairs(count, depth int) (map[string]any, error) {
	m := make(map[string]any, count/2)
	for range count / 2 {
		key, err := r.String()
		if err != nil {
			return nil, err
		}
		if m[key], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// array reads the elements of an array: they share one constructor, which must
// be a primitive type here.
func (r *Reader) array(code byte, depth int) (any, error) {
	in, count, err := r.elements(code)
	if err != nil {
		return nil, err
	}
	constructor, err := in.code()
	if err != nil {
		return nil, err
	}
	if constructor == codeDescribed || constructor>>4 == 0xe || constructor>>4 == 0xf {
		return nil, malformed("an array of type 0x%02x", constructor)
	}
	if count > in.Len() {
		return nil, malformed("an array of %d elements in %d bytes", count, in.Len())
	}
	list := make([]any, 0, count)
	for range count {
		one := Reader{buf: in.buf}
		var v any
		switch constructor {
		case codeList8, codeList32, codeMap8, codeMap32:
			elements, n, err := one.elements(constructor)
			if err != nil {
				return nil, err
			}
			if constructor == codeMap8 || constructor == codeMap32 {
				v, err = elements.pairs(n, depth)
			} else {
				v, err = elements.values(n, depth)
			}
			if err != nil {
				return nil, err
			}
		default:
			if v, err = one.primitive(constructor); err != nil {
				return nil, err
			}
		}
		list = append(list, v)
		in.buf = one.buf
	}
	return list, nil
}

// primitive decodes the content of a primitive type whose code was read.
func (r *Reader) primitive(code byte) (any, error) {
	switch code {
	case codeNull:
		return nil, nil
	case codeTrue:
		return true, nil
	case codeFalse:
		return false, nil
	case codeUUID:
		b, err := r.take(16)
		if err != nil {
			return nil, err
		}
		return UUID(b), nil
	case codeBinary8, codeBinary32, codeString8, codeString32, codeSymbol8, codeSymbol32:
		n, err := r.width(code)
		if err != nil {
			return nil, err
		}
		b, err := r.take(n)
		if err != nil {
			return nil, err
		}
		switch code {
		case codeBinary8, codeBinary32:
			return append([]byte{}, b...), nil
		case codeString8, codeString32:
			return string(b), nil
		default:
			return Symbol(b), nil
		}
	case codeDecimal32, codeDecimal64, codeDecimal128:
		return nil, malformed("decimals (type 0x%02x) are not supported", code)
	}

	if code>>4 < 0x4 || code>>4 > 0x8 {
		return nil, malformed("unknown type 0x%02x", code)
	}
	n, err := r.bigEndian(code)
	if err != nil {
		return nil, err
	}
	switch code {
	case codeBool:
		return n != 0, nil
	case codeUbyte:
		return uint8(n), nil
	case codeUshort:
		return uint16(n), nil
	case codeUint0, codeSmallUint, codeUint:
		return uint32(n), nil
	case codeUlong0, codeSmallUlong, codeUlong:
		return n, nil
	case codeByte:
		return int8(n), nil
	case codeShort:
		return int16(n), nil
	case codeSmallInt:
		return int32(int8(n)), nil
	case codeInt:
		return int32(n), nil
	case codeSmallLong:
		return int64(int8(n)), nil
	case codeLong:
		return int64(n), nil
	case codeFloat:
		return math.Float32frombits(uint32(n)), nil
	case codeDouble:
		return math.Float64frombits(n), nil
	case codeChar:
		return rune(n), nil
	case codeTimestamp:
		return time.UnixMilli(int64(n)).UTC(), nil
	default:
		return nil, malformed("unknown type 0x%02x", code)
	}
}
