package tds

import (
	"io"
	"testing"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// fuzzMessage gives data to a decoder in packets of 7 bytes, so that values
// span packets, under a limit that is soon reached.
func fuzzMessage(kind packetType, data []byte) *message {
	const piece = 7
	cut := func() (packet, error) {
		if data == nil {
			return packet{}, io.ErrUnexpectedEOF
		}
		n := min(piece, len(data))
		p := packet{kind: kind, payload: data[:n]}
		if data = data[n:]; len(data) == 0 {
			p.status, data = statusEndOfMessage, nil
		}
		return p, nil
	}
	m := &message{next: cut, limit: 1 << 20}
	first, _ := cut()
	m.begin(first)
	return m
}

// wellFormed checks what every decoder promises of the values it hands on.
func wellFormed(t *testing.T, v sqltype.Value) {
	t.Helper()
	if v.Big && v.S == "" || v.Kind == sqltype.UniqueIdentifier && len(v.S) != 16 {
		t.Fatalf("a malformed value came out: %#v", v)
	}
}

func FuzzPrelogin(f *testing.F) {
	f.Add(preloginBytes(encryptOn))
	f.Add([]byte{preloginFedAuth, 0, 6, 0, 1, preloginEnd, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decodePrelogin(fuzzMessage(packetPrelogin, data))
		if err == nil && p.answer() > encryptNotSupported {
			t.Fatalf("settled on encryption %d", p.answer())
		}
	})
}

func FuzzLogin(f *testing.F) {
	f.Add(loginBytes("app", "secret Ä", nil))
	f.Add(loginBytes("", "", []byte{featureUTF8, 1, 0, 0, 0, 1, featureFedAuth, 2, 0, 0, 0, 0, 0, featureEnd}))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := decodeLogin(fuzzMessage(packetLogin, data))
		if err == nil && (l.PacketSize < minPacketSize || l.PacketSize > maxPacketSize) {
			t.Fatalf("packet size %d", l.PacketSize)
		}
	})
}

// parameterSeeds are TYPE_INFOs with a value, one of each form.
var parameterSeeds = [][]byte{
	{idNull},
	{idInt4, 1, 2, 3, 4},
	{idIntN, 8, 8, 1, 2, 3, 4, 5, 6, 7, 8},
	{idDecimalN, 17, 38, 10, 17, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	{idDateTime2, 7, 8, 1, 2, 3, 4, 5, 1, 2, 3},
	{idDateTimeOffset, 0, 8, 1, 2, 3, 1, 2, 3, 0, 0},
	{idDateTimeN, 8, 8, 1, 0, 0, 0, 2, 0, 0, 0},
	{idMoneyN, 8, 8, 255, 255, 255, 255, 1, 2, 3, 4},
	{idGUID, 16, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	{idNVarChar, 8, 0, 9, 4, 0xd0, 0, 52, 4, 0, 'a', 0, 0x34, 0xd8},
	{idBigVarChar, 0xff, 0xff, 9, 4, 0xd0, 0, 52, 0xfe, 255, 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 'a', 0x80, 1, 0, 0, 0, 'b', 0, 0, 0, 0},
	{idText, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 'a', 'b', 'c'},
	{idVariant, 0, 0, 0, 0, 6, 0, 0, 0, idInt4, 0, 1, 2, 3, 4},
	{idVariant, 0, 0, 0, 0, 11, 0, 0, 0, idNVarChar, 7, 0, 0, 0, 0, 0, 8, 0, 'a', 0},
	{idXML, 0, 255, 255, 255, 255, 255, 255, 255, 255},
	tableSeed,
}

var tableSeed = []byte{
	idTable, 0, 0, 1, 'T', 0, 1, 0, 0, 0, 0, 0, 1, 0, idIntN, 4, 0,
	tvpOrder, 1, 0, 1, 0, 1, tvpEnd, tvpRow, 4, 1, 0, 0, 0, tvpRow, 0, tvpEnd,
}

func FuzzRPC(f *testing.F) {
	for _, seed := range parameterSeeds {
		b := append(headers(0), 0xff, 0xff, 10, 0, 0, 0)
		b = append(append(append(b, 1, '@', 0), 0), seed...)
		f.Add(append(append(append(b, rpcNext), appendText(nil, "p")...), 0, 0))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := fuzzMessage(packetRPC, data)
		m.allHeaders()
		for _, call := range decodeRPC(m) {
			for _, p := range call.params {
				wellFormed(t, p.Value)
				if p.Table == nil {
					continue
				}
				for _, row := range p.Table.Rows {
					if len(row) != len(p.Table.Columns) {
						t.Fatalf("a row of %d values in a table of %d columns", len(row), len(p.Table.Columns))
					}
				}
			}
		}
		if m.err == nil && m.more() {
			t.Fatal("the decoder stopped before the end without an error")
		}
	})
}

func FuzzBulk(f *testing.F) {
	for _, seed := range parameterSeeds[:len(parameterSeeds)-1] {
		// A type's info and its value do not stand together here, so these are
		// only pieces for the fuzzer.
		b := append([]byte{tokenColMetadata, 1, 0, 0, 0, 0, 0, 1, 0}, seed...)
		f.Add(append(b, tokenRow))
	}
	whole := append([]byte{tokenColMetadata, 1, 0, 0, 0, 0, 0, 1, 0, idIntN, 4}, appendShortText(nil, "id")...)
	whole = append(whole, tokenRow, 4, 1, 0, 0, 0, tokenNBCRow, 1)
	f.Add(appendDone(whole, done{token: tokenDone}))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := fuzzMessage(packetBulk, data)
		r := readBulk(m)
		for {
			row, ok, err := r.next()
			if err != nil || !ok {
				break
			}
			for _, v := range row {
				wellFormed(t, v)
			}
		}
		_ = r.drain()
	})
}

func FuzzTransaction(f *testing.F) {
	f.Add(append(headers(7), 5, 0, 2, 0))
	f.Add(append(headers(7), 7, 0, 1, 'a', 0, 1, 2, 0))
	f.Fuzz(func(_ *testing.T, data []byte) {
		m := fuzzMessage(packetTransaction, data)
		m.allHeaders()
		decodeTransaction(m)
	})
}

// FuzzText holds text to its round trip: what the decoders make, the encoders
// give back.
func FuzzText(f *testing.F) {
	f.Add([]byte("a\x00\x34\xd8\x1e\xdd\xac\x20"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := decodeUTF16(data)
		if again := decodeUTF16(appendUTF16(nil, s)); again != s {
			t.Fatalf("UTF-16: %q became %q", s, again)
		}
		latin := windows1252.append(nil, windows1252.decode(data))
		if string(latin) != string(data) {
			t.Fatalf("code page: % x became % x", data, latin)
		}
	})
}
