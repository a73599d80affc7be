package tds

import (
	"encoding/binary"
	"fmt"
)

// Options of PRELOGIN (MS-TDS 2.2.6.5).
const (
	preloginVersion    = 0
	preloginEncryption = 1
	preloginInstance   = 2
	preloginThread     = 3
	preloginMARS       = 4
	preloginFedAuth    = 6
	preloginEnd        = 0xff
)

// Values of the option ENCRYPTION.
const (
	encryptOff          = 0 // only the login
	encryptOn           = 1
	encryptNotSupported = 2
	encryptRequired     = 3
)

// maxPreloginBytes bounds a PRELOGIN, maxLoginBytes a LOGIN7: 128 KB less one
// byte (MS-TDS 2.2.6.4).
const (
	maxPreloginBytes = 8 << 10
	maxLoginBytes    = 128<<10 - 1
)

// prelogin is what of a client's PRELOGIN matters.
type prelogin struct {
	encryption byte
	fedAuth    bool
}

func decodePrelogin(m *message) (prelogin, error) {
	p := prelogin{encryption: encryptNotSupported}
	b := m.rest()
	if m.err != nil {
		return p, m.err
	}
	for at := 0; ; at += 5 {
		switch {
		case at >= len(b):
			return p, fmt.Errorf("%w: a PRELOGIN without an end", errMalformed)
		case b[at] == preloginEnd:
			return p, nil
		case at+5 > len(b):
			return p, fmt.Errorf("%w: a PRELOGIN option that is cut", errMalformed)
		}
		offset := int(binary.BigEndian.Uint16(b[at+1:]))
		length := int(binary.BigEndian.Uint16(b[at+3:]))
		if offset+length > len(b) {
			return p, fmt.Errorf("%w: PRELOGIN option %d lies outside", errMalformed, b[at])
		}
		value := b[offset : offset+length]
		switch {
		case b[at] == preloginEncryption && length > 0:
			p.encryption = value[0] & 0x03 // the other bits offer client certificates
		case b[at] == preloginFedAuth && length > 0:
			p.fedAuth = value[0] != 0
		}
	}
}

// answer is the encryption that the server settles on (the table in MS-TDS
// 2.2.6.5): the client's wish, since this server can do all.
func (p prelogin) answer() byte {
	if p.encryption == encryptRequired {
		return encryptOn
	}
	return p.encryption
}

// version is what Azure SQL Database calls itself, 12.0.2000.8; drivers
// choose their T-SQL by it.
var version = [4]byte{12, 0, 2000 >> 8, 2000 & 0xff}

func appendPrelogin(b []byte, p prelogin) []byte {
	options := []struct {
		id    byte
		value []byte
	}{
		{preloginVersion, append(version[:], 0, 8)},
		{preloginEncryption, []byte{p.answer()}},
		{preloginInstance, []byte{0}},
		{preloginThread, nil},
		{preloginMARS, []byte{0}},
	}
	if p.fedAuth {
		options = append(options, struct {
			id    byte
			value []byte
		}{preloginFedAuth, []byte{0}})
	}
	offset := len(options)*5 + 1
	for _, o := range options {
		b = append(b, o.id, byte(offset>>8), byte(offset), byte(len(o.value)>>8), byte(len(o.value)))
		offset += len(o.value)
	}
	b = append(b, preloginEnd)
	for _, o := range options {
		b = append(b, o.value...)
	}
	return b
}
