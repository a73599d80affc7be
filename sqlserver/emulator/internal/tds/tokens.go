package tds

import (
	"encoding/binary"
	"unicode/utf8"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// Tokens of MS-TDS 2.2.7.
const (
	tokenReturnStatus = 0x79
	tokenColMetadata  = 0x81
	tokenError        = 0xaa
	tokenInfo         = 0xab
	tokenReturnValue  = 0xac
	tokenLoginAck     = 0xad
	tokenFeatureAck   = 0xae
	tokenRow          = 0xd1
	tokenNBCRow       = 0xd2
	tokenEnvChange    = 0xe3
	tokenDone         = 0xfd
	tokenDoneProc     = 0xfe
	tokenDoneInProc   = 0xff
)

// Status bits of the DONE tokens (MS-TDS 2.2.7.6).
const (
	doneMore      = 0x0001
	doneError     = 0x0002
	doneCount     = 0x0010
	doneAttention = 0x0020
)

// commandSelect is the CurCmd of a statement with a result set, the only one
// that drivers look at.
const commandSelect = 0xc1

// Kinds of ENVCHANGE (MS-TDS 2.2.7.9).
const (
	envDatabase   = 1
	envLanguage   = 2
	envPacketSize = 4
	envCollation  = 7
	envBegin      = 8
	envCommit     = 9
	envRollback   = 10
	envReset      = 18
)

const (
	flagNullable = 0x0001
	flagReadOnly = 0x0000
	flagIdentity = 0x0010
	// flagUpdatable is "unknown" of the two bits of updatability.
	flagUpdatable = 0x0008
)

// maxMessageText is how much of a message RAISERROR keeps, in characters
// (raiserror-transact-sql.md: 2,047).
const maxMessageText = 2047

func appendUint16(b []byte, n int) []byte { return binary.LittleEndian.AppendUint16(b, uint16(n)) }

// cutText shortens s to at most limit UTF-16 units.
func cutText(s string, limit int) string {
	units := 0
	for i, r := range s {
		units++
		if r >= 0x10000 {
			units++
		}
		if units > limit {
			return s[:i]
		}
	}
	return s
}

// appendShortText appends a B_VARCHAR.
func appendShortText(b []byte, s string) []byte {
	at := len(b)
	b = appendUTF16(append(b, 0), cutText(s, 255))
	b[at] = byte((len(b) - at - 1) / 2)
	return b
}

// appendText appends a US_VARCHAR.
func appendText(b []byte, s string) []byte {
	at := len(b)
	b = appendUTF16(append(b, 0, 0), s)
	binary.LittleEndian.PutUint16(b[at:], uint16((len(b)-at-2)/2))
	return b
}

// lengthAt fills in the two bytes of length that a token has behind its type.
func lengthAt(b []byte, at int) { binary.LittleEndian.PutUint16(b[at:], uint16(len(b)-at-2)) }

func appendMessage(b []byte, token byte, e *Error, server string) []byte {
	at := len(b) + 1
	b = append(b, token, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(e.Number))
	b = append(b, e.State, e.Class)
	b = appendText(b, cutText(e.Message, maxMessageText))
	if e.Server != "" {
		server = e.Server
	}
	b = appendShortText(b, server)
	b = appendShortText(b, e.Procname)
	b = binary.LittleEndian.AppendUint32(b, uint32(e.Line))
	lengthAt(b, at)
	return b
}

type done struct {
	token   byte
	status  uint16
	command uint16
	count   int64
}

func appendDone(b []byte, d done) []byte {
	b = append(b, d.token)
	b = binary.LittleEndian.AppendUint16(b, d.status)
	b = binary.LittleEndian.AppendUint16(b, d.command)
	return binary.LittleEndian.AppendUint64(b, uint64(d.count))
}

func appendEnvText(b []byte, kind byte, to, from string) []byte {
	at := len(b) + 1
	b = append(b, tokenEnvChange, 0, 0, kind)
	b = appendShortText(appendShortText(b, to), from)
	lengthAt(b, at)
	return b
}

// appendEnvTransaction appends kinds 8, 9 and 10: the id is the new value of a
// begin and the old one of an end.
func appendEnvTransaction(b []byte, kind byte, id uint64) []byte {
	at := len(b) + 1
	b = append(b, tokenEnvChange, 0, 0, kind)
	if kind == envBegin {
		b = append(binary.LittleEndian.AppendUint64(append(b, 8), id), 0)
	} else {
		b = binary.LittleEndian.AppendUint64(append(b, 0, 8), id)
	}
	lengthAt(b, at)
	return b
}

func appendEnvCollation(b []byte, c *sqltype.Collation) []byte {
	at := len(b) + 1
	b = append(b, tokenEnvChange, 0, 0, envCollation, 5)
	b = append(appendCollation(b, c), 0)
	lengthAt(b, at)
	return b
}

func appendEnvReset(b []byte) []byte { return append(b, tokenEnvChange, 3, 0, envReset, 0, 0) }

// appendColumns appends COLMETADATA.
func appendColumns(b []byte, cols []Column, wire []column) []byte {
	b = appendUint16(append(b, tokenColMetadata), len(cols))
	for i := range cols {
		flags := flagUpdatable
		if cols[i].Nullable {
			flags |= flagNullable
		}
		if cols[i].Identity {
			flags = flags&^flagUpdatable | flagIdentity | flagReadOnly
		}
		b = append(b, 0, 0, 0, 0) // user type
		b = appendUint16(b, flags)
		b = wire[i].appendInfo(b)
		b = appendShortText(b, cutText(cols[i].Name, utf8.RuneSelf)) // names have 128 characters at most
	}
	return b
}

// appendRow appends a ROW, or an NBCROW where its bitmap is shorter than the
// NULLs it replaces.
func appendRow(b []byte, cols []column, values []sqltype.Value) ([]byte, error) {
	nulls := 0
	for i := range values {
		if values[i].Kind == sqltype.Null {
			nulls += cols[i].nullBytes()
		}
	}
	var err error
	bitmap := (len(cols) + 7) / 8
	if nulls <= bitmap {
		b = append(b, tokenRow)
		for i := range values {
			if b, err = cols[i].append(b, &values[i]); err != nil {
				return b, err
			}
		}
		return b, nil
	}
	b = append(b, tokenNBCRow)
	at := len(b)
	for range bitmap {
		b = append(b, 0)
	}
	for i := range values {
		if values[i].Kind == sqltype.Null {
			b[at+i/8] |= 1 << (i % 8)
			continue
		}
		if b, err = cols[i].append(b, &values[i]); err != nil {
			return b, err
		}
	}
	return b, nil
}

func appendReturnValue(b []byte, ordinal int, name string, c *column, v *sqltype.Value) ([]byte, error) {
	b = appendUint16(append(b, tokenReturnValue), ordinal)
	b = appendShortText(b, name)
	b = append(b, 1)          // an output parameter, not a function's result
	b = append(b, 0, 0, 0, 0) // user type
	b = appendUint16(b, flagNullable)
	return c.append(c.appendInfo(b), v)
}
