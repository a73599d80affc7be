package emulator

import (
	"io"
	"net"
	"testing"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// FuzzConnection feeds frames to an open connection. Whatever they are, the
// server must not panic, and the connection must end when its client goes.
func FuzzConnection(f *testing.F) {
	server, err := Start(Config{Entities: []Entity{
		{Name: "q", MaxSizeBytes: 1 << 20},
		{Name: "s", RequiresSession: true, MaxSizeBytes: 1 << 20},
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(server.Close)

	frame := func(b []byte, p amqp.Performative, payload string) []byte {
		return amqp.AppendFrame(b, amqp.FrameAMQP, 1, p, []byte(payload))
	}
	zero, one, credit := uint32(0), uint32(1), uint32(10)
	batch := uint32(amqp.BatchFormat)
	flow := func(handle *uint32, drain bool) *amqp.Flow {
		return &amqp.Flow{
			NextIncomingID: &zero, IncomingWindow: 100, Handle: handle, DeliveryCount: &zero, LinkCredit: &credit,
			Drain: drain, Echo: true,
		}
	}
	opening := append([]byte{}, amqp.HeaderAMQP[:]...)
	opening = frame(opening, &amqp.Open{ContainerID: "f", MaxFrameSize: maxFrameSize}, "")
	opening = frame(opening, &amqp.Begin{IncomingWindow: 100, OutgoingWindow: 100, HandleMax: 255}, "")

	const body = "\x00\x53\x75\xa0\x01x"
	sends := frame(nil, &amqp.Attach{Name: "a", Target: &amqp.Target{Address: "q"}}, "")
	sends = frame(sends, &amqp.Transfer{DeliveryID: &zero, DeliveryTag: []byte{1}, More: true}, body[:3])
	sends = frame(sends, &amqp.Transfer{}, body[3:])
	sends = frame(sends, &amqp.Transfer{DeliveryID: &one, MessageFormat: &batch}, "\x00\x53\x75\xa0\x06"+body)
	f.Add(frame(sends, &amqp.Detach{Closed: true}, ""))

	receives := frame(sends, &amqp.Attach{Name: "b", Handle: 1, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "q"}}, "")
	receives = frame(receives, flow(&one, true), "")
	receives = frame(receives, &amqp.Disposition{Role: amqp.RoleReceiver, Last: 5, State: &amqp.State{Outcome: amqp.Released}}, "")
	f.Add(frame(receives, &amqp.End{}, ""))

	f.Add(frame(frame(nil, &amqp.Attach{
		Name: "c", Role: amqp.RoleReceiver,
		Source: &amqp.Source{Address: "s", Filter: map[string]any{filterSession: nil}},
	}, ""), flow(nil, false), ""))
	f.Add(frame(frame(nil, &amqp.Attach{Name: "d", Target: &amqp.Target{Address: "q/$management"}}, ""),
		&amqp.Transfer{DeliveryID: &zero}, "\x00\x53\x77\xa1\x01x"))
	f.Add(frame(nil, &amqp.Attach{Name: "e", Coordinator: true}, ""))

	f.Fuzz(func(t *testing.T, frames []byte) {
		near, far := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			c := newConn(server, near)
			c.authorize("", RightManage, time.Time{})
			c.serve()
		}()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		_, _ = far.Write(opening)
		_, _ = far.Write(frames)
		_ = far.Close()
		select {
		case <-served:
		case <-time.After(10 * time.Second):
			t.Fatal("the connection did not end with its client")
		}
	})
}
