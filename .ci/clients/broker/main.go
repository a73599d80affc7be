// Command broker starts the embedded Service Bus with one entity for each of
// the things that the clients beside it try, which the single queue of
// outbox-dev serve does not have. It takes the file to write its certificate
// to, prints the connection strings, ready for eval in a shell, and serves
// until it is interrupted.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"azsqloutbox/servicebus/emulator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("one argument is expected: the file to write the certificate to")
	}
	certificate, err := selfSigned()
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	if err := os.WriteFile(args[0], block, 0o600); err != nil {
		return fmt.Errorf("write the certificate: %w", err)
	}
	server, err := emulator.Start(emulator.Config{
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		Entities: []emulator.Entity{
			{Name: "plain"},
			{Name: "twice", MaxDeliveryCount: 2},
			{Name: "sessions", RequiresSession: true},
			{Name: "unique", DuplicateDetection: true},
			{Name: "scheduled"},
			{Name: "expiring", DeadLetterOnExpiration: true},
			{Name: "topic", Kind: emulator.Topic, Subscriptions: []emulator.Subscription{
				{Name: "all"},
				{Name: "orders", Rules: []emulator.Rule{{Subject: "order", Properties: map[string]any{"region": "north"}}}},
			}},
		},
	})
	if err != nil {
		return err
	}
	defer server.Close()

	// The listener takes connections with TLS and without.
	_, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		return err
	}
	const key = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE"
	fmt.Printf("export CLIENTS_BUS='Endpoint=sb://127.0.0.1:%s;%s;UseDevelopmentEmulator=true'\n", port, key)
	fmt.Printf("export CLIENTS_BUS_TLS='Endpoint=sb://localhost:%s;%s'\n", port, key)
	<-ctx.Done()
	return nil
}

// selfSigned makes a certificate of localhost for a day.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "localhost"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
