package emulator

import (
	"strings"

	"go.uber.org/zap"

	"azsqloutbox/servicebus/emulator/internal/amqp"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// linkBase is what the two kinds of links have in common. The connection's
// lock guards it.
type linkBase struct {
	session *session
	name    string
	handle  uint32
	// path is the node's address.
	path string
	// closed is set once the link is detached by either side; a detach of ours
	// leaves it among the session's links until the client has answered.
	closed bool
	idle   *idleWatch // nil for none
}

func (b *linkBase) base() *linkBase { return b }

func (b *linkBase) close(l link) {
	if b.closed {
		return
	}
	b.closed = true
	b.idle.stop()
	b.session.conn.server.stats.links.Add(-1)
	l.stop()
}

// detachWith ends the link with an error.
func (b *linkBase) detachWith(l link, err *amqp.Error) {
	if b.closed || b.session.ended {
		return
	}
	b.close(l)
	if waiting, ok := l.(*sender); ok && !waiting.attached {
		// A detach needs an attach before it, also of what never came about.
		b.session.send(&amqp.Attach{Name: b.name, Handle: b.handle, Role: amqp.RoleSender})
	}
	b.session.send(&amqp.Detach{Handle: b.handle, Closed: true, Error: err})
}

// attach makes a link, or refuses it.
func (s *session) attach(a *amqp.Attach) {
	if s.ended {
		return
	}
	if a.Handle > handleMax {
		s.fail(amqp.Errorf(broker.CondNotAllowed, "handle %d is above handle-max %d", a.Handle, handleMax))
		return
	}
	if s.links[a.Handle] != nil {
		s.fail(amqp.Errorf(condHandleInUse, "handle %d is in use", a.Handle))
		return
	}
	if !s.holdHandle() {
		return
	}
	s.conn.server.stats.links.Add(1)
	s.conn.server.stats.linksTotal.Add(1)
	var l link
	var err error
	if a.Role == amqp.RoleSender {
		l, err = s.attachReceiver(a)
	} else {
		l, err = s.attachSender(a)
	}
	if err == nil {
		s.links[a.Handle] = l
		l.base().watchIdle(l)
		return
	}
	s.refuse(a, asError(err))
}

// refuse answers an attach the way the standard wants it: an attach without
// the terminus, then a detach that says why (part 2, section 2.6.3).
func (s *session) refuse(a *amqp.Attach, err *amqp.Error) {
	s.conn.log.Debug("attach refused", zap.String("link", a.Name), zap.Error(err))
	r := &receiver{linkBase: linkBase{session: s, name: a.Name, handle: a.Handle, closed: true}}
	s.links[a.Handle] = r
	s.conn.server.stats.links.Add(-1)
	s.send(&amqp.Attach{
		Name: a.Name, Handle: a.Handle, Role: !a.Role,
		SenderSettle: a.SenderSettle, ReceiverSettle: a.ReceiverSettle,
	})
	s.send(&amqp.Detach{Handle: a.Handle, Closed: true, Error: err})
}

// asError makes an AMQP error of any.
func asError(err error) *amqp.Error {
	if e, ok := err.(*amqp.Error); ok {
		return e
	}
	return amqp.Errorf(broker.CondInternal, "%s", err)
}

// address checks whether the client may attach to an address and returns the
// path it names. Links to $management need any right; its operations need
// their own.
func (s *session) address(address string, dynamic bool, needed Rights) (string, error) {
	if dynamic {
		return "", amqp.Errorf(broker.CondNotImplemented, "dynamic nodes are not modelled")
	}
	p := path(address)
	if p == cbsPath {
		return p, nil
	}
	if strings.HasSuffix(p, managementSuffix) {
		needed = RightSend | RightListen
	}
	if err := s.conn.allows(p, needed); err != nil {
		return "", err
	}
	refused, drop := s.conn.server.faults.onAttach(p)
	if drop {
		s.conn.kill()
	}
	return p, refused
}

// acceptor handles what a client sends to a link.
type acceptor interface {
	// accept is called by the connection's reading goroutine, without a lock.
	accept(r *receiver, m incoming)
}

// attachReceiver makes the server's receiving end: the client sends.
func (s *session) attachReceiver(a *amqp.Attach) (link, error) {
	if a.Coordinator {
		return nil, amqp.Errorf(broker.CondNotImplemented, "transactions are not modelled")
	}
	if a.Target == nil {
		return nil, amqp.Errorf(condInvalidField, "a sender without a target")
	}
	p, err := s.address(a.Target.Address, a.Target.Dynamic, RightSend)
	if err != nil {
		return nil, err
	}
	r := &receiver{linkBase: linkBase{session: s, name: a.Name, handle: a.Handle, path: p}}
	r.deliveryCount = a.InitialDeliveryCount
	r.maxMessage = requestLimit
	var properties map[amqp.Symbol]any
	switch entity, management := strings.CutSuffix(p, managementSuffix); {
	case p == cbsPath:
		r.node = cbsNode{}
	case management:
		n, err := s.conn.server.namespace.find(entity)
		if err != nil {
			return nil, err
		}
		r.node = managementNode{n}
	default:
		n, err := s.conn.server.namespace.find(p)
		if err != nil {
			return nil, err
		}
		if n.destination == nil {
			// The condition is believed, not known.
			return nil, amqp.Errorf(broker.CondNotAllowed, "messages cannot be sent to '%s'", p)
		}
		if err := n.sendDisabled(); err != nil {
			return nil, err
		}
		r.node = entityNode{n}
		r.maxMessage = n.maxMessage
		if limit, announced := s.conn.server.cfg.Tier.batchLimit(); announced {
			properties = map[amqp.Symbol]any{propMaxBatch: uint64(limit)}
			r.maxMessage = max(r.maxMessage, limit)
		}
	}
	s.send(&amqp.Attach{
		Name: a.Name, Handle: a.Handle, Role: amqp.RoleReceiver,
		SenderSettle: a.SenderSettle, ReceiverSettle: a.ReceiverSettle,
		Source: &amqp.Source{}, Target: &amqp.Target{Address: a.Target.Address},
		MaxMessageSize: uint64(r.maxMessage), Properties: properties,
	})
	r.grant()
	return r, nil
}

// requestLimit bounds a request to $cbs or $management.
const requestLimit = 1 << 20
