package tds

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// rawClient speaks TDS by hand, for what the driver never does.
type rawClient struct {
	t    testing.TB
	conn net.Conn
}

// rawDeadline only ends a test that hangs.
const rawDeadline = 30 * time.Second

func dialRaw(t testing.TB, addr string) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(rawDeadline))
	return &rawClient{t: t, conn: conn}
}

// login dials and logs in without encryption; features go into LOGIN7.
func login(t testing.TB, addr string, features []byte) (*rawClient, []byte) {
	t.Helper()
	c := dialRaw(t, addr)
	c.send(packetPrelogin, statusEndOfMessage, preloginBytes(encryptNotSupported))
	c.receive()
	c.send(packetLogin, statusEndOfMessage, loginBytes("app", "secret Ä", features))
	return c, c.receive()
}

func (c *rawClient) send(kind packetType, status uint8, payload []byte) {
	c.t.Helper()
	b := []byte{byte(kind), status, 0, 0, 0, 0, 1, 0}
	binary.BigEndian.PutUint16(b[2:], uint16(headerSize+len(payload)))
	if _, err := c.conn.Write(append(b, payload...)); err != nil {
		c.t.Fatal(err)
	}
}

// receive returns the payload of one whole message.
func (c *rawClient) receive() []byte {
	c.t.Helper()
	all, err := c.tryReceive()
	if err != nil {
		c.t.Fatal(err)
	}
	return all
}

func (c *rawClient) tryReceive() ([]byte, error) {
	var all []byte
	for {
		p, _, err := readPacket(c.conn, nil)
		if err != nil {
			return all, err
		}
		all = append(all, p.payload...)
		if p.status&statusEndOfMessage != 0 {
			return all, nil
		}
	}
}

// ended waits until the server closes the connection.
func (c *rawClient) ended() bool {
	_, err := io.Copy(io.Discard, c.conn)
	var timeout net.Error
	return !errors.As(err, &timeout) || !timeout.Timeout()
}

func preloginBytes(encryption byte) []byte {
	return []byte{
		preloginVersion, 0, 11, 0, 6,
		preloginEncryption, 0, 17, 0, 1,
		preloginEnd,
		0, 0, 0, 0, 0, 0, encryption,
	}
}

func loginBytes(user, password string, features []byte) []byte {
	b := make([]byte, loginFixed)
	binary.LittleEndian.PutUint32(b[4:], tds74)
	b[25] = flags2ODBC
	add := func(at int, text []byte, units int) {
		binary.LittleEndian.PutUint16(b[at:], uint16(len(b)))
		binary.LittleEndian.PutUint16(b[at+2:], uint16(units))
		b = append(b, text...)
	}
	name, secret := appendUTF16(nil, user), appendUTF16(nil, password)
	for i, c := range secret {
		secret[i] = (c<<4 | c>>4) ^ 0xa5
	}
	add(40, name, len(name)/2)
	add(44, secret, len(secret)/2)
	if features != nil {
		b[27] = flags3Extension
		add(56, binary.LittleEndian.AppendUint32(nil, uint32(len(b)+4)), 4)
		b = append(b, features...)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return b
}

// headers is ALL_HEADERS with a transaction descriptor.
func headers(transaction uint64) []byte {
	b := []byte{22, 0, 0, 0, 18, 0, 0, 0, headerTransaction, 0}
	b = binary.LittleEndian.AppendUint64(b, transaction)
	return append(b, 1, 0, 0, 0)
}

func batchBytes(text string) []byte { return appendUTF16(headers(0), text) }

// lastDone is the status of the DONE that ends a reply.
func lastDone(t testing.TB, reply []byte) (token byte, status uint16) {
	t.Helper()
	if len(reply) < 13 {
		t.Fatalf("a reply of %d bytes", len(reply))
	}
	d := reply[len(reply)-13:]
	return d[0], binary.LittleEndian.Uint16(d[1:])
}
