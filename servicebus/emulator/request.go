package emulator

import (
	"azsqloutbox/servicebus/emulator/internal/amqp"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// request is a message to $cbs or to a $management node.
type request struct {
	id         []byte // encoded, given back as the correlation id
	replyTo    string
	properties map[string]any
	body       any
}

func parseRequest(message []byte) (request, error) {
	var q request
	sections := amqp.NewSections(message)
	for {
		section, ok, err := sections.Next()
		if err != nil || !ok {
			return q, err
		}
		r := amqp.NewReader(section.Value)
		switch section.Descriptor {
		case amqp.DescProperties:
			var p amqp.Properties
			p, err = amqp.DecodeProperties(section.Value)
			q.id, q.replyTo = p.MessageID, p.ReplyTo
		case amqp.DescApplicationProperties:
			var v any
			v, err = r.Value()
			q.properties, _ = v.(map[string]any)
		case amqp.DescData, amqp.DescSequence, amqp.DescValue:
			q.body, err = r.Value()
		}
		if err != nil {
			return q, err
		}
	}
}

// text is an application property as text, empty where it is none.
func (q *request) text(name string) string {
	switch v := q.properties[name].(type) {
	case string:
		return v
	case amqp.Symbol:
		return string(v)
	default:
		return ""
	}
}

// reply is the answer to a request.
type reply struct {
	properties map[string]any
	body       any
}

func (p *reply) append(b, correlationID []byte) []byte {
	b = amqp.AppendReplyProperties(b, correlationID)
	b = amqp.AppendValue(amqp.AppendDescriptor(b, amqp.DescApplicationProperties), p.properties)
	return amqp.AppendValue(amqp.AppendDescriptor(b, amqp.DescValue), p.body)
}

// serve accepts a request delivery and has answer reply to it.
func serve(r *receiver, m incoming, answer func(*request) reply) {
	q, err := parseRequest(m.message)
	if err != nil {
		r.settle(m, amqp.Errorf(broker.CondDecode, "%s", err), 0)
		return
	}
	p := answer(&q)
	c := r.session.conn
	c.mu.Lock()
	to := r.session.replyLink(r.path, q.replyTo)
	if to != nil {
		to.add(p.append(nil, q.id))
	}
	c.mu.Unlock()
	if to == nil {
		r.settle(m, amqp.Errorf(broker.CondNotAllowed, "no receiver on '%s' for the reply to %q", r.path, q.replyTo), 0)
		return
	}
	r.settle(m, nil, 0)
}

// replyLink finds the link for a reply. Clients name it by the address of
// their own end (Go) or by the link's name (JavaScript); some do not name it,
// and then the session's only receiver on the node is meant (Python).
func (s *session) replyLink(path, replyTo string) *replies {
	var only *replies
	candidates := 0
	for _, l := range s.links {
		sender, ok := l.(*sender)
		if !ok || sender.closed || sender.path != path {
			continue
		}
		box, ok := sender.source.(*replies)
		if !ok {
			continue
		}
		if replyTo != "" && (sender.replyTo == replyTo || sender.name == replyTo) {
			return box
		}
		only = box
		candidates++
	}
	if candidates == 1 {
		return only
	}
	return nil
}
