package tds

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"azsqloutbox/internal/selfsigned"
)

// newTLSConfig is TLS with a certificate, by default one of its own.
//
// TLS 1.3 is left out as SQL Server leaves it out of this way to begin
// encryption (MS-TDS 2.2.6.5; it comes with TDS 8.0). Tickets would be sent
// behind the handshake, where the client does not look for a wrapped packet.
func newTLSConfig(certificate *tls.Certificate) (*tls.Config, error) {
	if certificate == nil {
		var err error
		if certificate, err = selfsigned.New("SSL_Self_Signed_Fallback"); err != nil {
			return nil, err
		}
	}
	return &tls.Config{
		Certificates:           []tls.Certificate{*certificate},
		MinVersion:             tls.VersionTLS12,
		MaxVersion:             tls.VersionTLS12,
		SessionTicketsDisabled: true,
		// A packet should be one record, as SQL Server sends it.
		DynamicRecordSizingDisabled: true,
	}, nil
}

// handshakeConn carries TLS: while the handshake lasts its records are wrapped
// into PRELOGIN packets, afterwards they travel as they are. With exact it
// never reads beyond the record that was asked for, so that after a login
// under ENCRYPT_OFF the plain packets behind it are still in the socket.
type handshakeConn struct {
	net.Conn
	wrapped bool
	exact   bool
	in      bytes.Reader // rest of the last wrapped packet
	buf     []byte
	record  int // bytes left of the current record
	header  [recordHeader]byte
	rest    []byte // of header
}

const recordHeader = 5 // type, version, length

func (h *handshakeConn) Read(b []byte) (int, error) {
	if h.wrapped {
		return h.readWrapped(b)
	}
	if !h.exact {
		return h.Conn.Read(b)
	}
	if len(h.rest) > 0 {
		n := copy(b, h.rest)
		h.rest = h.rest[n:]
		return n, nil
	}
	if h.record == 0 {
		if _, err := io.ReadFull(h.Conn, h.header[:]); err != nil {
			return 0, err
		}
		h.record = int(binary.BigEndian.Uint16(h.header[3:]))
		n := copy(b, h.header[:])
		h.rest = h.header[n:]
		return n, nil
	}
	n, err := h.Conn.Read(b[:min(len(b), h.record)])
	h.record -= n
	return n, err
}

func (h *handshakeConn) readWrapped(b []byte) (int, error) {
	for h.in.Len() == 0 {
		p, buf, err := readPacket(h.Conn, h.buf)
		if err != nil {
			return 0, err
		}
		h.buf = buf
		if p.kind != packetPrelogin {
			return 0, fmt.Errorf("%w: a packet of type %d in the TLS handshake", errMalformed, p.kind)
		}
		h.in.Reset(p.payload)
	}
	return h.in.Read(b)
}

func (h *handshakeConn) Write(b []byte) (int, error) {
	if !h.wrapped {
		return h.Conn.Write(b)
	}
	w := packetWriter{w: h.Conn, kind: packetPrelogin, size: defaultPacketSize, tokens: b}
	if err := w.finish(); err != nil {
		return 0, err
	}
	return len(b), nil
}
