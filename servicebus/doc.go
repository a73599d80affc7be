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
// entity drops it where its duplicate detection is on.
//
// A known limit: a delivery that the broker ends with the released or modified
// state is reported by azservicebus as a success, and nothing of it can be seen
// through that library (go-amqp's Sender.Send turns only the rejected state
// into an error). Service Bus itself accepts or rejects.
package servicebus
