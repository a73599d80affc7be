package emulator_test

import (
	"net"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// rawClient speaks frames, for what the libraries never do.
type rawClient struct {
	conn net.Conn
	in   *amqp.FrameReader
}

const rawFrame = 64 << 10

// dial opens a connection that is authorized by SASL PLAIN.
func dial(t *testing.T, server *emulator.Server) *rawClient {
	t.Helper()
	c := dialSocket(t, server)
	c.write(t, amqp.HeaderSASL[:])
	c.header(t)
	c.next(t)
	c.write(t, amqp.AppendFrame(nil, amqp.FrameSASL, 0,
		&amqp.SASLInit{Mechanism: "PLAIN", Response: []byte("\x00RootManageSharedAccessKey\x00SAS_KEY_VALUE")}, nil))
	if outcome, ok := c.next(t).Body.(*amqp.SASLOutcome); !ok || outcome.Code != amqp.SASLOK {
		t.Fatalf("SASL outcome is %+v", outcome)
	}
	c.open(t, amqp.Open{ContainerID: "raw", MaxFrameSize: rawFrame, ChannelMax: 10})
	return c
}

func dialSocket(t *testing.T, server *emulator.Server) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &rawClient{conn: conn, in: amqp.NewFrameReader(conn, rawFrame)}
}

func (c *rawClient) open(t *testing.T, open amqp.Open) *amqp.Open {
	t.Helper()
	c.write(t, amqp.HeaderAMQP[:])
	c.header(t)
	c.send(t, 0, &open)
	answer, ok := c.next(t).Body.(*amqp.Open)
	if !ok {
		t.Fatal("the answer to open is another frame")
	}
	return answer
}

func (c *rawClient) write(t *testing.T, b []byte) {
	t.Helper()
	if _, err := c.conn.Write(b); err != nil {
		t.Fatal(err)
	}
}

func (c *rawClient) header(t *testing.T) {
	t.Helper()
	if _, err := c.in.Header(); err != nil {
		t.Fatal(err)
	}
}

func (c *rawClient) send(t *testing.T, channel uint16, p amqp.Performative) {
	t.Helper()
	c.write(t, amqp.AppendFrame(nil, amqp.FrameAMQP, channel, p, nil))
}

func (c *rawClient) next(t *testing.T) amqp.Frame {
	t.Helper()
	f, err := c.in.Next()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// until reads frames until one is a T.
func until[T amqp.Performative](t *testing.T, c *rawClient) T {
	t.Helper()
	for {
		if p, ok := c.next(t).Body.(T); ok {
			return p
		}
	}
}

func (c *rawClient) session(t *testing.T) uint16 {
	t.Helper()
	c.send(t, 1, &amqp.Begin{IncomingWindow: 1000, OutgoingWindow: 1000, HandleMax: 255})
	if begin := until[*amqp.Begin](t, c); begin.RemoteChannel == nil || *begin.RemoteChannel != 1 {
		t.Fatalf("the answer to begin is %+v", begin)
	}
	return 1
}

// rawLink is a link on which the raw client sends.
type rawLink struct {
	client  *rawClient
	channel uint16
}

func (c *rawClient) sender(t *testing.T, channel uint16, entity string) *rawLink {
	t.Helper()
	c.send(t, channel, &amqp.Attach{
		Name: "raw", Role: amqp.RoleSender, Source: &amqp.Source{}, Target: &amqp.Target{Address: entity},
	})
	if a := until[*amqp.Attach](t, c); a.Target == nil {
		t.Fatalf("attach was refused: %v", c.detached(t))
	}
	return &rawLink{client: c, channel: channel}
}

func (l *rawLink) transfer(t *testing.T, id uint32, payload []byte, more bool) {
	t.Helper()
	l.client.write(t, amqp.AppendFrame(nil, amqp.FrameAMQP, l.channel,
		&amqp.Transfer{DeliveryID: &id, DeliveryTag: []byte{byte(id)}, More: more}, payload))
}

// detached is the error of the detach that comes, as the library would have it.
func (c *rawClient) detached(t *testing.T) error {
	t.Helper()
	d := until[*amqp.Detach](t, c)
	if d.Error == nil {
		return nil
	}
	return &goamqp.Error{Condition: goamqp.ErrCond(d.Error.Condition), Description: d.Error.Description}
}
