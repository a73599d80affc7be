package servicebus_test

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

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
