package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/sqlserver"
)

// served runs serve until the test ends and returns what it exports, up to the
// last variable.
func served(t *testing.T, args ...string) map[string]string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	in, out := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		defer out.Close()
		ended <- run(ctx, append([]string{"serve", "--sql-addr", "127.0.0.1:0", "--amqp-addr", "127.0.0.1:0"}, args...), out, &stderr)
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("serve ended with %d: %s", code, &stderr)
		}
	})
	settings := map[string]string{}
	for lines := bufio.NewScanner(in); settings["OUTBOX_ENTITY"] == "" && lines.Scan(); {
		m := exportLine.FindStringSubmatch(lines.Text())
		if m == nil {
			t.Fatalf("serve printed %q, want an export line", lines.Text())
		}
		settings[m[1]] = m[2]
	}
	return settings
}

func TestServedCertificateIsVerified(t *testing.T) {
	dir := t.TempDir() + "/made"
	settings := served(t, "--tls-dir", dir)
	file := settings["OUTBOX_TLS_CERTIFICATE"]
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(file, dir) || strings.Contains(string(pem), "PRIVATE") {
		t.Errorf("%s holds %s", file, pem)
	}

	ping := func(dsn string) error {
		db, err := sqlserver.Open(dsn, sqlserver.Options{AppName: "test"})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		return db.PingContext(t.Context())
	}
	dsn := settings["OUTBOX_SQL_DSN"]
	if err := ping(dsn); err != nil {
		t.Errorf("SQL with the certificate: %v", err)
	}
	untrusting, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query := untrusting.Query()
	query.Del("certificate")
	untrusting.RawQuery = query.Encode()
	if err := ping(untrusting.String()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("SQL without the certificate: %v, want that nobody vouches for it", err)
	}

	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	send := func(connectionString string, trust *tls.Config) error {
		client, err := azservicebus.NewClientFromConnectionString(connectionString, &azservicebus.ClientOptions{
			RetryOptions: azservicebus.RetryOptions{MaxRetries: -1}, TLSConfig: trust,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(context.Background())
		sender, err := client.NewSender(settings["OUTBOX_ENTITY"], nil)
		if err != nil {
			t.Fatal(err)
		}
		return sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("x")}, nil)
	}
	// azservicebus takes the port for a part of the name.
	if err := send(settings["OUTBOX_SERVICEBUS_TLS"], &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1"}); err != nil {
		t.Errorf("the broker with the certificate: %v", err)
	}
	if err := send(settings["OUTBOX_SERVICEBUS_TLS"], &tls.Config{ServerName: "127.0.0.1"}); err == nil {
		t.Error("the broker was trusted without the certificate")
	}
	// A worker, which knows of no certificate, goes without TLS.
	if err := send(settings["OUTBOX_SERVICEBUS_CONNECTION_STRING"], nil); err != nil {
		t.Errorf("the broker without TLS: %v", err)
	}
}

// The file of routes that the README shows works with the queues that it serves.
func TestServedQueuesAreThoseOfTheReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(readme), "# outbox-worker --config routes.yaml")
	example, _, _ = strings.Cut(example, "```")
	var entities, args []string
	for _, m := range regexp.MustCompile(`entity: (\S+)`).FindAllStringSubmatch(example, -1) {
		entities = append(entities, m[1])
	}
	for _, m := range regexp.MustCompile(`--queue\s+([\w,]+)`).FindAllStringSubmatch(string(readme), -1) {
		args = append(args, "--queue", m[1])
	}
	if len(entities) != 3 {
		t.Fatalf("the README routes to %q", entities)
	}
	settings := served(t, args...)
	client, err := azservicebus.NewClientFromConnectionString(settings["OUTBOX_SERVICEBUS_CONNECTION_STRING"], &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	for _, entity := range append(entities, settings["OUTBOX_ENTITY"]) {
		sender, err := client.NewSender(entity, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("x")}, nil); err != nil {
			t.Errorf("%s: %v", entity, err)
		}
	}
}

func TestServedTopics(t *testing.T) {
	settings := served(t, "--topic", "shop/orders/billing", "--topic", "shop/orders/parcels")
	client, err := azservicebus.NewClientFromConnectionString(settings["OUTBOX_SERVICEBUS_CONNECTION_STRING"], nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	sender, err := client.NewSender("shop/orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("x")}, nil); err != nil {
		t.Fatal(err)
	}
	for _, subscription := range []string{"billing", "parcels"} {
		receiver, err := client.NewReceiverForSubscription("shop/orders", subscription, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := receiver.ReceiveMessages(t.Context(), 1, nil); err != nil || len(got) != 1 || string(got[0].Body) != "x" {
			t.Errorf("%s received %v, %v", subscription, got, err)
		}
	}
	for _, wrong := range []string{"orders", "/billing", "orders/"} {
		var stderr bytes.Buffer
		if code := run(t.Context(), []string{"serve", "--topic", wrong}, io.Discard, &stderr); code != 2 || !strings.Contains(stderr.String(), "topic/subscription") {
			t.Errorf("--topic %s ends with %d: %s", wrong, code, &stderr)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestServeSaysWhatItCannotDo(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for _, tt := range []struct {
		out  io.Writer
		args []string
		code int
		want string
	}{
		{io.Discard, []string{"--queue="}, 2, "--queue"},
		{io.Discard, []string{"--queue", "a,,b"}, 2, "--queue"},
		{io.Discard, []string{"--topic="}, 2, "--topic"},
		{io.Discard, []string{"--sql-addr", busy.Addr().String()}, 1, "port 0 takes one that is free"},
		{io.Discard, []string{"--amqp-addr", busy.Addr().String()}, 1, "port 0 takes one that is free"},
		{fullDisk{}, nil, 1, "print the settings of a worker: no space left"},
	} {
		// A serve that sees nothing wrong would go on for ever.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var stderr bytes.Buffer
		code := run(ctx, append([]string{"serve", "--sql-addr", "127.0.0.1:0", "--amqp-addr", "127.0.0.1:0"}, tt.args...), tt.out, &stderr)
		cancel()
		if code != tt.code || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%v ends with %d, want %d: %s", tt.args, code, tt.code, &stderr)
		}
	}
}

func TestVersionThatCannotBePrintedFails(t *testing.T) {
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"--version"}, fullDisk{}, &stderr); code != 1 || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("it ends with %d: %s", code, &stderr)
	}
}
