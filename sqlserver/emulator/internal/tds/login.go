package tds

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// TDS versions as LOGIN7 and LOGINACK carry them (MS-TDS 2.2.7.14). Versions
// before 7.3B have no NBCROW and other types.
const (
	tds73B = 0x730b0003
	tds74  = 0x74000004
)

// Option flags of LOGIN7 (MS-TDS 2.2.6.4).
const (
	flags2ODBC       = 0x02
	flags2Integrated = 0x80
	typeReadOnly     = 0x20
	flags3Extension  = 0x10
)

// Feature extensions of LOGIN7.
const (
	featureFedAuth     = 0x02
	featureUTF8        = 0x0a
	featureEnd         = 0xff
	featureUTF8Support = 0x01
)

// loginFixed is how long the part of LOGIN7 with fixed places is.
const loginFixed = 94

// Numbers of the errors that the protocol itself raises; the texts are those
// of sys.messages.
const (
	errorBadLogin     = 17832
	errorLoginFailed  = 18456
	errorUntrusted    = 18452
	errorBadStream    = 4002
	errorResume       = 3971
	errorNoDTC        = 8501
	classFatal        = 20
	classUser         = 16
	classLogin        = 14
	messageBadLogin   = "The login packet used to open the connection is structurally invalid; the connection has been closed. Please contact the vendor of the client library."
	messageUntrusted  = "Login failed. The login is from an untrusted domain and cannot be used with Integrated authentication."
	messageBadStream  = "The incoming tabular data stream (TDS) protocol stream is incorrect. The stream ended unexpectedly."
	messageNoDTC      = "MSDTC on server is unavailable: this server does not model distributed transactions."
	messageNoEntraID  = "Login failed: this server models SQL logins only, not Microsoft Entra ID."
	messageOldVersion = "The client speaks a TDS version before 7.3, which this server does not model."
)

// login7 is a decoded LOGIN7.
type login7 struct {
	Login
	version    uint32
	extensions bool
	utf8       bool
	fedAuth    bool
	integrated bool
}

// decodeLogin reads a LOGIN7: a fixed part with offsets and lengths, then what
// they point at.
func decodeLogin(m *message) (login7, error) {
	var l login7
	b := m.rest()
	if m.err != nil {
		return l, m.err
	}
	if len(b) < loginFixed {
		return l, fmt.Errorf("%w: a LOGIN7 of %d bytes", errMalformed, len(b))
	}
	if stated := binary.LittleEndian.Uint32(b); uint64(stated) > uint64(len(b)) {
		return l, fmt.Errorf("%w: a LOGIN7 of %d bytes that says %d", errMalformed, len(b), stated)
	}
	l.version = binary.LittleEndian.Uint32(b[4:])
	l.PacketSize = clampPacketSize(binary.LittleEndian.Uint32(b[8:]))
	l.ODBC = b[25]&flags2ODBC != 0
	l.integrated = b[25]&flags2Integrated != 0
	l.ReadOnly = b[26]&typeReadOnly != 0
	fields := []struct {
		at     int
		secret bool
		to     *string
	}{
		{36, false, &l.Host},
		{40, false, &l.User},
		{44, true, &l.Password},
		{48, false, &l.App},
		{68, false, &l.Database},
	}
	for _, f := range fields {
		raw, err := loginField(b, f.at, 2)
		if err != nil {
			return l, err
		}
		if f.secret {
			raw = reveal(raw)
		}
		*f.to = decodeUTF16(raw)
	}
	if b[27]&flags3Extension != 0 {
		return l, l.features(b)
	}
	return l, nil
}

func loginField(b []byte, at, unit int) ([]byte, error) {
	offset := int(binary.LittleEndian.Uint16(b[at:]))
	length := int(binary.LittleEndian.Uint16(b[at+2:])) * unit
	if length == 0 {
		return nil, nil
	}
	if offset+length > len(b) {
		return nil, fmt.Errorf("%w: a LOGIN7 field at %d lies outside", errMalformed, at)
	}
	return b[offset : offset+length], nil
}

// reveal undoes what LOGIN7 does to a password: the halves of each byte
// swapped, then XOR 0xA5.
func reveal(b []byte) []byte {
	plain := make([]byte, len(b))
	for i, c := range b {
		c ^= 0xa5
		plain[i] = c<<4 | c>>4
	}
	return plain
}

// features reads the feature extensions, which the fixed part points at by way
// of a second offset.
func (l *login7) features(b []byte) error {
	pointer, err := loginField(b, 56, 1)
	if err != nil {
		return err
	}
	if len(pointer) < 4 {
		return fmt.Errorf("%w: a LOGIN7 extension of %d bytes", errMalformed, len(pointer))
	}
	at := uint64(binary.LittleEndian.Uint32(pointer))
	for {
		if at >= uint64(len(b)) {
			return fmt.Errorf("%w: LOGIN7 features without an end", errMalformed)
		}
		id := b[at]
		if id == featureEnd {
			return nil
		}
		if at+5 > uint64(len(b)) {
			return fmt.Errorf("%w: a LOGIN7 feature that is cut", errMalformed)
		}
		length := uint64(binary.LittleEndian.Uint32(b[at+1:]))
		at += 5
		if at+length > uint64(len(b)) {
			return fmt.Errorf("%w: LOGIN7 feature %d lies outside", errMalformed, id)
		}
		l.extensions = true
		switch {
		case id == featureFedAuth:
			l.fedAuth = true
		case id == featureUTF8 && length > 0:
			l.utf8 = b[at]&featureUTF8Support != 0
		}
		at += length
	}
}

func clampPacketSize(wanted uint32) int {
	if wanted == 0 {
		return defaultPacketSize
	}
	return int(min(max(wanted, minPacketSize), maxPacketSize))
}

// refusal is why the protocol itself turns a login away; nil lets it pass on
// to the backend.
func (l *login7) refusal() *Error {
	switch {
	case l.version < tds73B:
		return &Error{Number: errorBadLogin, State: 1, Class: classFatal, Message: messageOldVersion}
	case l.fedAuth:
		return &Error{Number: errorLoginFailed, State: 1, Class: classLogin, Message: messageNoEntraID}
	case l.integrated:
		return &Error{Number: errorUntrusted, State: 1, Class: classLogin, Message: messageUntrusted}
	}
	return nil
}

// programName is what LOGINACK calls the program. FreeTDS and others choose
// their dialect by it.
const programName = "Microsoft SQL Server"

// appendLoginAnswer appends what SQL Server answers to a login that it
// accepts, in its order.
func appendLoginAnswer(b []byte, l *login7, database, server string, packetSize int) []byte {
	b = appendEnvText(b, envDatabase, database, "master")
	b = appendMessage(b, tokenInfo, &Error{
		Number: 5701, State: 2,
		Message: "Changed database context to '" + database + "'.",
	}, server)
	b = appendEnvCollation(b, sqltype.DefaultCollation)
	b = appendEnvText(b, envLanguage, "us_english", "")
	b = appendMessage(b, tokenInfo, &Error{
		Number: 5703, State: 1,
		Message: "Changed language setting to us_english.",
	}, server)

	at := len(b) + 1
	b = append(b, tokenLoginAck, 0, 0, 1) // T-SQL
	b = binary.BigEndian.AppendUint32(b, min(l.version, tds74))
	b = append(appendShortText(b, programName), version[:]...)
	lengthAt(b, at)

	b = appendEnvText(b, envPacketSize, strconv.Itoa(packetSize), strconv.Itoa(defaultPacketSize))
	if l.extensions {
		b = append(b, tokenFeatureAck)
		if l.utf8 {
			b = append(b, featureUTF8, 1, 0, 0, 0, featureUTF8Support)
		}
		b = append(b, featureEnd)
	}
	return appendDone(b, done{token: tokenDone})
}
