package emulator_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/coder/websocket"

	"azsqloutbox/internal/selfsigned"
	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// certificate is a self-signed one for 127.0.0.1, for both ends.
func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	made, err := selfsigned.New("test")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(made.Leaf)
	return &tls.Config{Certificates: []tls.Certificate{*made}}, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
}

func sendsAndReceives(t *testing.T, client *azservicebus.Client) {
	t.Helper()
	if err := sendBatch(t, sender(t, client, "q"), numbered(3)...); err != nil {
		t.Fatal(err)
	}
	r := receiver(t, client, "q", nil)
	for _, m := range receive(t, r, 3) {
		if err := r.CompleteMessage(within(t), m, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTLS(t *testing.T) {
	cfg := queues("q")
	var trust *tls.Config
	cfg.TLS, trust = certificate(t)
	server := start(t, cfg)
	if strings.Contains(server.ConnectionString(), "Emulator") {
		t.Errorf("%s would connect without TLS", server.ConnectionString())
	}
	sendsAndReceives(t, connectWith(t, server, &azservicebus.ClientOptions{RetryOptions: impatient, TLSConfig: trust}))
}

func TestWebSockets(t *testing.T) {
	plain := queues("q")
	secure := queues("q")
	var trust *tls.Config
	secure.TLS, trust = certificate(t)
	for name, cfg := range map[string]emulator.Config{"ws": plain, "wss": secure} {
		t.Run(name, func(t *testing.T) {
			server := start(t, cfg)
			transport := &http.Transport{TLSClientConfig: trust}
			t.Cleanup(transport.CloseIdleConnections)
			sendsAndReceives(t, connectWith(t, server, &azservicebus.ClientOptions{
				RetryOptions: impatient,
				NewWebSocketConn: func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
					if cfg.TLS != nil && args.Host != server.WebSocketURL() {
						t.Errorf("the client asks for %s, served is %s", args.Host, server.WebSocketURL())
					}
					socket, _, err := websocket.Dial(ctx, server.WebSocketURL(), &websocket.DialOptions{
						HTTPClient: &http.Client{Transport: transport}, Subprotocols: []string{"amqp"},
					})
					if err != nil {
						return nil, err
					}
					return websocket.NetConn(context.Background(), socket, websocket.MessageBinary), nil
				},
			}))
		})
	}
}

func TestWebSocketNeedsPathAndSubprotocol(t *testing.T) {
	server := start(t, queues("q"))
	response, err := http.Get("http://" + server.Addr() + "/elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("another path answers %s, want what an admin operation without a token does", response.Status)
	}
	socket, _, err := websocket.Dial(within(t), server.WebSocketURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := socket.Read(within(t)); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("without the subprotocol: %v", err)
	}
}

func TestTwoHundredConnectionsAtOnce(t *testing.T) {
	server := start(t, queues("q"))
	const clients = 200
	var wg sync.WaitGroup
	for range clients {
		client := connect(t, server)
		wg.Go(func() {
			s, err := client.NewSender("q", nil)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.SendMessage(context.Background(), message("a", "x"), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if st := server.Stats(); st.ConnectionsAccepted != clients || st.MessagesReceived != clients {
		t.Errorf("stats are %+v", st)
	}
}

func TestManyReceiversShareAQueue(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	const messages = 2000
	seen := make(chan string, messages)
	var wg sync.WaitGroup
	for range 8 {
		r := receiver(t, connect(t, server), "q", nil)
		wg.Go(func() {
			for len(seen) < messages {
				ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
				some, err := r.ReceiveMessages(ctx, 50, nil)
				cancel()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
					return
				}
				for _, m := range some {
					if err := r.CompleteMessage(context.Background(), m, nil); err != nil {
						t.Error(err)
					}
					seen <- m.MessageID
				}
			}
		})
	}
	s := sender(t, client, "q")
	for from := 0; from < messages; from += 200 {
		if err := sendBatch(t, s, numbered(messages)[from:from+200]...); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	close(seen)
	distinct := map[string]bool{}
	for id := range seen {
		distinct[id] = true
	}
	if len(distinct) != messages {
		t.Errorf("%d of %d messages were received", len(distinct), messages)
	}
	if c := held(server, "q"); c != (emulator.Counts{}) {
		t.Errorf("left behind: %+v", c)
	}
}

func TestHeartbeats(t *testing.T) {
	server := start(t, queues("q"))
	raw := dialSocket(t, server)
	raw.open(t, amqp.Open{ContainerID: "raw", MaxFrameSize: rawFrame, IdleTimeoutMillis: 40})
	for range 3 {
		if f := raw.next(t); f.Body != nil {
			t.Fatalf("%T where an empty frame was due", f.Body)
		}
	}
}

func TestDrainUsesUpTheCredit(t *testing.T) {
	server := start(t, queues("q"))
	send(t, sender(t, connect(t, server), "q"), message("a", "x"))
	raw := dial(t, server)
	channel := raw.session(t)
	raw.send(t, channel, &amqp.Attach{Name: "r", Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "q"}})
	until[*amqp.Attach](t, raw)
	zero, credit := uint32(0), uint32(10)
	raw.send(t, channel, &amqp.Flow{
		NextIncomingID: &zero, IncomingWindow: 1000, Handle: &zero, DeliveryCount: &zero, LinkCredit: &credit, Drain: true,
	})
	until[*amqp.Transfer](t, raw)
	if f := until[*amqp.Flow](t, raw); !f.Drain || *f.LinkCredit != 0 || *f.DeliveryCount != credit {
		t.Errorf("after draining: drain %t, credit %d, delivery-count %d", f.Drain, *f.LinkCredit, *f.DeliveryCount)
	}
}

func TestSessionWindowHoldsTransfersBack(t *testing.T) {
	server := start(t, emulator.Config{Tier: emulator.Premium, Entities: []emulator.Entity{{Name: "q"}}})
	send(t, sender(t, connect(t, server), "q"), message("a", strings.Repeat("x", 300<<10)))
	raw := dial(t, server)
	raw.send(t, 1, &amqp.Begin{IncomingWindow: 2, OutgoingWindow: 1000, HandleMax: 255})
	until[*amqp.Begin](t, raw)
	raw.send(t, 1, &amqp.Attach{Name: "r", Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "q"}})
	until[*amqp.Attach](t, raw)
	zero, credit := uint32(0), uint32(10)
	flow := func(received uint32, echo bool) {
		raw.send(t, 1, &amqp.Flow{
			NextIncomingID: &received, IncomingWindow: 2, Handle: &zero, DeliveryCount: &zero, LinkCredit: &credit, Echo: echo,
		})
	}
	flow(0, false)
	frames, more := uint32(0), true
	for more {
		for range 2 {
			if more {
				more = until[*amqp.Transfer](t, raw).More
				frames++
			}
		}
		// A third frame would come before the answer to this.
		raw.send(t, 1, &amqp.Flow{NextIncomingID: &frames, IncomingWindow: 0, Echo: true})
		if _, ok := raw.next(t).Body.(*amqp.Flow); !ok {
			t.Fatal("a transfer came without a window for it")
		}
		flow(frames, false)
	}
	if frames < 5 {
		t.Errorf("300 KB came in %d frames", frames)
	}
}

func TestAbortedDeliveryIsForgotten(t *testing.T) {
	server := start(t, queues("q"))
	raw := dial(t, server)
	link := raw.sender(t, raw.session(t), "q")
	id := uint32(0)
	link.transfer(t, id, []byte("half of"), true)
	raw.write(t, amqp.AppendFrame(nil, amqp.FrameAMQP, link.channel, &amqp.Transfer{DeliveryID: &id, Aborted: true}, nil))
	link.transfer(t, 1, []byte("\x00\x53\x75\xa0\x05whole"), false)
	if d := until[*amqp.Disposition](t, raw); d.First != 1 || d.State.Outcome != amqp.Accepted {
		t.Errorf("disposition is %+v", d)
	}
	if got := server.Messages("q"); len(got) != 1 || string(got[0].Body) != "whole" {
		t.Errorf("stored: %+v", got)
	}
}

func TestGarbageEndsTheConnectionOnly(t *testing.T) {
	server := start(t, queues("q"))
	good := connect(t, server)
	send(t, sender(t, good, "q"), message("a", "x"))
	for name, bytesSent := range map[string][]byte{
		"not AMQP":          []byte("AMQX\x00\x01\x00\x00"),
		"a huge frame":      append(append([]byte{}, amqp.HeaderAMQP[:]...), 0x7f, 0xff, 0xff, 0xff, 2, 0, 0, 0),
		"an empty body":     append(append([]byte{}, amqp.HeaderAMQP[:]...), 0, 0, 0, 9, 2, 0, 0, 0, 0),
		"a list that lies":  append(append([]byte{}, amqp.HeaderAMQP[:]...), 0, 0, 0, 20, 2, 0, 0, 0, 0, 0x53, 0x10, 0xd0, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff),
		"begin before open": amqp.AppendFrame(append([]byte{}, amqp.HeaderAMQP[:]...), amqp.FrameAMQP, 0, &amqp.Begin{}, nil),
	} {
		raw := dialSocket(t, server)
		raw.write(t, bytesSent)
		if _, err := io.Copy(io.Discard, raw.conn); err != nil {
			t.Errorf("%s: the connection did not end: %v", name, err)
		}
	}
	send(t, sender(t, good, "q"), message("b", "y"))
}

func TestUndecodableMessagesAreRejected(t *testing.T) {
	server := start(t, queues("q"))
	raw := dial(t, server)
	link := raw.sender(t, raw.session(t), "q")
	for id, payload := range [][]byte{
		nil,
		[]byte("not a section"),
		[]byte("\x00\x53\x73\xc0\x02\x01\x40"), // no body
		[]byte("\x00\x53\x75\xb0\xff\xff\xff\xff"),     // a body longer than the frame
		bytes.Repeat([]byte{0x00}, 1000),               // descriptors all the way down
		[]byte("\x00\x53\x75\xa0\x00\x00\x53\x73\x45"), // sections out of order
	} {
		link.transfer(t, uint32(id), payload, false)
		d := until[*amqp.Disposition](t, raw)
		if d.State.Outcome != amqp.Rejected || d.State.Error == nil || d.State.Error.Condition != "amqp:decode-error" {
			t.Errorf("payload %d: %+v", id, d.State)
		}
	}
	if c := server.Counts("q"); c.Active != 0 {
		t.Errorf("%d of them were stored", c.Active)
	}
}

func TestEndOfASessionThatNeverBeganIsIgnored(t *testing.T) {
	server := start(t, queues("q"))
	raw := dial(t, server)
	raw.send(t, 1, &amqp.End{})
	raw.session(t)
}

func TestEndIsAnsweredOnce(t *testing.T) {
	server := start(t, queues("q"))
	raw := dial(t, server)
	// The server ends the session, the client answers: that is all.
	raw.send(t, raw.session(t), &amqp.Detach{Handle: 9})
	if end := until[*amqp.End](t, raw); end.Error == nil || end.Error.Condition != "amqp:session:unattached-handle" {
		t.Errorf("the session ended with %+v", end.Error)
	}
	raw.send(t, 1, &amqp.End{})
	raw.send(t, 2, &amqp.Begin{})
	if f := raw.next(t); f.Channel != 2 {
		t.Errorf("%T on channel %d after the end", f.Body, f.Channel)
	}
}

func TestWithoutATokenNothingIsAttached(t *testing.T) {
	server := start(t, queues("q"))
	raw := dialSocket(t, server)
	raw.open(t, amqp.Open{ContainerID: "raw", MaxFrameSize: rawFrame})
	raw.send(t, raw.session(t), &amqp.Attach{Name: "s", Target: &amqp.Target{Address: "q"}})
	wantCondition(t, raw.detached(t), "amqp:unauthorized-access")
}

func TestTransactionsAreRefused(t *testing.T) {
	server := start(t, queues("q"))
	raw := dial(t, server)
	raw.send(t, raw.session(t), &amqp.Attach{Name: "s", Coordinator: true})
	wantCondition(t, raw.detached(t), "amqp:not-implemented")
}

func TestUnmodelledManagementOperationIs501(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	_, err := client.NewListSessionsForQueuePager("q", nil).NextPage(within(t))
	if err == nil || !strings.Contains(err.Error(), "501") || !strings.Contains(err.Error(), "get-message-sessions") {
		t.Errorf("listing sessions: %v, want 501 and the operation's name", err)
	}
}
