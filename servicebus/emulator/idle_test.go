package emulator_test

import (
	"strings"
	"testing"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

func TestIdleLinksAreDetached(t *testing.T) {
	cfg := queues("q")
	cfg.LinkIdleTimeout = 50 * time.Millisecond
	server := start(t, cfg)
	client := connectPatiently(t, server)
	s := sender(t, client, "q")
	send(t, s, message("a", "x"))
	attached := server.Stats()
	// The client itself ends those to $cbs.
	gone, cancel := contextUntil(t, func() bool { return server.Stats().Links == 0 })
	defer cancel()
	<-gone.Done()
	send(t, s, message("b", "x"))
	if st := server.Stats(); st.LinksAttached <= attached.LinksAttached || st.ConnectionsAccepted != 1 {
		t.Errorf("%d links were attached and %d before, on %d connections; want a new link on the old connection",
			st.LinksAttached, attached.LinksAttached, st.ConnectionsAccepted)
	}
	if c := server.Counts("q"); c.Active != 2 {
		t.Errorf("%d messages stored, want 2", c.Active)
	}
}

func TestIdleDetachIsWhatTheClientIsTold(t *testing.T) {
	cfg := queues("q")
	cfg.LinkIdleTimeout = 20 * time.Millisecond
	server := start(t, cfg)
	raw := dial(t, server)
	raw.sender(t, raw.session(t), "q")
	err := raw.detached(t)
	wantCondition(t, err, "amqp:link:detach-forced")
	if !strings.Contains(err.Error(), "Idle timeout: 00:00:00.0200000") {
		t.Errorf("the time in %q is not as .NET writes it", err)
	}
}

func TestBusyLinkIsNotIdle(t *testing.T) {
	cfg := queues("q")
	cfg.LinkIdleTimeout = time.Second
	server := start(t, cfg)
	s := sender(t, connect(t, server), "q")
	send(t, s, message("a", "x"))
	attached := server.Stats().LinksAttached
	// An impatient client does not attach again.
	for end := time.Now().Add(cfg.LinkIdleTimeout * 3 / 2); time.Now().Before(end); {
		send(t, s, message("a", "x"))
	}
	if got := server.Stats().LinksAttached; got != attached {
		t.Errorf("%d links, %d before", got, attached)
	}
}

func TestConnectionWithoutLinksIsClosed(t *testing.T) {
	cfg := queues("q")
	cfg.ConnectionIdleTimeout, cfg.LinkIdleTimeout = 20*time.Millisecond, 20*time.Millisecond
	server := start(t, cfg)
	raw := dial(t, server)
	if c := until[*amqp.Close](t, raw); c.Error == nil || c.Error.Condition != "amqp:connection:forced" {
		t.Errorf("closed with %+v", c.Error)
	}

	client := connectPatiently(t, server)
	s := sender(t, client, "q")
	send(t, s, message("a", "x"))
	gone, cancel := contextUntil(t, func() bool { return server.Stats().Connections == 0 })
	defer cancel()
	<-gone.Done()
	send(t, s, message("b", "x"))
	if st := server.Stats(); st.ConnectionsAccepted != 3 || st.MessagesReceived != 2 {
		t.Errorf("%+v, want both messages and a connection for each", st)
	}
}

func TestConnectionsClosedByTheServiceAreMadeAnew(t *testing.T) {
	server := start(t, queues("q"))
	client := connectPatiently(t, server)
	s := sender(t, client, "q")
	send(t, s, message("a", "x"))
	raw := dial(t, server)
	if n := server.CloseConnections("amqp:connection:forced", "the namespace is moved"); n != 2 {
		t.Errorf("%d connections were closed, want 2", n)
	}
	if c := until[*amqp.Close](t, raw); c.Error == nil || c.Error.Condition != "amqp:connection:forced" || c.Error.Description != "the namespace is moved" {
		t.Errorf("closed with %+v", c.Error)
	}
	send(t, s, message("b", "x"))
}
