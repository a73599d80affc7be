// Command broker starts the embedded Service Bus with one entity for each of
// the things that the clients beside it try, which the single queue of
// outbox-dev serve does not have. It takes the folder to write its certificate
// to, prints the connection strings and tokens of Entra, ready for eval in a
// shell, and serves until it is interrupted.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/internal/selfsigned"
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
		return errors.New("one argument is expected: the folder to write the certificate to")
	}
	certificate, err := selfsigned.New("outbox-dev")
	if err != nil {
		return err
	}
	file, err := local.WriteCertificate(args[0], certificate)
	if err != nil {
		return err
	}
	server, err := emulator.Start(emulator.Config{
		TLS: &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12},
		Entities: []emulator.Entity{
			{Name: "plain"},
			{Name: "twice", MaxDeliveryCount: 2},
			{Name: "sessions", RequiresSession: true},
			{Name: "unique", DuplicateDetection: true},
			{Name: "scheduled"},
			{
				Name: "described", LockDuration: 30 * time.Second, MaxDeliveryCount: 7, DefaultTTL: 14 * 24 * time.Hour,
				DeadLetterOnExpiration: true, DuplicateDetection: true, DuplicateWindow: time.Hour, MaxSizeBytes: 2 << 30,
			},
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
	fmt.Printf("export CLIENTS_BUS_CERTIFICATE='%s'\n", file)
	fmt.Printf("export CLIENTS_BUS_ENTRA='%s'\n", emulator.EntraToken(time.Now().Add(time.Hour)))
	fmt.Printf("export CLIENTS_BUS_ENTRA_EXPIRED='%s'\n", emulator.EntraToken(time.Now().Add(-time.Minute)))
	fmt.Printf("export CLIENTS_BUS='Endpoint=sb://127.0.0.1:%s;%s;UseDevelopmentEmulator=true'\n", port, key)
	fmt.Printf("export CLIENTS_BUS_TLS='Endpoint=sb://localhost:%s;%s'\n", port, key)
	<-ctx.Done()
	return nil
}
