package emulator

import (
	"azsqloutbox/servicebus/emulator/internal/amqp"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// conditionDeadLetter is what a client rejects a message with to have it
// dead-lettered; any other rejection has the same effect.
const conditionDeadLetter amqp.Symbol = "com.microsoft:dead-letter"

// disposition settles what the client received. Answers to equal outcomes that
// follow each other go out as one range.
func (s *session) disposition(d *amqp.Disposition) {
	if s.ended || d.Role == amqp.RoleSender {
		return // what the client sent is settled by the server alone
	}
	if d.State == nil || d.State.Outcome == amqp.Received {
		return
	}
	if d.Last-d.First > 1<<20 {
		s.fail(amqp.Errorf(condInvalidField, "a disposition of deliveries %d to %d", d.First, d.Last))
		return
	}
	answer := amqp.Disposition{Role: amqp.RoleSender, Settled: true}
	open := false
	flush := func() {
		if open && !d.Settled {
			one := answer
			s.send(&one)
		}
		open = false
	}
	for id := d.First; ; id++ {
		if u, ok := s.unsettled[id]; ok {
			delete(s.unsettled, id)
			state := s.settle(u, d.State)
			if open && (answer.Last+1 != id || answer.State != state) {
				flush()
			}
			if !open {
				answer.First, answer.State, open = id, state, true
			}
			answer.Last = id
			if u.link.closed {
				open = false // its client is not to hear of it any more
			}
		}
		if id == d.Last {
			break
		}
	}
	flush()
}

// settle applies an outcome and returns what the client is to be told.
func (s *session) settle(u delivery, state *amqp.State) *amqp.State {
	source, ok := u.link.source.(*queueSource)
	if !ok {
		return state
	}
	how, err := settlement(state)
	if err == nil {
		err = source.settle(u.token, how)
	}
	if err != nil {
		return &amqp.State{Outcome: amqp.Rejected, Error: asError(err)}
	}
	s.conn.server.stats.settled.Add(1)
	if state.Outcome == amqp.Rejected {
		// Echoing the client's error would make it look like one of ours.
		return &amqp.State{Outcome: amqp.Rejected}
	}
	return state
}

// settlement is what an AMQP outcome means to Service Bus.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-protocol-guide
func settlement(state *amqp.State) (broker.Settlement, error) {
	switch state.Outcome {
	case amqp.Accepted:
		return broker.Settlement{Verb: broker.Complete}, nil
	case amqp.Released:
		return broker.Settlement{Verb: broker.Release}, nil
	case amqp.Modified:
		if state.UndeliverableHere {
			return broker.Settlement{Verb: broker.Defer, Properties: state.Annotations}, nil
		}
		return broker.Settlement{Verb: broker.Abandon, Properties: state.Annotations}, nil
	case amqp.Rejected:
		return broker.Settlement{Verb: broker.DeadLetter, Properties: deadLetterProperties(state.Error)}, nil
	default:
		return broker.Settlement{}, amqp.Errorf(broker.CondNotImplemented, "transactional delivery states are not modelled")
	}
}

// deadLetterProperties takes reason and description, and what else there is,
// from the rejection.
func deadLetterProperties(err *amqp.Error) map[string]any {
	if err == nil {
		return nil
	}
	if err.Condition == conditionDeadLetter {
		return err.Info
	}
	return map[string]any{
		broker.PropDeadLetterReason:      string(err.Condition),
		broker.PropDeadLetterDescription: err.Description,
	}
}
