package servicebus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

// Kind says what is wrong with a destination.
type Kind string

// The kinds of trouble that a DestinationError names.
const (
	KindThrottled      Kind = "throttled"       // the broker asks for fewer requests
	KindTimeout        Kind = "timeout"         // no answer in time
	KindConnection     Kind = "connection lost" // no connection, or it broke
	KindBroker         Kind = "broker error"    // an internal error of the broker
	KindEntityFull     Kind = "entity full"     // its size or another quota is used up
	KindEntityDisabled Kind = "entity disabled"
	KindEntityMissing  Kind = "entity missing"
	KindUnauthorized   Kind = "unauthorized"
	KindNotAllowed     Kind = "not allowed" // say, a session id is missing
	KindUnknown        Kind = "unknown"     // a condition that the table does not hold
)

// DestinationError is why events are Unsent through no fault of their own: the
// state of the queue or topic, or of the way to it.
type DestinationError struct {
	Entity string
	// Condition is the AMQP error condition, or azservicebus's code where that
	// library hides the condition; empty where there is neither.
	Condition string
	Kind      Kind
	// Err is what azservicebus returned, without secrets.
	Err error

	doubtful bool
}

// Doubtful says whether the trouble may be one message's instead of the
// destination's: it was sent, and no answer came.
func (e *DestinationError) Doubtful() bool { return e.doubtful }

func (e *DestinationError) Error() string {
	return fmt.Sprintf("send to %q: %s: %v", e.Entity, e.Kind, e.Err)
}

func (e *DestinationError) Unwrap() error { return e.Err }

// ErrClosed is why events are Unsent that were given to a closed Publisher.
var ErrClosed = errors.New("publisher is closed")

// action is what a failed send calls for.
type action uint8

const (
	giveBack action = iota // the destination's trouble, and waiting is not for us
	retry                  // the destination's trouble, and likely to pass
	split                  // too large by the broker's opinion
	bisect                 // may be one message's own fault: find it
)

// policy is the table's answer for one condition.
type policy struct {
	kind   Kind
	action action
}

// conditions is the one place that says what an AMQP error condition means for
// the events of a send. Sources: amqp is AMQP 1.0, part 2, section 2.8, ms is
// azservicebus internal/errors.go (amqpConditionsToRecoveryKind), exceptions is
// azure-docs, service-bus-messaging-exceptions.md. What is not listed is taken
// for a possible fault of a message, which bisection then confirms or not.
var conditions = map[amqp.ErrCond]policy{
	"com.microsoft:server-busy":         {KindThrottled, retry},         // ms; exceptions: wait, code 50009
	"com.microsoft:timeout":             {KindTimeout, retry},           // ms
	"com.microsoft:operation-cancelled": {KindBroker, retry},            // ms
	amqp.ErrCondInternalError:           {KindBroker, retry},            // ms: a new connection
	amqp.ErrCondConnectionForced:        {KindConnection, retry},        // ms; idle for 5 minutes (service-bus-amqp-troubleshoot.md)
	amqp.ErrCondDetachForced:            {KindConnection, retry},        // ms; idle for 10 minutes (same page)
	amqp.ErrCondTransferLimitExceeded:   {KindConnection, retry},        // amqp: sent above the link's credit
	amqp.ErrCondResourceLimitExceeded:   {KindEntityFull, giveBack},     // ms; exceptions: QuotaExceeded
	"com.microsoft:entity-disabled":     {KindEntityDisabled, giveBack}, // ms
	amqp.ErrCondNotFound:                {KindEntityMissing, giveBack},  // ms
	amqp.ErrCondResourceDeleted:         {KindEntityMissing, giveBack},  // amqp: deleted while in use
	amqp.ErrCondUnauthorizedAccess:      {KindUnauthorized, giveBack},   // ms
	"com.microsoft:auth-failed":         {KindUnauthorized, giveBack},   // azure-sdk-for-python, NO_RETRY_ERRORS
	amqp.ErrCondMessageSizeExceeded:     {KindNotAllowed, split},        // ms
	amqp.ErrCondNotAllowed:              {KindNotAllowed, bisect},       // ms; one message's fault or the whole entity's
	"com.microsoft:argument-error":      {KindUnknown, bisect},          // azure-sdk-for-python, NO_RETRY_ERRORS
}

// codes serves where azservicebus hides the condition.
var codes = map[azservicebus.Code]policy{
	azservicebus.CodeUnauthorizedAccess: {KindUnauthorized, giveBack},
	azservicebus.CodeNotFound:           {KindEntityMissing, giveBack},
	azservicebus.CodeTimeout:            {KindTimeout, retry},
	azservicebus.CodeConnectionLost:     {KindConnection, retry},
	azservicebus.CodeClosed:             {KindConnection, retry}, // closed under us: a new sender serves
}

// failure is a classified error of one attempt to open a link or to send.
type failure struct {
	policy
	condition string
	err       error
	// nothingSent is true when no transfer had left: the link could not be opened,
	// or the call's turn did not come in time. No message can be to blame.
	nothingSent bool
	// stale is true when the sender had served before and is dead now: what it
	// said may be old, and meant for another send (go-amqp reports a detach at
	// the next use), so the first such failure is tried again at once.
	stale bool
}

// doubtful says whether one message may be to blame although nothing says so: it
// was sent over a link that works, and the answer did not come.
func (f *failure) doubtful() bool {
	return !f.nothingSent && (f.kind == KindTimeout || f.kind == KindConnection || f.kind == KindBroker)
}

// repeated says whether azservicebus has sent it twice before it failed, and replaced
// the connection or the link in between: what it says then is not old.
func (f *failure) repeated() bool {
	return !f.nothingSent && (f.kind == KindConnection || f.kind == KindBroker || f.kind == KindUnknown)
}

// classify says what err, from opening a link or from sending, means.
func classify(err error) failure {
	if errors.Is(err, azservicebus.ErrMessageTooLarge) {
		return failure{policy: conditions[amqp.ErrCondMessageSizeExceeded], condition: string(amqp.ErrCondMessageSizeExceeded), err: err}
	}
	if said, ok := readBroker(err); ok {
		p, known := conditions[said.condition]
		if !known {
			p = policy{KindUnknown, bisect}
		}
		return failure{policy: p, condition: string(said.condition), err: said}
	}
	var coded *azservicebus.Error
	if errors.As(err, &coded) {
		if p, known := codes[coded.Code]; known {
			return failure{policy: p, condition: string(coded.Code), err: err}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errHung) {
		return failure{policy: policy{KindTimeout, retry}, err: err}
	}
	// azidentity's errors carry this marker: no token, so no access.
	var credential interface{ NonRetriable() }
	if errors.As(err, &credential) {
		return failure{policy: policy{KindUnauthorized, giveBack}, err: err}
	}
	return failure{policy: policy{KindConnection, retry}, err: err}
}

// brokerError is what the broker said, in words for a person.
type brokerError struct {
	condition   amqp.ErrCond
	description string
	err         error
}

func (e *brokerError) Error() string {
	if e.description == "" {
		return string(e.condition)
	}
	return fmt.Sprintf("%s (%s)", e.description, e.condition)
}

func (e *brokerError) Unwrap() error { return e.err }

// readBroker finds the broker's own words in err.
//
// azservicebus.Error has no Unwrap, and it hides every condition that its table
// does not list, as well as internal-error, behind CodeConnectionLost. Its text
// still holds the condition as go-amqp prints it. That text is no API: where it
// should change, the class becomes the harmless one (connection lost: Unsent),
// and the tests of this package fail.
func readBroker(err error) (*brokerError, bool) {
	var remote *amqp.Error
	if errors.As(err, &remote) {
		return &brokerError{condition: remote.Condition, description: remote.Description, err: err}, true
	}
	var coded *azservicebus.Error
	if !errors.As(err, &coded) {
		return nil, false
	}
	_, text, found := strings.Cut(coded.Error(), "*Error{Condition: ")
	if !found {
		return nil, false
	}
	condition, rest, _ := strings.Cut(text, ", Description: ")
	description := rest
	if end := strings.LastIndex(rest, ", Info: "); end >= 0 {
		description = rest[:end]
	}
	return &brokerError{condition: amqp.ErrCond(condition), description: description, err: err}, true
}

// killsSender says whether the sender that returned err must be replaced. A
// sender is dead for good after a detach with a condition that azservicebus
// does not recover from (fatal ones, server-busy, timeout): it returns the old
// error for ever. Only a plain rejection of the transfer leaves the link alive;
// replacing one more sender than needed costs a round trip.
func killsSender(err error) bool {
	var (
		remote  *amqp.Error
		link    *amqp.LinkError
		session *amqp.SessionError
		conn    *amqp.ConnError
	)
	rejected := errors.As(err, &remote) && !errors.As(err, &link) && !errors.As(err, &session) && !errors.As(err, &conn)
	return !rejected
}
