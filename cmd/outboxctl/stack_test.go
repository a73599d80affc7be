package main

import (
	"testing"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver/emulator"
)

// newStack is both embedded engines with an outbox, until the test ends.
func newStack(t *testing.T, c local.Config) *local.Stack {
	t.Helper()
	stack, err := local.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stack.Close(); err != nil {
			t.Error(err)
		}
	})
	return stack
}

// newEngine is a database with an outbox and no broker.
func newEngine(t *testing.T, c emulator.Config) *emulator.Server {
	t.Helper()
	engine, err := emulator.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := local.ApplySchema(t.Context(), engine.DSN(), scripts.Options{}); err != nil {
		t.Fatal(err)
	}
	return engine
}

// settingsFor are a worker's beside a stack, for one that soon sees what is new.
func settingsFor(t *testing.T, stack *local.Stack) service.Settings {
	t.Helper()
	settings, err := service.DefaultSettings()
	if err != nil {
		t.Fatal(err)
	}
	settings.SQL.DSN, settings.ServiceBus.ConnectionString, settings.ServiceBus.Entity = stack.SQL.DSN(), stack.Bus.ConnectionString(), local.Entity
	settings.Claim.IdlePoll, settings.Process.Listen = 10*time.Millisecond, "off"
	return settings
}
