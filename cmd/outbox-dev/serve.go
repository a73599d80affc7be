package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
)

type serveCmd struct {
	SQLAddr  string `name:"sql-addr" default:"127.0.0.1:1433" help:"Where the SQL engine listens; port 0 takes any."`
	AMQPAddr string `name:"amqp-addr" default:"127.0.0.1:5672" help:"Where the broker listens; port 0 takes any."`

	SQLRoundTrip  time.Duration `name:"sql-round-trip" default:"0s" help:"Delay of every answer of the SQL engine, as a network would."`
	AMQPRoundTrip time.Duration `name:"amqp-round-trip" default:"0s" help:"Delay of the broker's answer to a send."`

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
	return nil
}

// Run serves until ctx ends. Once both engines listen it prints what a worker
// needs, ready for eval in a shell.
func (c *serveCmd) Run(ctx context.Context, s streams) error {
	log := service.NewLogger(service.ProcessSettings{LogFormat: "console", LogLevel: c.LogLevel}, s.err)
	stack, err := local.Start(ctx, local.Config{
		SQLAddr: c.SQLAddr, AMQPAddr: c.AMQPAddr,
		SQLRoundTrip: c.SQLRoundTrip, AMQPRoundTrip: c.AMQPRoundTrip,
		Logger: log,
	})
	if err != nil {
		return err
	}
	for _, v := range [][2]string{
		{"OUTBOX_SQL_DSN", stack.SQL.DSN()},
		{"OUTBOX_SERVICEBUS_CONNECTION_STRING", stack.Bus.ConnectionString()},
		{"OUTBOX_ENTITY", local.Entity},
	} {
		fmt.Fprintf(s.out, "export %s=%s\n", v[0], shellQuote(v[1]))
	}
	log.Info("both engines listen; Ctrl-C ends them and forgets their data")
	<-ctx.Done()
	return stack.Close()
}

// shellQuote makes one word of s for a POSIX shell.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
