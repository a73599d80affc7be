package servicebus_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"azsqloutbox/internal/selfsigned"
	"azsqloutbox/servicebus"
	"azsqloutbox/servicebus/emulator"
	"azsqloutbox/worker"
)

// selfSigned makes a certificate for 127.0.0.1 and what a client needs to trust
// it.
func selfSigned(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	certificate, err := selfsigned.New("test")
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate.Leaf)
	return &tls.Config{Certificates: []tls.Certificate{*certificate}}, &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1"}
}

func TestNamespaceWithCredentialOverTLS(t *testing.T) {
	serverTLS, clientTLS := selfSigned(t)
	for name, webSockets := range map[string]bool{"AMQP": false, "WebSockets": true} {
		t.Run(name, func(t *testing.T) {
			server := startEmulator(t, emulator.Config{TLS: serverTLS, Entities: []emulator.Entity{{Name: orders}}})
			p := newPublisher(t, servicebus.Config{
				Namespace: server.Addr(), Credential: fixedToken{}, TLS: clientTLS, WebSockets: webSockets,
				Routes: mustRoutes(t, servicebus.Route{Entity: orders}), Source: "test",
			})
			wantAll(t, p.Publish(t.Context(), manyEvents(10, 10)), worker.Sent)
			wantStored(t, server, 10)
		})
	}
}

func TestAnUntrustedCertificateIsNoConnection(t *testing.T) {
	serverTLS, _ := selfSigned(t)
	server := startEmulator(t, emulator.Config{TLS: serverTLS, Entities: []emulator.Entity{{Name: orders}}})
	p := newPublisher(t, servicebus.Config{
		Namespace: server.Addr(), Credential: fixedToken{},
		Routes: mustRoutes(t, servicebus.Route{Entity: orders}), Source: "test",
	})
	servicebus.Hurry(p)
	outcomes := p.Publish(inTime(t, time.Minute), manyEvents(2, 10))
	wantAll(t, outcomes, worker.Unsent)
	wantDestinationError(t, outcomes[0].Err, orders, servicebus.KindConnection)
}

// hangingCredential hangs when it is first asked, until it is released. It is
// not told of any context that ends: azservicebus hands it none.
type hangingCredential struct {
	asked   atomic.Bool
	release chan struct{}
}

func (c *hangingCredential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if !c.asked.Swap(true) {
		<-c.release
	}
	return fixedToken{}.GetToken(ctx, o)
}

// A call that hangs beyond its context is left behind: Publish returns, and the
// next one is served by a new connection.
func TestAHangingCallIsAbandoned(t *testing.T) {
	serverTLS, clientTLS := selfSigned(t)
	server := startEmulator(t, emulator.Config{TLS: serverTLS, Entities: []emulator.Entity{{Name: orders}}})
	credential := &hangingCredential{release: make(chan struct{})}
	p := newPublisher(t, servicebus.Config{
		Namespace: server.Addr(), Credential: credential, TLS: clientTLS,
		Routes: mustRoutes(t, servicebus.Route{Entity: orders}), Source: "test",
	})
	t.Cleanup(func() { close(credential.release) })
	outcomes := p.Publish(inTime(t, 100*time.Millisecond), manyEvents(2, 10))
	wantAll(t, outcomes, worker.Unsent)
	wantDestinationError(t, outcomes[0].Err, orders, servicebus.KindTimeout)

	// Less than a SendTimeout: the new connection serves at once.
	wantAll(t, p.Publish(inTime(t, 8*time.Second), manyEvents(2, 10)), worker.Sent)
	wantStored(t, server, 2)
}
