package emulator

import (
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// entityNode takes what is sent to a queue or topic.
type entityNode struct{ *node }

func (n entityNode) accept(r *receiver, m incoming) {
	c := r.session.conn
	messages, err := n.parse(c.server, m)
	if err != nil {
		r.settle(m, asError(err), c.server.cfg.RoundTrip)
		return
	}
	e := c.server.faults.onSend(n.path, messages)
	// Sent before the client saw the detach.
	if n.deleted.Load() {
		e.detach = notFound(n.path)
	} else if disabled := n.sendDisabled(); disabled != nil {
		e.detach = disabled
	}
	switch {
	case e.dropFirst:
		c.kill()
		return
	case e.expire:
		c.expireTokens()
		return
	case e.detach != nil:
		c.mu.Lock()
		r.detachWith(r, e.detach)
		c.mu.Unlock()
		return
	case e.swallow:
		return
	}
	refused := e.reject
	if refused == nil {
		refused = n.store(c.server, m, messages)
	}
	switch {
	case e.dropLast:
		c.kill()
	case e.silent:
	case e.dropReply:
		time.AfterFunc(c.server.cfg.RoundTrip+e.delay, func() {
			r.settle(m, refused, 0)
			c.hangUp()
		})
	default:
		r.settle(m, refused, c.server.cfg.RoundTrip+e.delay)
	}
}

// store keeps the messages of a delivery: all or, with an error, none.
func (n entityNode) store(server *Server, m incoming, messages []*broker.Message) *amqp.Error {
	count := int64(len(messages))
	if err := server.throttle.spend(len(messages) * (1 + n.filters)); err != nil {
		return err
	}
	if err := server.enqueue(n.node, messages); err != nil {
		return asError(err)
	}
	server.stats.messagesIn.Add(count)
	if m.format == amqp.BatchFormat {
		server.stats.batches.Add(1)
	}
	return nil
}

func (n entityNode) parse(server *Server, m incoming) ([]*broker.Message, error) {
	size := int64(len(m.message))
	switch m.format {
	case 0:
		if size > n.maxMessage {
			return nil, amqp.Errorf(condMessageSize, "a message of %d bytes, where at most %d are allowed", size, n.maxMessage)
		}
		one, err := broker.Parse(m.message)
		return []*broker.Message{one}, err
	case amqp.BatchFormat:
		if limit, _ := server.cfg.Tier.batchLimit(); size > limit {
			return nil, amqp.Errorf(condMessageSize, "a batch of %d bytes, where at most %d are allowed", size, limit)
		}
		return broker.ParseBatch(m.message, maxBatchMessages)
	default:
		return nil, amqp.Errorf(broker.CondNotImplemented, "message format 0x%08x is not known", m.format)
	}
}
