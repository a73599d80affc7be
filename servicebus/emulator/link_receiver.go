package emulator

import (
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// receiver is the server's end of a link on which the client sends.
type receiver struct {
	linkBase
	node          acceptor
	maxMessage    int64
	credit        uint32
	deliveryCount uint32
	granting      bool // credit comes later, by a fault

	partial   []byte // of the delivery under way
	held      int64  // bytes that the connection counts for it
	underWay  bool
	current   incoming
	usualSize int // of the last delivery: the next may be like it
}

// incoming is one complete delivery from a client.
type incoming struct {
	id      uint32
	format  uint32
	settled bool
	message []byte
}

func (r *receiver) stop() { r.forget() }

// forget ends the delivery under way.
func (r *receiver) forget() {
	r.underWay, r.partial = false, nil
	r.releasePartial()
}

// flow from a client that sends tells what it has used; only the question for
// an answer matters here.
func (r *receiver) flow(f *amqp.Flow) {
	if f.Echo {
		r.tellCredit()
	}
}

// grant tops the credit up once half of it is used.
func (r *receiver) grant() {
	if r.credit > linkCredit/2 || r.granting {
		return
	}
	if _, sends := r.node.(entityNode); sends {
		if wait, slow := r.session.conn.server.faults.slowCredit(r.path, r.credit == 0); slow {
			r.grantOne(wait)
			return
		}
	}
	r.credit = linkCredit
	r.tellCredit()
}

// grantOne gives a link without credit one, after a while.
func (r *receiver) grantOne(wait time.Duration) {
	if r.credit > 0 {
		return
	}
	r.granting = true
	time.AfterFunc(wait, func() {
		c := r.session.conn
		c.mu.Lock()
		defer c.mu.Unlock()
		r.granting = false
		if r.closed || r.session.ended {
			return
		}
		r.credit = 1
		r.tellCredit()
	})
}

func (r *receiver) tellCredit() {
	f := r.session.state()
	handle, count, credit := r.handle, r.deliveryCount, r.credit
	f.Handle, f.DeliveryCount, f.LinkCredit = &handle, &count, &credit
	r.session.send(f)
}

// assemble adds a transfer frame to the delivery under way and returns it once
// it is complete.
func (r *receiver) assemble(t *amqp.Transfer, payload []byte) (m incoming, complete bool) {
	if r.closed {
		return m, false // on its way before the client saw the detach
	}
	r.touch()
	if !r.underWay {
		if r.credit == 0 {
			r.detachWith(r, amqp.Errorf(condTransferLimit, "a transfer without credit"))
			return m, false
		}
		if t.DeliveryID == nil {
			r.detachWith(r, amqp.Errorf(condInvalidField, "the first transfer of a delivery has no delivery-id"))
			return m, false
		}
		if _, sends := r.node.(entityNode); sends && r.session.conn.server.faults.onTransfer(r.path) {
			r.session.conn.kill()
			return m, false
		}
		r.underWay = true
		r.current = incoming{id: *t.DeliveryID}
		if t.MessageFormat != nil {
			r.current.format = *t.MessageFormat
		}
		if !t.More {
			r.partial = make([]byte, 0, len(payload))
		} else {
			r.partial = make([]byte, 0, max(r.usualSize, len(payload)))
		}
	}
	if t.Aborted {
		r.forget()
		return m, false
	}
	r.current.settled = r.current.settled || t.Settled
	if size := int64(len(r.partial) + len(payload)); size > r.maxMessage {
		r.detachWith(r, amqp.Errorf(condMessageSize, "The received message (delivery-id:%d, size:%d bytes) exceeds the limit "+
			"(%d bytes) currently allowed on the link.", r.current.id, size, r.maxMessage))
		return m, false
	}
	r.partial = append(r.partial, payload...)
	if t.More {
		r.holdPartial(int64(len(payload)))
		return m, false
	}
	m = r.current
	m.message = r.partial
	r.usualSize = len(r.partial)
	r.forget()
	r.deliveryCount++
	r.credit--
	r.grant()
	return m, true
}

// settle answers a delivery after a delay: accepted, or rejected with err.
func (r *receiver) settle(m incoming, err *amqp.Error, after time.Duration) {
	if m.settled {
		return
	}
	if after > 0 {
		time.AfterFunc(after, func() { r.settle(m, err, 0) })
		return
	}
	state := &amqp.State{Outcome: amqp.Accepted}
	if err != nil {
		state = &amqp.State{Outcome: amqp.Rejected, Error: err}
	}
	c := r.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.closed || r.session.ended {
		return
	}
	r.session.send(&amqp.Disposition{
		Role: amqp.RoleReceiver, First: m.id, Last: m.id, Settled: true, State: state,
	})
}
