package emulator

import (
	"strings"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// Names in an attach that asks for a session.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-protocol-guide
const (
	filterSession   = "com.microsoft:session-filter"
	propTimeout     = "com.microsoft:timeout"
	propLockedUntil = "com.microsoft:locked-until-utc"
	// acceptTimeout is how long the service looks for a session for a client
	// that names no timeout of its own.
	acceptTimeout = time.Minute
)

// attachSender makes the server's sending end: the client receives.
func (s *session) attachSender(a *amqp.Attach) (link, error) {
	if a.Source == nil {
		return nil, amqp.Errorf(condInvalidField, "a receiver without a source")
	}
	p, err := s.address(a.Source.Address, a.Source.Dynamic, RightListen)
	if err != nil {
		return nil, err
	}
	l := &sender{
		linkBase: linkBase{session: s, name: a.Name, handle: a.Handle, path: p},
		wake:     make(chan struct{}, 1),
		settled:  a.SenderSettle == amqp.SenderSettled,
	}
	if a.Target != nil {
		l.replyTo = a.Target.Address
	}
	entity, management := strings.CutSuffix(p, managementSuffix)
	if p == cbsPath || management {
		if management {
			if _, err := s.conn.server.namespace.find(entity); err != nil {
				return nil, err
			}
		}
		l.source = &replies{link: l}
		l.start(a, nil, nil)
		return l, nil
	}
	n, err := s.conn.server.namespace.find(p)
	if err != nil {
		return nil, err
	}
	if n.source == nil {
		// The condition is believed, not known.
		return nil, amqp.Errorf(broker.CondNotAllowed, "messages cannot be received from '%s'; a topic has subscriptions for that", p)
	}
	if err := n.receiveDisabled(); err != nil {
		return nil, err
	}
	wanted, err := sessionFilter(a.Source.Filter)
	if err != nil {
		return nil, err
	}
	switch requires := n.source.RequiresSession(); {
	case requires && wanted == nil:
		return nil, amqp.Errorf(broker.CondNotAllowed, "It is not possible for an entity that requires sessions "+
			"to create a non-sessionful message receiver.")
	case !requires && wanted != nil:
		return nil, amqp.Errorf(broker.CondNotAllowed, "A sessionful message receiver cannot be created on an entity "+
			"that does not require sessions.")
	case !requires:
		l.source = watchQueue(n.source, l)
		l.start(a, nil, nil)
		return l, nil
	}
	s.conn.links.Add(1)
	go l.acceptSession(a, n.source, wanted)
	return l, nil
}

// wantedSession is which session a client asks for.
type wantedSession struct {
	name *string // nil for any
	// descriptor is that of the filter's value, nil for a value without one: the
	// Go library sends and expects one, the JavaScript library does neither.
	descriptor any
}

// granted is the filter that tells the client which session it has.
func (w *wantedSession) granted(id string) map[string]any {
	if w.descriptor == nil {
		return map[string]any{filterSession: id}
	}
	return map[string]any{filterSession: amqp.Described{Descriptor: w.descriptor, Value: id}}
}

// sessionFilter reads which session a client wants, nil if it wants none.
func sessionFilter(filter map[string]any) (*wantedSession, error) {
	var wanted *wantedSession
	for key, v := range filter {
		if key != filterSession {
			return nil, amqp.Errorf(broker.CondNotImplemented, "the source filter %q is not modelled", key)
		}
		wanted = &wantedSession{}
		if d, ok := v.(amqp.Described); ok {
			switch d.Descriptor.(type) {
			case uint64, amqp.Symbol:
			default:
				return nil, amqp.Errorf(condInvalidField, "a session filter with a descriptor of type %T", d.Descriptor)
			}
			wanted.descriptor, v = d.Descriptor, d.Value
		}
		switch v := v.(type) {
		case nil:
		case string:
			wanted.name = &v
		default:
			return nil, amqp.Errorf(condInvalidField, "a session filter of type %T", v)
		}
	}
	return wanted, nil
}

// start answers the attach and lets the pump run. The connection's lock is
// held.
func (l *sender) start(a *amqp.Attach, filter map[string]any, properties map[amqp.Symbol]any) {
	l.attached = true
	target := &amqp.Target{}
	if a.Target != nil {
		target.Address = a.Target.Address
	}
	l.session.send(&amqp.Attach{
		Name: a.Name, Handle: a.Handle, Role: amqp.RoleSender,
		SenderSettle: a.SenderSettle, ReceiverSettle: a.ReceiverSettle,
		Source: &amqp.Source{Address: a.Source.Address, Filter: filter}, Target: target,
		Properties: properties,
	})
	c := l.session.conn
	c.links.Add(1)
	go func() {
		defer c.links.Done()
		l.pump()
	}()
}

// acceptSession waits for a session to be free, then answers the attach. It
// runs on a goroutine of its own.
func (l *sender) acceptSession(a *amqp.Attach, q *broker.Queue, wanted *wantedSession) {
	c := l.session.conn
	defer c.links.Done()
	timeout := acceptTimeout
	if ms, ok := a.Properties[propTimeout].(uint32); ok {
		timeout = time.Duration(ms) * time.Millisecond
	}
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	stopWatching := q.Watch(l.wake)
	defer stopWatching()
	lost := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if l.attached {
			l.detachWith(l, amqp.Errorf(broker.CondSessionLockLost, "The session lock has expired."))
		}
	}
	for {
		held, err := q.Accept(wanted.name, lost)
		c.mu.Lock()
		switch {
		case l.closed:
			if held != nil {
				held.Release()
			}
			c.mu.Unlock()
			return
		case err != nil:
			l.closed = true
			l.session.refuse(a, asError(err))
			c.mu.Unlock()
			return
		case held != nil:
			l.source = watchSession(held, q, l)
			l.start(a, wanted.granted(held.ID()),
				map[amqp.Symbol]any{propLockedUntil: dotNetTicks(held.LockedUntil())})
			l.signal()
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		select {
		case <-l.wake:
		case <-deadline.C:
			c.mu.Lock()
			if !l.closed {
				l.closed = true
				l.session.refuse(a, amqp.Errorf(condTimeout, "The operation did not complete within the allotted timeout "+
					"of %s: no session has messages.", timeout))
			}
			c.mu.Unlock()
			return
		}
	}
}

// dotNetTicks is a time as .NET counts it: in units of 100 ns since the year 1.
func dotNetTicks(t time.Time) int64 {
	const unixEpoch = 621355968000000000
	return unixEpoch + t.UnixNano()/100
}
