package emulator

import (
	"io"
	"net"
	"testing"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// FuzzGreeting feeds the first bytes of a connection: AMQP, SASL, HTTP or what
// else comes. Whatever they are, the server must not panic, and the connection
// must end when its client goes.
func FuzzGreeting(f *testing.F) {
	server, err := Start(Config{Entities: []Entity{
		{Name: "q"},
		{Name: "t", Kind: Topic, Subscriptions: []Subscription{{Name: "s", Rules: []Rule{{Subject: "x"}}}}},
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(server.Close)

	token := EntraToken(time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)) // a seed is for ever
	get := func(target string) []byte {
		return []byte("GET /" + target + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token + "\r\n\r\n")
	}
	for _, target := range []string{
		"$namespaceinfo", "q?api-version=2024-05", "t", "t/Subscriptions?$top=1&$skip=9", "t/Subscriptions/s/Rules/$Default",
		"$Resources/Topics", "nowhere", "t/Subscriptions/s/Rules/",
	} {
		f.Add(get(target))
	}
	f.Add([]byte("PUT /q HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"))
	f.Add([]byte("GET " + webSocketPath + " HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"))
	f.Add([]byte{tlsHandshake, 3, 1, 0, 4, 1, 0, 0, 0})
	f.Add(amqp.AppendFrame(append([]byte{}, amqp.HeaderSASL[:]...), amqp.FrameSASL, 0,
		&amqp.SASLInit{Mechanism: "PLAIN", Response: []byte("\x00a\x00b")}, nil))
	f.Add(amqp.AppendFrame(append([]byte{}, amqp.HeaderAMQP[:]...), amqp.FrameAMQP, 0, &amqp.Open{ContainerID: "f"}, nil))

	f.Fuzz(func(t *testing.T, first []byte) {
		near, far := net.Pipe()
		served := make(chan struct{})
		if !server.track(near) {
			t.Fatal("the server is closed")
		}
		go func() {
			defer close(served)
			server.greet(near)
		}()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		_, _ = far.Write(first)
		_ = far.Close()
		select {
		case <-served:
		case <-time.After(10 * time.Second):
			t.Fatal("the connection did not end with its client")
		}
	})
}
