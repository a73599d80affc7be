// Package servicebus publishes outbox events to Azure Service Bus.
//
// A Publisher implements worker.Publisher over azservicebus. An event finds its
// queue or topic by its type (Routes), becomes a message whose MessageID is the
// same on every attempt (MessageID), and travels in a batch with others of the
// same entity, session and partition key. Only a confirmation by the broker
// makes it Sent; everything else is sorted by what the broker said (the table
// in errors.go): a message that it will never take is Refused, one that failed
// on its own is Failed, and trouble of the destination leaves its events Unsent
// with a *DestinationError, at no cost to them.
//
// Delivery is at least once. A confirmation that got lost leaves an event
// Unsent although the broker has it; the same MessageID goes out again, and the
// entity drops it where its duplicate detection is on. Nothing here cuts off a
// send that is well under way, but azservicebus does: it closes the connection,
// with the sends of all entities on it, when the broker refuses one message with
// amqp:internal-error, amqp:connection:forced or a condition that it does not
// know (internal/errors.go, GetRecoveryKind). And it sends again by itself what
// had no answer: at once after a detach, and once more after some 0.3 s, when the
// link or the connection is back (internal/amqpLinks.go, Retry). The first of the
// two cannot be switched off, the second only together with the pauses between
// its attempts to renew a token; see retryOptions. So a message that nobody
// suspects yet does this to the sends of others, twice at most: then its delivery
// goes on with a connection of its own (quarantine.go).
//
// A known limit: a delivery that the broker ends with the released or modified
// state is reported by azservicebus as a success, and nothing of it can be seen
// through that library (go-amqp's Sender.Send turns only the rejected state
// into an error). Service Bus itself accepts or rejects.
package servicebus
