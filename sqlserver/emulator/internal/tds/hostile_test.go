package tds

import (
	"encoding/binary"
	"testing"
)

// TestHostileClients sends what no driver would. The server must close the
// connection, and go on serving others.
func TestHostileClients(t *testing.T) {
	backend := &fakeBackend{handlers: map[string]handler{"echo": echo}}
	addr, _ := start(t, Config{Backend: backend, MaxRequestBytes: 64 << 10})
	before := func(send func(c *rawClient)) func(t *testing.T) {
		return func(t *testing.T) {
			c := dialRaw(t, addr)
			send(c)
			if !c.ended() {
				t.Error("the connection is still open")
			}
		}
	}
	after := func(send func(c *rawClient)) func(t *testing.T) {
		return func(t *testing.T) {
			c, _ := login(t, addr, nil)
			send(c)
			if !c.ended() {
				t.Error("the connection is still open")
			}
		}
	}
	t.Run("not TDS", before(func(c *rawClient) { _, _ = c.conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")) }))
	t.Run("TLS first", before(func(c *rawClient) { _, _ = c.conn.Write([]byte{0x16, 3, 1, 0, 200}) }))
	t.Run("packet shorter than its header", before(func(c *rawClient) { _, _ = c.conn.Write([]byte{18, 1, 0, 7, 0, 0, 0, 0}) }))
	t.Run("login without prelogin", before(func(c *rawClient) { c.send(packetLogin, 1, loginBytes("app", "x", nil)) }))
	t.Run("prelogin option outside", before(func(c *rawClient) { c.send(packetPrelogin, 1, []byte{1, 0xff, 0xff, 0, 1, 0xff}) }))
	t.Run("endless prelogin", before(func(c *rawClient) {
		for range 4 {
			c.send(packetPrelogin, 0, make([]byte, 4000))
		}
	}))
	t.Run("login cut", before(func(c *rawClient) {
		c.send(packetPrelogin, 1, preloginBytes(encryptNotSupported))
		c.receive()
		c.send(packetLogin, 1, loginBytes("app", "x", nil)[:90])
	}))
	t.Run("old TDS", before(func(c *rawClient) {
		c.send(packetPrelogin, 1, preloginBytes(encryptNotSupported))
		c.receive()
		b := loginBytes("app", "secret Ä", nil)
		binary.LittleEndian.PutUint32(b[4:], 0x71000001)
		c.send(packetLogin, 1, b)
	}))
	t.Run("odd batch", after(func(c *rawClient) { c.send(packetBatch, 1, append(headers(0), 'x')) }))
	t.Run("headers longer than the message", after(func(c *rawClient) { c.send(packetBatch, 1, []byte{0xff, 0xff, 0xff, 0x7f}) }))
	t.Run("unknown packet type", after(func(c *rawClient) { c.send(99, 1, headers(0)) }))
	t.Run("bulk load that nobody announced", after(func(c *rawClient) { c.send(packetBulk, 1, []byte{tokenColMetadata, 1, 0}) }))
	t.Run("packet of another type inside a message", after(func(c *rawClient) {
		c.send(packetBatch, 0, batchBytes("x"))
		c.send(packetRPC, 1, batchBytes("x"))
	}))
	t.Run("request beyond the limit", after(func(c *rawClient) {
		c.send(packetBatch, 0, batchBytes("x"))
		for range 20 {
			b := make([]byte, headerSize+4000)
			b[0] = byte(packetBatch)
			binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
			if _, err := c.conn.Write(b); err != nil {
				return // the server has given up already
			}
		}
	}))
	t.Run("2 GB parameter that does not come", after(func(c *rawClient) {
		b := append(appendText(headers(0), "echo"), 0, 0)
		b = append(appendShortText(b, "@p"), 0, idBigVarBinary, 0xff, 0xff)
		b = append(b, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f)
		c.send(packetRPC, 1, b)
	}))
	t.Run("parameter of an unknown type", after(func(c *rawClient) {
		b := append(appendText(headers(0), "echo"), 0, 0)
		c.send(packetRPC, 1, append(appendShortText(b, "@p"), 0, 0xfb))
	}))

	c, _ := login(t, addr, nil)
	c.send(packetBatch, 1, batchBytes("echo"))
	c.receive()
}
