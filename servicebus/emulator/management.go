package emulator

import (
	"errors"
	"net/http"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// managementNode answers requests about one entity.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-request-response
type managementNode struct{ *node }

// The names of a sender's operations.
const (
	scheduleOperation = "com.microsoft:schedule-message"
	cancelOperation   = "com.microsoft:cancel-scheduled-message"
)

// sendOperations are a sender's, on a queue or a topic.
var sendOperations = map[string]func(broker.Destination, map[string]any) (any, error){
	scheduleOperation: scheduleMessage,
	cancelOperation:   cancelScheduled,
}

// receiveOperations are a receiver's, on a queue or a subscription.
var receiveOperations = map[string]func(*broker.Queue, map[string]any) (any, error){
	"com.microsoft:peek-message":               peekMessage,
	"com.microsoft:renew-lock":                 renewLock,
	"com.microsoft:update-disposition":         updateDisposition,
	"com.microsoft:receive-by-sequence-number": receiveBySequence,
	"com.microsoft:renew-session-lock":         renewSessionLock,
	"com.microsoft:get-session-state":          getSessionState,
	"com.microsoft:set-session-state":          setSessionState,
}

// errNothing makes a reply without content: there are no messages.
var errNothing = errors.New("no content")

func (n managementNode) accept(r *receiver, m incoming) {
	serve(r, m, func(q *request) reply {
		body, err := n.perform(r.session.conn, q)
		return managementReply(body, err)
	})
}

func (n managementNode) perform(c *conn, q *request) (any, error) {
	name := q.text("operation")
	send, sends := sendOperations[name]
	receive, receives := receiveOperations[name]
	needed := RightListen
	switch {
	case !sends && !receives:
		return nil, amqp.Errorf(broker.CondNotImplemented, "the management operation %q is not modelled", name)
	case receives && n.source == nil:
		return nil, amqp.Errorf(broker.CondNotImplemented, "%q on a topic is not modelled", name)
	case sends && n.destination == nil:
		// The condition is believed, not known.
		return nil, amqp.Errorf(broker.CondNotAllowed, "messages cannot be sent to '%s'", n.path)
	case sends:
		needed = RightSend
	}
	if err := c.allows(n.path+managementSuffix, needed); err != nil {
		return nil, err
	}
	if err := n.forbidden(name); err != nil {
		return nil, err
	}
	arguments, ok := q.body.(map[string]any)
	if !ok {
		return nil, badArgument("body", q.body)
	}
	if sends {
		return send(n.destination, arguments)
	}
	return receive(n.source, arguments)
}

// managementReply has the names that the service uses on $management, which
// are not those of $cbs.
func managementReply(body any, err error) reply {
	switch {
	case err == nil:
		return reply{body: body, properties: map[string]any{
			"statusCode": int32(http.StatusOK), "statusDescription": "OK",
		}}
	case errors.Is(err, errNothing):
		return reply{properties: map[string]any{
			"statusCode": int32(http.StatusNoContent), "statusDescription": "No content",
		}}
	default:
		e := asError(err)
		return reply{properties: map[string]any{
			"statusCode":        int32(statusOf(e.Condition)),
			"statusDescription": e.Description,
			"errorCondition":    e.Condition,
		}}
	}
}

func statusOf(condition amqp.Symbol) int {
	switch condition {
	case broker.CondNotImplemented:
		return http.StatusNotImplemented
	case broker.CondNotFound, broker.CondMessageNotFound:
		return http.StatusNotFound
	case broker.CondMessageLockLost, broker.CondSessionLockLost:
		return http.StatusGone
	case broker.CondResourceLimit, condDisabled:
		return http.StatusForbidden
	case condUnauthorized:
		return http.StatusUnauthorized
	case broker.CondArgument, broker.CondDecode, broker.CondNotAllowed:
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}

func badArgument(name string, value any) error {
	return amqp.Errorf(broker.CondArgument, "%s: %T is not what belongs there", name, value)
}

// argument reads one of the arguments in the type it must have.
func argument[T any](arguments map[string]any, name string) (T, error) {
	v, ok := arguments[name].(T)
	if !ok {
		return v, badArgument(name, arguments[name])
	}
	return v, nil
}

// integer reads an integer argument of any width: clients differ in what they
// encode a small number as.
func integer(arguments map[string]any, name string) (int64, error) {
	switch v := arguments[name].(type) {
	case int32:
		return int64(v), nil
	case int64:
		return v, nil
	case uint32:
		return int64(v), nil
	case uint64:
		return int64(v), nil
	default:
		return 0, badArgument(name, v)
	}
}

// argumentList reads an argument that is several values: they come as an array, or from some clients as a list.
func argumentList[T any](arguments map[string]any, name string) ([]T, error) {
	list, err := argument[[]any](arguments, name)
	if err != nil {
		return nil, err
	}
	out := make([]T, len(list))
	for i, e := range list {
		v, ok := e.(T)
		if !ok {
			return nil, badArgument(name, e)
		}
		out[i] = v
	}
	return out, nil
}

// encoded puts messages into a reply.
func encoded(found []broker.Delivery) (any, error) {
	if len(found) == 0 {
		return nil, errNothing
	}
	messages := make([]any, len(found))
	for i := range found {
		message, err := found[i].Append(nil)
		if err != nil {
			return nil, err
		}
		entry := map[string]any{"message": message}
		if token := found[i].Token; token != (amqp.UUID{}) {
			entry["lock-token"] = token
		}
		messages[i] = entry
	}
	return map[string]any{"messages": messages}, nil
}

func renewLock(q *broker.Queue, arguments map[string]any) (any, error) {
	tokens, err := argumentList[amqp.UUID](arguments, "lock-tokens")
	if err != nil {
		return nil, err
	}
	until := make([]time.Time, len(tokens))
	for i, token := range tokens {
		if until[i], err = q.Renew(token); err != nil {
			return nil, err
		}
	}
	return map[string]any{"expirations": until}, nil
}

func updateDisposition(q *broker.Queue, arguments map[string]any) (any, error) {
	tokens, err := argumentList[amqp.UUID](arguments, "lock-tokens")
	if err != nil {
		return nil, err
	}
	status, err := argument[string](arguments, "disposition-status")
	if err != nil {
		return nil, err
	}
	how := broker.Settlement{}
	how.Properties, _ = arguments["properties-to-modify"].(map[string]any)
	switch status {
	case "completed":
		how.Verb = broker.Complete
	case "abandoned":
		how.Verb = broker.Abandon
	case "defered": // spelled so on the wire
		how.Verb = broker.Defer
	case "suspended":
		how.Verb = broker.DeadLetter
		if how.Properties == nil {
			how.Properties = map[string]any{}
		}
		how.Properties[broker.PropDeadLetterReason], _ = arguments["deadletter-reason"].(string)
		how.Properties[broker.PropDeadLetterDescription], _ = arguments["deadletter-description"].(string)
	default:
		return nil, amqp.Errorf(broker.CondNotImplemented, "the disposition status %q is not modelled", status)
	}
	for _, token := range tokens {
		if err := q.Settle(token, how); err != nil {
			return nil, err
		}
	}
	return map[string]any{}, nil
}
