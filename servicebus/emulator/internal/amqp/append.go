package amqp

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// AppendNull appends null.
func AppendNull(b []byte) []byte { return append(b, codeNull) }

// AppendBool appends a boolean.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, codeTrue)
	}
	return append(b, codeFalse)
}

// AppendUbyte appends an 8 bit unsigned integer.
func AppendUbyte(b []byte, v uint8) []byte { return append(b, codeUbyte, v) }

// AppendUshort appends a 16 bit unsigned integer.
func AppendUshort(b []byte, v uint16) []byte {
	return binary.BigEndian.AppendUint16(append(b, codeUshort), v)
}

// AppendUint appends a 32 bit unsigned integer.
func AppendUint(b []byte, v uint32) []byte {
	switch {
	case v == 0:
		return append(b, codeUint0)
	case v < 256:
		return append(b, codeSmallUint, byte(v))
	default:
		return binary.BigEndian.AppendUint32(append(b, codeUint), v)
	}
}

// AppendUlong appends a 64 bit unsigned integer.
func AppendUlong(b []byte, v uint64) []byte {
	switch {
	case v == 0:
		return append(b, codeUlong0)
	case v < 256:
		return append(b, codeSmallUlong, byte(v))
	default:
		return binary.BigEndian.AppendUint64(append(b, codeUlong), v)
	}
}

// AppendInt appends a 32 bit signed integer.
func AppendInt(b []byte, v int32) []byte {
	return binary.BigEndian.AppendUint32(append(b, codeInt), uint32(v))
}

// AppendLong appends a 64 bit signed integer.
func AppendLong(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, codeLong), uint64(v))
}

// AppendTimestamp appends milliseconds since the Unix epoch.
func AppendTimestamp(b []byte, ms int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, codeTimestamp), uint64(ms))
}

func appendVariable(b []byte, small, large byte, n int) []byte {
	if n < 256 {
		return append(b, small, byte(n))
	}
	return binary.BigEndian.AppendUint32(append(b, large), uint32(n))
}

// AppendBinary appends binary data.
func AppendBinary(b, v []byte) []byte {
	return append(appendVariable(b, codeBinary8, codeBinary32, len(v)), v...)
}

// AppendString appends a string.
func AppendString(b []byte, v string) []byte {
	return append(appendVariable(b, codeString8, codeString32, len(v)), v...)
}

// AppendSymbol appends a symbol.
func AppendSymbol(b []byte, v Symbol) []byte {
	return append(appendVariable(b, codeSymbol8, codeSymbol32, len(v)), v...)
}

// AppendUUID appends a UUID.
func AppendUUID(b []byte, v UUID) []byte { return append(append(b, codeUUID), v[:]...) }

func appendOptionalString(b []byte, v string) []byte {
	if v == "" {
		return AppendNull(b)
	}
	return AppendString(b, v)
}

// AppendDescriptor starts a described value.
func AppendDescriptor(b []byte, code byte) []byte {
	return append(b, codeDescribed, codeSmallUlong, code)
}

// StartList and StartMap append the head of a list of count elements or of a
// map of count keys and values; EndCompound with the returned mark completes
// it. The wide form is used throughout: a few bytes more, no second pass.
func StartList(b []byte, count int) (started []byte, mark int) {
	return startCompound(b, codeList32, count)
}

// StartMap is described at [StartList].
func StartMap(b []byte, count int) (started []byte, mark int) {
	return startCompound(b, codeMap32, count)
}

func startCompound(b []byte, code byte, count int) ([]byte, int) {
	b = append(b, code, 0, 0, 0, 0)
	return binary.BigEndian.AppendUint32(b, uint32(count)), len(b)
}

// EndCompound writes the size of the compound begun at mark.
func EndCompound(b []byte, mark int) []byte {
	binary.BigEndian.PutUint32(b[mark-4:], uint32(len(b)-mark))
	return b
}

// appendComposite appends a described list whose fields fill writes.
func appendComposite(b []byte, descriptor byte, fields int, fill func([]byte) []byte) []byte {
	b, mark := StartList(AppendDescriptor(b, descriptor), fields)
	return EndCompound(fill(b), mark)
}

// AppendValue appends a Go value of the kinds that [Reader.Value] returns, and
// []Symbol, []int64 and []time.Time as arrays. Any other type is a programmer's mistake and panics:
// what a peer sent is passed on as bytes, never through here.
func AppendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return AppendNull(b)
	case bool:
		return AppendBool(b, v)
	case uint8:
		return AppendUbyte(b, v)
	case uint16:
		return AppendUshort(b, v)
	case uint32:
		return AppendUint(b, v)
	case uint64:
		return AppendUlong(b, v)
	case int8:
		return append(b, codeByte, byte(v))
	case int16:
		return binary.BigEndian.AppendUint16(append(b, codeShort), uint16(v))
	case int32:
		return AppendInt(b, v)
	case int64:
		return AppendLong(b, v)
	case float32:
		return binary.BigEndian.AppendUint32(append(b, codeFloat), math.Float32bits(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(b, codeDouble), math.Float64bits(v))
	case string:
		return AppendString(b, v)
	case Symbol:
		return AppendSymbol(b, v)
	case []byte:
		return AppendBinary(b, v)
	case UUID:
		return AppendUUID(b, v)
	case time.Time:
		return AppendTimestamp(b, v.UnixMilli())
	case Described:
		return AppendValue(AppendValue(append(b, codeDescribed), v.Descriptor), v.Value)
	case []Symbol:
		return appendSymbols(b, v)
	case []int64:
		b, mark := startCompound(b, codeArray32, len(v))
		b = append(b, codeLong)
		for _, e := range v {
			b = binary.BigEndian.AppendUint64(b, uint64(e))
		}
		return EndCompound(b, mark)
	case []time.Time:
		b, mark := startCompound(b, codeArray32, len(v))
		b = append(b, codeTimestamp)
		for _, e := range v {
			b = binary.BigEndian.AppendUint64(b, uint64(e.UnixMilli()))
		}
		return EndCompound(b, mark)
	case []any:
		b, mark := StartList(b, len(v))
		for _, e := range v {
			b = AppendValue(b, e)
		}
		return EndCompound(b, mark)
	case map[string]any:
		b, mark := StartMap(b, 2*len(v))
		for key, e := range v {
			b = AppendValue(AppendString(b, key), e)
		}
		return EndCompound(b, mark)
	case map[Symbol]any:
		b, mark := StartMap(b, 2*len(v))
		for key, e := range v {
			b = AppendValue(AppendSymbol(b, key), e)
		}
		return EndCompound(b, mark)
	default:
		panic(fmt.Sprintf("amqp: no encoding for %T", v))
	}
}

// appendSymbols appends an array of symbols.
func appendSymbols(b []byte, symbols []Symbol) []byte {
	b, mark := startCompound(b, codeArray32, len(symbols))
	b = append(b, codeSymbol32)
	for _, s := range symbols {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	return EndCompound(b, mark)
}
