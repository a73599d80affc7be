package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/internal/selfsigned"
	"azsqloutbox/servicebus/emulator"
)

type serveCmd struct {
	SQLAddr  string `name:"sql-addr" default:"127.0.0.1:1433" help:"Where the SQL engine listens; port 0 takes one that is free."`
	AMQPAddr string `name:"amqp-addr" default:"127.0.0.1:5672" help:"Where the broker listens; port 0 takes one that is free."`

	SQLRoundTrip  time.Duration `name:"sql-round-trip" default:"0s" help:"Delay of every answer of the SQL engine, as a network would."`
	AMQPRoundTrip time.Duration `name:"amqp-round-trip" default:"0s" help:"Delay of the broker's answer to a send."`

	Queue []string `env:"-" placeholder:"NAME" help:"A queue beside outbox-events; may be given several times or as a list."`
	Topic []string `env:"-" placeholder:"TOPIC/SUBSCRIPTION" help:"A topic and one subscription of it; give it again for more."`

	TLSDir string `name:"tls-dir" placeholder:"DIR" help:"Write the certificate of both engines to DIR/certificate.pem, so that clients can verify it."`

	LogLevel string `default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error."`
}

// Validate is called by the parser.
func (c *serveCmd) Validate() error {
	for flag, address := range map[string]string{"sql-addr": c.SQLAddr, "amqp-addr": c.AMQPAddr} {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("--%s %q: want host:port", flag, address)
		}
	}
	if c.SQLRoundTrip < 0 || c.AMQPRoundTrip < 0 {
		return errors.New("--sql-round-trip and --amqp-round-trip may be 0s or more")
	}
	_, err := c.entities()
	return err
}

// entities are the default queue and what was asked for beside it.
func (c *serveCmd) entities() ([]emulator.Entity, error) {
	all := []emulator.Entity{local.Roomy(local.Entity)}
	for _, name := range c.Queue {
		all = append(all, local.Roomy(name))
	}
	topics := map[string]int{}
	for _, text := range c.Topic {
		// The name of a topic may have slashes, that of a subscription none.
		slash := strings.LastIndexByte(text, '/')
		if slash < 1 || slash == len(text)-1 {
			return nil, fmt.Errorf("--topic %q: want topic/subscription", text)
		}
		name := text[:slash]
		at, known := topics[strings.ToLower(name)]
		if !known {
			at = len(all)
			topics[strings.ToLower(name)] = at
			topic := local.Roomy(name)
			topic.Kind = emulator.Topic
			all = append(all, topic)
		}
		all[at].Subscriptions = append(all[at].Subscriptions, emulator.Subscription{Name: text[slash+1:]})
	}
	return all, nil
}

// Run serves until ctx ends. Once both engines listen it prints what a worker
// needs, ready for eval in a shell.
func (c *serveCmd) Run(ctx context.Context, s streams) error {
	log := service.NewLogger(service.ProcessSettings{LogFormat: "console", LogLevel: c.LogLevel}, s.err)
	config := local.Config{
		SQLAddr: c.SQLAddr, AMQPAddr: c.AMQPAddr,
		SQLRoundTrip: c.SQLRoundTrip, AMQPRoundTrip: c.AMQPRoundTrip,
		Logger: log,
	}
	var err error
	if config.Entities, err = c.entities(); err != nil {
		return err
	}
	certificate, err := c.certify(&config)
	if err != nil {
		return err
	}
	stack, err := local.Start(ctx, config)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w; --sql-addr and --amqp-addr name others, and port 0 takes one that is free", err)
	}
	if err != nil {
		return err
	}
	var settings strings.Builder
	if certificate != "" {
		dsn, err := verifying(stack.SQL.DSN(), certificate)
		if err != nil {
			return errors.Join(err, stack.Close())
		}
		export(&settings, "OUTBOX_SQL_DSN", dsn)
		export(&settings, "OUTBOX_TLS_CERTIFICATE", certificate)
		export(&settings, "OUTBOX_SERVICEBUS_TLS", stack.Bus.ConnectionString())
	} else {
		export(&settings, "OUTBOX_SQL_DSN", stack.SQL.DSN())
	}
	// A worker cannot be told of a certificate, so it goes without TLS.
	export(&settings, "OUTBOX_SERVICEBUS_CONNECTION_STRING", stack.Bus.PlainConnectionString())
	export(&settings, "OUTBOX_ENTITY", local.Entity)
	if _, err := io.WriteString(s.out, settings.String()); err != nil {
		return errors.Join(fmt.Errorf("print the settings of a worker: %w", err), stack.Close())
	}
	log.Info("both engines listen; Ctrl-C ends them and forgets their data")
	<-ctx.Done()
	return stack.Close()
}

// certify gives the engines a certificate of the hosts that they listen on, where
// one is asked for, and returns its file.
func (c *serveCmd) certify(config *local.Config) (file string, err error) {
	if c.TLSDir == "" {
		return "", nil
	}
	var hosts []string
	for _, address := range []string{c.SQLAddr, c.AMQPAddr} {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return "", err
		}
		hosts = append(hosts, host)
	}
	if config.Certificate, err = selfsigned.New("outbox-dev", hosts...); err != nil {
		return "", err
	}
	return local.WriteCertificate(c.TLSDir, config.Certificate)
}

// verifying is the DSN of a client that verifies the server's certificate.
func verifying(dsn, certificate string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", err
	}
	query := u.Query()
	query.Del("trustservercertificate")
	query.Set("certificate", certificate)
	u.RawQuery = query.Encode()
	return u.String(), nil
}

func export(w io.Writer, name, value string) {
	fmt.Fprintf(w, "export %s=%s\n", name, shellQuote(value))
}

// shellQuote makes one word of s for a POSIX shell.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
