// Package broker is the part of the embedded Service Bus that keeps messages:
// queues, topics and their subscriptions, with locks, sessions, scheduling,
// expiry, dead-lettering and duplicate detection. It knows nothing of
// connections; what it is given and what it hands out are encoded AMQP
// messages.
//
// Everything here may be used from many goroutines at once. Times are plain
// time.Now, so tests run it in a synctest bubble.
package broker

import (
	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// Error conditions, by the names that the service uses.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-troubleshoot
const (
	CondNotFound           amqp.Symbol = "amqp:not-found"
	CondNotAllowed         amqp.Symbol = "amqp:not-allowed"
	CondNotImplemented     amqp.Symbol = "amqp:not-implemented"
	CondResourceLimit      amqp.Symbol = "amqp:resource-limit-exceeded"
	CondDecode             amqp.Symbol = "amqp:decode-error"
	CondInternal           amqp.Symbol = "amqp:internal-error"
	CondMessageLockLost    amqp.Symbol = "com.microsoft:message-lock-lost"
	CondSessionLockLost    amqp.Symbol = "com.microsoft:session-lock-lost"
	CondSessionUnavailable amqp.Symbol = "com.microsoft:session-cannot-be-locked"
	CondMessageNotFound    amqp.Symbol = "com.microsoft:message-not-found"
	CondArgument           amqp.Symbol = "com.microsoft:argument-error"
)

// Destination is what messages are sent to.
type Destination interface {
	// Enqueue stores all of messages or, with an error, none of them. The
	// broker owns them afterwards. An error is an [*amqp.Error].
	Enqueue(messages []*Message) error
	// EnqueueNumbered is Enqueue, and returns the number that each message has
	// there, 0 for a duplicate that was dropped.
	EnqueueNumbered(messages []*Message) ([]int64, error)
	// Cancel removes scheduled messages by their numbers: all or, with an error,
	// none of them.
	Cancel(sequences []int64) error
	// SetMaxBytes changes the space there is.
	SetMaxBytes(int64)
	MaxBytes() int64
	// UsedBytes is how much of it is in use.
	UsedBytes() int64
}

// DeadLetterSuffix is the sub-queue behind every queue and subscription.
const DeadLetterSuffix = "/$deadletterqueue"
