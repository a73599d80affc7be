package emulator

import (
	"io"
	"net"
	"testing"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// piped serves one end of a pipe to a client that may do everything, and returns
// the other.
func piped(t *testing.T, server *Server, prepare func(*conn)) (net.Conn, *amqp.FrameReader) {
	t.Helper()
	near, far := net.Pipe()
	c := newConn(server, near)
	c.authorize("", RightManage, time.Time{})
	prepare(c)
	served := make(chan struct{})
	go func() {
		defer close(served)
		c.serve()
	}()
	t.Cleanup(func() {
		_ = far.Close()
		<-served
	})
	_ = far.SetDeadline(time.Now().Add(20 * time.Second))
	in := amqp.NewFrameReader(far, maxFrameSize)
	go func() {
		opening := append([]byte{}, amqp.HeaderAMQP[:]...)
		_, _ = far.Write(amqp.AppendFrame(opening, amqp.FrameAMQP, 0, &amqp.Open{ContainerID: "c", MaxFrameSize: maxFrameSize}, nil))
	}()
	if _, err := in.Header(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Next(); err != nil {
		t.Fatal(err)
	}
	return far, in
}

// endOfSession reads until the server ends a session, and says why.
func endOfSession(t *testing.T, in *amqp.FrameReader) *amqp.Error {
	t.Helper()
	for {
		f, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := f.Body.(*amqp.End); ok {
			return end.Error
		}
	}
}

func startInside(t *testing.T) *Server {
	t.Helper()
	server, err := Start(Config{Entities: []Entity{{Name: "q"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

func TestLinksAboveTheQuotaEndTheSession(t *testing.T) {
	far, in := piped(t, startInside(t), func(*conn) {})
	go func() {
		frames := 0
		for channel := uint16(0); frames < maxHandles+1; channel++ {
			b := amqp.AppendFrame(nil, amqp.FrameAMQP, channel, &amqp.Begin{IncomingWindow: 100, OutgoingWindow: 100, HandleMax: 255}, nil)
			for handle := uint32(0); handle <= handleMax && frames < maxHandles+1; handle++ {
				b = amqp.AppendFrame(b, amqp.FrameAMQP, channel, &amqp.Attach{Name: "s", Handle: handle, Target: &amqp.Target{Address: "q"}}, nil)
				frames++
			}
			if _, err := far.Write(b); err != nil {
				return
			}
		}
	}()
	attached := 0
	for {
		f, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		switch body := f.Body.(type) {
		case *amqp.Attach:
			attached++
		case *amqp.End:
			if attached != maxHandles || body.Error == nil || body.Error.Condition != "amqp:resource-limit-exceeded" {
				t.Errorf("after %d links: %v", attached, body.Error)
			}
			return
		}
	}
}

func TestUnfinishedDeliveriesAreBounded(t *testing.T) {
	const room = 10_000
	server := startInside(t)
	far, in := piped(t, server, func(c *conn) { c.held.partial = maxPartialBytes - room })
	id := uint32(0)
	attach := amqp.AppendFrame(nil, amqp.FrameAMQP, 1, &amqp.Begin{IncomingWindow: 100, OutgoingWindow: 100, HandleMax: 255}, nil)
	attach = amqp.AppendFrame(attach, amqp.FrameAMQP, 1, &amqp.Attach{Name: "s", Target: &amqp.Target{Address: "q"}}, nil)
	part := func(b []byte, t *amqp.Transfer, payload string) []byte {
		t.DeliveryID = &id
		return amqp.AppendFrame(b, amqp.FrameAMQP, 1, t, []byte(payload))
	}
	half := string(make([]byte, room/2+1))
	go func() {
		// One after the other there is room for them, also for one that is given up.
		b := part(attach, &amqp.Transfer{More: true}, half)
		b = part(b, &amqp.Transfer{Aborted: true}, "")
		b = part(b, &amqp.Transfer{More: true}, half)
		b = part(b, &amqp.Transfer{}, "x")
		b = part(b, &amqp.Transfer{More: true}, half)
		_, _ = far.Write(part(b, &amqp.Transfer{More: true}, half))
	}()
	if err := endOfSession(t, in); err == nil || err.Condition != "amqp:resource-limit-exceeded" {
		t.Errorf("the session ended with %v", err)
	}
	if n := server.Stats().Transfers; n != 6 {
		t.Errorf("after %d transfers, want 6", n)
	}
}

func TestFramesAreNotBelievedAboutTheirSize(t *testing.T) {
	far, _ := piped(t, startInside(t), func(*conn) {})
	if _, err := far.Write([]byte{0x7f, 0xff, 0xff, 0xff, 2, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	// It ends, rather than wait for two gigabytes.
	if _, err := io.Copy(io.Discard, far); err != nil {
		t.Error(err)
	}
}
