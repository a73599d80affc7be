package servicebus_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"azsqloutbox/servicebus"
	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/worker"
)

const payments = "payments"

// hangingCredential hangs the next time that it is asked once it is armed, until
// it is released. It is not told of any context that ends: azservicebus hands it
// none.
type hangingCredential struct {
	armed    atomic.Bool
	hangs    chan struct{} // closed once it does
	released chan struct{}
}

func (c *hangingCredential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if c.armed.CompareAndSwap(true, false) {
		close(c.hangs)
		<-c.released
	}
	return fixedToken{}.GetToken(ctx, o)
}

// hanging starts an emulator with two queues and a Publisher for both: the event
// type Paid leads to payments, all others to orders. The credential is released
// when the test is over and the Publisher closed.
func hanging(t *testing.T, sendTimeout time.Duration) (*emulator.Server, *servicebus.Publisher, *hangingCredential) {
	t.Helper()
	serverTLS, clientTLS := selfSigned(t)
	server := startEmulator(t, emulator.Config{TLS: serverTLS, Entities: []emulator.Entity{{Name: orders}, {Name: payments}}})
	credential := &hangingCredential{hangs: make(chan struct{}), released: make(chan struct{})}
	t.Cleanup(func() { close(credential.released) })
	p := newPublisher(t, servicebus.Config{
		Namespace: server.Addr(), Credential: credential, TLS: clientTLS, SendTimeout: sendTimeout,
		Routes: mustRoutes(t, servicebus.Route{Entity: orders}, servicebus.Route{EventType: "Paid", Entity: payments}), Source: "test",
	})
	return server, p, credential
}

// paid makes events 1 to n for payments.
func paid(n int) []worker.Event {
	events := manyEvents(n, 10)
	for i := range events {
		events[i].Type = "Paid"
	}
	return events
}

// slowly sends a batch to payments that is stored at once and answered as late as
// told. It returns, when the batch is under way, where its outcomes will be.
func slowly(t *testing.T, server *emulator.Server, p *servicebus.Publisher, batch []worker.Event, late time.Duration) <-chan []worker.Outcome {
	t.Helper()
	var arrived sync.Once
	underWay := make(chan struct{})
	server.Inject(emulator.Fault{Kind: emulator.Delay, Entity: payments, Duration: late, Match: func(emulator.Message) bool {
		arrived.Do(func() { close(underWay) })
		return true
	}})
	outcomes := make(chan []worker.Outcome, 1)
	go func() { outcomes <- p.Publish(t.Context(), batch) }()
	<-underWay
	return outcomes
}

// slowWhileAbandoned has a batch under way to payments, its answer as late as
// told, when the connection is abandoned because a call for orders hangs on it.
// Once that is done it returns where the batch's outcomes will be.
func slowWhileAbandoned(t *testing.T, server *emulator.Server, p *servicebus.Publisher, credential *hangingCredential, batch []worker.Event, late time.Duration) <-chan []worker.Outcome {
	t.Helper()
	wantAll(t, p.Publish(t.Context(), paid(1)), worker.Sent) // the link is there

	credential.armed.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hung := make(chan []worker.Outcome)
	go func() { hung <- p.Publish(ctx, manyEvents(2, 10)) }()
	<-credential.hangs

	slow := slowly(t, server, p, batch, late)
	cancel()
	wantAll(t, <-hung, worker.Unsent)
	return slow
}

// wantConnections waits until no more than so many are open.
func wantConnections(t *testing.T, server *emulator.Server, want int64) {
	t.Helper()
	for patience := time.Now().Add(time.Minute); server.Stats().Connections > want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(patience) {
			t.Fatalf("%d connections are open, want %d", server.Stats().Connections, want)
		}
	}
}

// A call that hangs beyond its context is left behind: Publish returns, and the
// next one is served by a new connection.
func TestAHangingCallIsAbandoned(t *testing.T) {
	t.Parallel()
	server, p, credential := hanging(t, 5*time.Minute)
	credential.armed.Store(true)
	for patience, hangs := 200*time.Millisecond, false; !hangs; patience *= 2 {
		outcomes := p.Publish(inTime(t, patience), manyEvents(2, 10))
		wantAll(t, outcomes, worker.Unsent)
		wantDestinationError(t, outcomes[0].Err, orders, servicebus.KindTimeout)
		select {
		case <-credential.hangs:
			hangs = true
		default: // on a busy machine the time was over before
		}
	}

	// Less than a SendTimeout: the new connection serves at once.
	wantAll(t, p.Publish(inTime(t, time.Minute), manyEvents(2, 10)), worker.Sent)
	wantStored(t, server, 2)
}

// A batch whose link cannot be opened again has not been sent: it has another try,
// on a new connection, and is not taken for one that the broker does not answer to.
func TestALinkThatCannotBeOpenedAgainIsTriedOnANewConnection(t *testing.T) {
	t.Parallel()
	server, p, credential := hanging(t, time.Second)
	servicebus.Hurry(p)
	wantAll(t, p.Publish(t.Context(), manyEvents(2, 10)), worker.Sent)
	server.Inject(emulator.Fault{Kind: emulator.DetachLink, Condition: "com.microsoft:server-busy"})
	credential.armed.Store(true)
	wantAll(t, p.Publish(inTime(t, time.Minute), manyEvents(4, 10)[2:]), worker.Sent)
	select {
	case <-credential.hangs:
	default:
		t.Error("no link was opened again")
	}
}

// What is well under way on an abandoned connection is answered there: cut off,
// it would go out a second time. Then the connection is closed, although the call
// that it was abandoned for still hangs.
func TestAnAbandonedConnectionAnswersWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	const events = 10
	for late := 3 * time.Second; ; late *= 2 {
		server, p, credential := hanging(t, 5*time.Minute)
		slow := slowWhileAbandoned(t, server, p, credential, paid(1 + events)[1:], late)
		if len(slow) > 0 {
			continue // on a busy machine the answer came before the connection was abandoned
		}
		wantAll(t, p.Publish(t.Context(), manyEvents(2, 10)), worker.Sent) // on a new one
		wantAll(t, <-slow, worker.Sent)
		times := make(map[string]int)
		for _, m := range server.Messages(payments) {
			times[fmt.Sprint(m.ApplicationProperties[servicebus.PropertyEventID])]++
		}
		for id := range 1 + events {
			if got := times[fmt.Sprint(id+1)]; got != 1 {
				t.Errorf("event %d was stored %d times, want once", id+1, got)
			}
		}
		wantConnections(t, server, 1)
		if got := servicebus.Leaving(p); got > 0 {
			t.Errorf("%d abandoned connections are still known", got)
		}
		return
	}
}

// Close waits for nothing that is under way, on an abandoned connection neither.
func TestCloseCutsOffAnAbandonedConnection(t *testing.T) {
	t.Parallel()
	server, p, credential := hanging(t, 5*time.Minute)
	slow := slowWhileAbandoned(t, server, p, credential, paid(10)[1:], time.Hour)
	if err := p.Close(inTime(t, time.Minute)); err != nil {
		t.Error(err)
	}
	wantAll(t, <-slow, worker.Unsent)
	wantConnections(t, server, 0)
}

// The known limit of the package's comment, where azservicebus sends twice: should
// this fail after an upgrade, the comment has become too modest.
func TestARefusalBreaksTheConnectionOfOthers(t *testing.T) {
	t.Parallel()
	server, p, _ := hanging(t, 5*time.Minute)
	wantAll(t, p.Publish(t.Context(), paid(1)), worker.Sent)
	wantAll(t, p.Publish(t.Context(), manyEvents(1, 10)), worker.Sent)
	slow := slowly(t, server, p, paid(10)[1:], time.Hour)
	server.Inject(emulator.Fault{Kind: emulator.Reject, Entity: orders, Condition: "contoso:bad-message", Times: emulator.Forever, Match: eventID(2)})
	wantVerdicts(t, p.Publish(inTime(t, time.Minute), manyEvents(2, 10)[1:]), "f")
	wantAll(t, <-slow, worker.Sent)
	if got := server.Counts(payments).Active; got != 1+2*9 {
		t.Errorf("payments holds %d messages, want 9 of 10 twice", got)
	}
}
