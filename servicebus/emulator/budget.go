package emulator

import (
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// What one connection may hold, so that a client cannot have the server keep ever
// more for it.
const (
	// maxHandles is how many links there may be (azure-sdk-for-net #25954).
	maxHandles = 4999
	// maxPartialBytes is for deliveries whose last frame is not there yet: two of
	// the largest messages there are. The service's own bound is not known.
	maxPartialBytes = 2 * premiumMaxMessageBytes
)

// holdings is what one connection holds. The connection's lock guards it.
type holdings struct {
	handles int
	partial int64 // bytes
	unused  *time.Timer
}

// holdHandle counts one more link, or says that there are too many. That the
// service ends the session then is believed.
func (s *session) holdHandle() bool {
	c := s.conn
	if c.held.handles >= maxHandles {
		s.fail(amqp.Errorf(broker.CondResourceLimit, "Cannot allocate more handles. The maximum number of handles is %d.", maxHandles))
		return false
	}
	c.held.handles++
	if c.held.unused != nil {
		c.held.unused.Stop()
	}
	return true
}

func (c *conn) releaseHandles(n int) {
	c.held.handles -= n
	c.watchUnused()
}

// holdPartial counts bytes of a delivery that is not complete.
func (r *receiver) holdPartial(n int64) {
	c := r.session.conn
	r.held += n
	c.held.partial += n
	if c.held.partial > maxPartialBytes {
		r.session.fail(amqp.Errorf(broker.CondResourceLimit, "(emulator: deliveries that are not complete take more than %d bytes)", maxPartialBytes))
	}
}

// releasePartial is for a delivery that is complete, or given up.
func (r *receiver) releasePartial() {
	r.session.conn.held.partial -= r.held
	r.held = 0
}

// watchUnused has a connection without links closed after a while.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-troubleshoot
func (c *conn) watchUnused() {
	timeout := c.server.cfg.ConnectionIdleTimeout
	if timeout == 0 || c.held.handles > 0 || c.closed {
		return
	}
	if c.held.unused != nil {
		c.held.unused.Reset(timeout)
		return
	}
	c.held.unused = time.AfterFunc(timeout, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.held.handles == 0 && !c.closed {
			c.dismiss(amqp.Errorf(condConnectionForced, "The connection was inactive for more than the allowed %d milliseconds "+
				"and is closed by container 'LinkTracker'.", timeout.Milliseconds()))
		}
	})
}

// dismiss closes the connection with an error. The client is not waited for.
func (c *conn) dismiss(err *amqp.Error) {
	c.out.frame(0, &amqp.Close{Error: err})
	c.hangUp()
}
