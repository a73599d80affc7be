// Package amqp encodes and decodes the part of AMQP 1.0 that a server needs:
// frames, performatives, delivery states and message sections.
//
// It is written for a server that mostly passes messages on: a [Reader] walks
// encoded bytes without copying them, sections of a message are cut out rather
// than decoded, and everything is encoded by appending to a buffer.
//
// Nothing that a peer sends can make it allocate more than a small multiple of
// the bytes that were sent, or recurse deeper than [MaxDepth]: sizes and counts
// are checked against what is really there before they are believed.
//
// The numbers are those of the OASIS standard, parts 1 (types), 2 (transport),
// 3 (messaging) and 5 (security).
package amqp

import (
	"errors"
	"fmt"
)

// MaxDepth is how deeply lists, maps and described values may be nested.
// Nothing in the protocol or in Service Bus nests deeper than five.
const MaxDepth = 32

// ErrMalformed is wrapped by every decoding error.
var ErrMalformed = errors.New("malformed AMQP data")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Symbol is a symbolic value, such as an error condition.
type Symbol string

// UUID is a universally unique id in the byte order of RFC 4122.
type UUID [16]byte

// Described is a value with a descriptor, such as a source filter.
type Described struct {
	Descriptor any
	Value      any
}

// Error is an AMQP error: what a peer is told in a rejection, a detach, an end
// or a close.
type Error struct {
	Condition   Symbol
	Description string
	Info        map[string]any
}

func (e *Error) Error() string {
	if e.Description == "" {
		return string(e.Condition)
	}
	return string(e.Condition) + ": " + e.Description
}

// Errorf makes an Error with a formatted description.
func Errorf(condition Symbol, format string, args ...any) *Error {
	return &Error{Condition: condition, Description: fmt.Sprintf(format, args...)}
}

// Format codes of the primitive types (part 1, section 1.6).
const (
	codeDescribed  = 0x00
	codeNull       = 0x40
	codeTrue       = 0x41
	codeFalse      = 0x42
	codeUint0      = 0x43
	codeUlong0     = 0x44
	codeList0      = 0x45
	codeUbyte      = 0x50
	codeByte       = 0x51
	codeSmallUint  = 0x52
	codeSmallUlong = 0x53
	codeSmallInt   = 0x54
	codeSmallLong  = 0x55
	codeBool       = 0x56
	codeUshort     = 0x60
	codeShort      = 0x61
	codeUint       = 0x70
	codeInt        = 0x71
	codeFloat      = 0x72
	codeChar       = 0x73
	codeDecimal32  = 0x74
	codeUlong      = 0x80
	codeLong       = 0x81
	codeDouble     = 0x82
	codeTimestamp  = 0x83
	codeDecimal64  = 0x84
	codeDecimal128 = 0x94
	codeUUID       = 0x98
	codeBinary8    = 0xa0
	codeString8    = 0xa1
	codeSymbol8    = 0xa3
	codeBinary32   = 0xb0
	codeString32   = 0xb1
	codeSymbol32   = 0xb3
	codeList8      = 0xc0
	codeMap8       = 0xc1
	codeList32     = 0xd0
	codeMap32      = 0xd1
	codeArray8     = 0xe0
	codeArray32    = 0xf0
)

// Descriptors of the composite types. The high 32 bits are zero for all types
// of the standard.
const (
	descOpen        = 0x10
	descBegin       = 0x11
	descAttach      = 0x12
	descFlow        = 0x13
	descTransfer    = 0x14
	descDisposition = 0x15
	descDetach      = 0x16
	descEnd         = 0x17
	descClose       = 0x18
	descError       = 0x1d
	descReceived    = 0x23
	descAccepted    = 0x24
	descRejected    = 0x25
	descReleased    = 0x26
	descModified    = 0x27
	descSource      = 0x28
	descTarget      = 0x29
	descCoordinator = 0x30

	descSASLMechanisms = 0x40
	descSASLInit       = 0x41
	descSASLOutcome    = 0x44

	// DescHeader and the following are the sections of a message.
	DescHeader                = 0x70
	DescDeliveryAnnotations   = 0x71
	DescMessageAnnotations    = 0x72
	DescProperties            = 0x73
	DescApplicationProperties = 0x74
	DescData                  = 0x75
	DescSequence              = 0x76
	DescValue                 = 0x77
	DescFooter                = 0x78
)
