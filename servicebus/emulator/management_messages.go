package emulator

import (
	"azsqloutbox/servicebus/emulator/internal/amqp"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// peekLimit bounds what one peek returns, as the service does with about so
// many messages.
const peekLimit = 250

func peekMessage(q *broker.Queue, arguments map[string]any) (any, error) {
	from, err := integer(arguments, "from-sequence-number")
	if err != nil {
		return nil, err
	}
	count, err := integer(arguments, "message-count")
	if err != nil {
		return nil, err
	}
	if count < 1 {
		return nil, amqp.Errorf(broker.CondArgument, "message-count: %d is less than 1", count)
	}
	var session *string
	if id, ok := arguments["session-id"].(string); ok {
		session = &id
	}
	return encoded(q.Peek(from, int(min(count, peekLimit)), session))
}

func receiveBySequence(q *broker.Queue, arguments map[string]any) (any, error) {
	sequences, err := argumentList[int64](arguments, "sequence-numbers")
	if err != nil {
		return nil, err
	}
	mode, err := integer(arguments, "receiver-settle-mode")
	if err != nil {
		return nil, err
	}
	var session *broker.Session
	if id, ok := arguments["session-id"].(string); ok {
		if session = q.Held(id); session == nil {
			return nil, amqp.Errorf(broker.CondSessionLockLost, "the session %q is not locked", id)
		}
	}
	found, err := q.TakeDeferred(sequences, session, mode == int64(amqp.ReceiverFirst))
	if err != nil {
		return nil, err
	}
	return encoded(found)
}

func scheduleMessage(d broker.Destination, arguments map[string]any) (any, error) {
	entries, err := argumentList[map[string]any](arguments, "messages")
	if err != nil {
		return nil, err
	}
	messages := make([]*broker.Message, len(entries))
	for i, entry := range entries {
		raw, err := argument[[]byte](entry, "message")
		if err != nil {
			return nil, err
		}
		if messages[i], err = broker.Parse(raw); err != nil {
			return nil, err
		}
	}
	if len(messages) == 0 {
		return nil, amqp.Errorf(broker.CondArgument, "messages: none")
	}
	sequences, err := d.EnqueueNumbered(messages)
	if err != nil {
		return nil, err
	}
	return map[string]any{"sequence-numbers": sequences}, nil
}

func cancelScheduled(d broker.Destination, arguments map[string]any) (any, error) {
	sequences, err := argumentList[int64](arguments, "sequence-numbers")
	if err != nil {
		return nil, err
	}
	return map[string]any{}, d.Cancel(sequences)
}
