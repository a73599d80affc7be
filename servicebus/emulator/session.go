package emulator

import (
	"go.uber.org/zap"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// session is one AMQP session. The connection's lock guards it. Channel and
// handle numbers are the client's own: each side may choose, and the same are
// as good as any.
type session struct {
	conn    *conn
	channel uint16
	links   map[uint32]link

	// What the client sends: transfer frames it may still send before the next
	// flow, and the id of the next.
	nextIncoming   uint32
	incomingWindow uint32
	// What is sent to the client.
	nextOutgoing uint32
	remoteWindow uint32
	nextDelivery uint32
	unsettled    map[uint32]delivery
	ended        bool
}

// link is the server's end of a link.
type link interface {
	// base is what both kinds have.
	base() *linkBase
	flow(*amqp.Flow)
	// stop ends the link's work. It is called once, with the connection's lock
	// held.
	stop()
}

func newSession(c *conn, channel uint16, begin *amqp.Begin) *session {
	return &session{
		conn: c, channel: channel, links: map[uint32]link{}, unsettled: map[uint32]delivery{},
		nextIncoming: begin.NextOutgoingID, incomingWindow: sessionWindow, remoteWindow: begin.IncomingWindow,
	}
}

func (s *session) send(p amqp.Performative) { s.conn.out.frame(s.channel, p) }

// end stops all links.
func (s *session) end() {
	if s.ended {
		return
	}
	s.ended = true
	for _, l := range s.links {
		l.base().close(l)
	}
}

// fail ends the session with an error. The client answers with an end, which
// finds the session ended.
func (s *session) fail(err *amqp.Error) {
	if s.ended {
		return
	}
	s.conn.log.Warn("ending a session: the client broke the protocol", zap.Error(err))
	s.end()
	s.send(&amqp.End{Error: err})
}

// flow updates the windows and passes on what is for a link.
func (s *session) flow(f *amqp.Flow) {
	if s.ended {
		return
	}
	s.nextIncoming = f.NextOutgoingID
	var received uint32
	if f.NextIncomingID != nil {
		received = *f.NextIncomingID
	}
	// Part 2, section 2.5.6.
	s.remoteWindow = received + f.IncomingWindow - s.nextOutgoing
	for _, l := range s.links {
		if sender, ok := l.(*sender); ok {
			sender.signal()
		}
	}
	if f.Handle == nil {
		if f.Echo {
			s.send(s.state())
		}
		return
	}
	l, ok := s.links[*f.Handle]
	if !ok {
		s.fail(amqp.Errorf(condUnattached, "flow for handle %d, which is not attached", *f.Handle))
		return
	}
	if !l.base().closed {
		l.flow(f)
	}
}

// state is a flow with the session's own part filled in.
func (s *session) state() *amqp.Flow {
	next := s.nextIncoming
	return &amqp.Flow{
		NextIncomingID: &next, IncomingWindow: s.incomingWindow,
		NextOutgoingID: s.nextOutgoing, OutgoingWindow: sessionWindow,
	}
}

// countTransfer accounts for a transfer frame of the client's.
func (s *session) countTransfer() {
	s.nextIncoming++
	if s.incomingWindow > 0 {
		s.incomingWindow--
	}
	if s.incomingWindow < sessionWindow/2 {
		s.incomingWindow = sessionWindow
		s.send(s.state())
	}
}

// transfer takes one transfer frame. It is called with the connection's lock
// held and returns without.
func (s *session) transfer(t *amqp.Transfer, payload []byte) error {
	s.conn.server.stats.transfers.Add(1)
	s.conn.server.stats.bytesIn.Add(int64(len(payload)))
	l, ok := s.links[t.Handle]
	r, receives := l.(*receiver)
	switch {
	case s.ended:
	case !ok:
		s.fail(amqp.Errorf(condUnattached, "transfer for handle %d, which is not attached", t.Handle))
	case !receives:
		s.fail(amqp.Errorf(condInvalidField, "transfer for handle %d, on which the client receives", t.Handle))
	default:
		s.countTransfer()
		if message, complete := r.assemble(t, payload); complete {
			s.conn.mu.Unlock()
			r.node.accept(r, message)
			return nil
		}
	}
	s.conn.mu.Unlock()
	return nil
}

// detach ends a link: by the client's wish, or as its answer to ours.
func (s *session) detach(d *amqp.Detach) {
	l, ok := s.links[d.Handle]
	if !ok {
		if !s.ended {
			s.fail(amqp.Errorf(condUnattached, "detach of handle %d, which is not attached", d.Handle))
		}
		return
	}
	delete(s.links, d.Handle)
	s.conn.releaseHandles(1)
	if !l.base().closed {
		l.base().close(l)
		s.send(&amqp.Detach{Handle: d.Handle, Closed: d.Closed})
	}
}
