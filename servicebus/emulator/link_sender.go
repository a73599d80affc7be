package emulator

import (
	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// pumpBatch is how many messages a link takes at a time: enough to make the
// locks cheap, few enough to share the connection.
const pumpBatch = 256

// sender is the server's end of a link on which the client receives. A
// goroutine of its own, the pump, moves messages from the source to the
// client as credit and windows allow.
type sender struct {
	linkBase
	source source
	// replyTo is where a client that sends requests wants the replies: the
	// address of its end of this link.
	replyTo       string
	settled       bool // the client wants messages settled: they are gone once sent
	wake          chan struct{}
	attached      bool
	credit        uint32
	deliveryCount uint32
	drain         bool
}

// source is where a sender's messages come from. The connection's lock is held
// in every call.
type source interface {
	// next returns up to limit messages and does not wait for any.
	next(limit int) []outgoing
	// close says that no more will be asked for.
	close()
}

// outgoing is a message on its way to a client.
type outgoing struct {
	message []byte
	// token is the lock that the client settles, zero for a message that it
	// cannot settle.
	token amqp.UUID
}

// delivery is a message that the client has and has not settled.
type delivery struct {
	link  *sender
	token amqp.UUID
}

func (l *sender) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *sender) stop() {
	if l.source != nil {
		l.source.close()
	}
	l.signal()
}

// flow gives credit.
func (l *sender) flow(f *amqp.Flow) {
	if f.LinkCredit != nil {
		var seen uint32
		if f.DeliveryCount != nil {
			seen = *f.DeliveryCount
		}
		// Part 2, section 2.6.7; less than nothing is nothing.
		l.credit = seen + *f.LinkCredit - l.deliveryCount
		if int32(l.credit) < 0 {
			l.credit = 0
		}
	}
	l.drain = f.Drain
	if f.Echo {
		l.tellCredit()
	}
	l.signal()
}

func (l *sender) tellCredit() {
	f := l.session.state()
	handle, count, credit := l.handle, l.deliveryCount, l.credit
	f.Handle, f.DeliveryCount, f.LinkCredit, f.Drain = &handle, &count, &credit, l.drain
	l.session.send(f)
}

// pump runs until the link is closed.
func (l *sender) pump() {
	c := l.session.conn
	for range l.wake {
		c.out.waitForRoom()
		c.mu.Lock()
		if l.closed {
			c.mu.Unlock()
			return
		}
		l.send()
		c.mu.Unlock()
	}
}

// send moves what can be moved now, a batch at most; if there may be more, it
// wakes itself.
func (l *sender) send() {
	limit := min(int(l.credit), int(l.session.remoteWindow), pumpBatch)
	if limit > 0 {
		messages := l.source.next(limit)
		for _, m := range messages {
			l.transfer(m)
			if l.closed {
				return
			}
		}
		if len(messages) == limit {
			l.signal()
			return
		}
	}
	if l.drain && l.session.remoteWindow > 0 {
		// Nothing is left: use up the credit and say so.
		l.deliveryCount += l.credit
		l.credit = 0
		l.tellCredit()
		l.drain = false
	}
}

// transfer sends one message. Where it takes more frames than the window has
// room for, it lets go of the connection until there is.
func (l *sender) transfer(m outgoing) {
	s, c := l.session, l.session.conn
	id := s.nextDelivery
	s.nextDelivery++
	l.deliveryCount++
	l.credit--
	locked := m.token != amqp.UUID{}
	if locked {
		s.unsettled[id] = delivery{link: l, token: m.token}
	}
	tag := deliveryTag(m.token)
	var format uint32
	t := &amqp.Transfer{
		Handle: l.handle, DeliveryID: &id, DeliveryTag: tag[:], MessageFormat: &format, Settled: !locked,
	}
	c.server.stats.messagesOut.Add(1)
	l.touch()
	for rest := m.message; ; {
		c.out.append(func(b []byte) []byte {
			b, rest = amqp.AppendTransfer(b, s.channel, t, rest, c.peerFrame)
			return b
		})
		s.nextOutgoing++
		s.remoteWindow--
		if rest == nil {
			return
		}
		for s.remoteWindow == 0 && !l.closed {
			c.mu.Unlock()
			<-l.wake
			c.out.waitForRoom()
			c.mu.Lock()
		}
		if l.closed {
			l.signal() // for the pump, whose turn to end it is
			return
		}
	}
}

// deliveryTag is a lock token the way the service puts it on the wire: in the
// byte order of a .NET GUID, whose first three fields are little-endian.
func deliveryTag(token amqp.UUID) [16]byte {
	t := token
	t[0], t[1], t[2], t[3] = t[3], t[2], t[1], t[0]
	t[4], t[5] = t[5], t[4]
	t[6], t[7] = t[7], t[6]
	return t
}
