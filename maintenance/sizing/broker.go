package sizing

import "math"

// The tiers of Service Bus. Basic has neither topics nor duplicate detection.
const (
	Standard = "Standard"
	Premium  = "Premium"
)

// Limits of Service Bus.
const (
	// standardMessageBytes and premiumMessageBytes are what a link takes of one
	// message, properties included (azure-docs, service-bus-quotas.md). A Premium
	// entity can be told to take up to 100 MB, singly; that is not sized here.
	standardMessageBytes = 256 * KB
	premiumMessageBytes  = MB
	// StandardCredits are a namespace's a second: one for each message sent or
	// received, batched or not, and one for each filter that a topic evaluates
	// (azure-docs, service-bus-throttling.md).
	StandardCredits = 1000
	// unitBytesPerSecond is what Microsoft saw of one messaging unit, in plus out,
	// without sessions and duplicate detection, which cost more (azure-docs,
	// service-bus-performance-improvements.md: about 4 MB/s).
	unitBytesPerSecond = 4e6
)

// messagingUnits are the sizes of a Premium namespace (azure-docs,
// service-bus-premium-messaging.md).
var messagingUnits = []int{1, 2, 4, 8, 16}

// messageOverhead is what a message takes beside its body and its headers:
// MessageID, subject, the five application properties and their framing. Measured
// on the publisher's own batches: 874 bytes for 600 of payload.
const messageOverhead = 280

// messageBytes is a message on the wire. A header travels with its name and its
// type, and a traceparent twice.
func (w Workload) messageBytes() int {
	return w.PayloadBytes + 2*w.HeaderBytes + messageOverhead
}

// deliveries are those of one event: to a queue's receiver or to each subscription.
func (w Workload) deliveries() int { return max(1, w.Subscriptions) }

// creditsPerEvent are those of one event on Standard: sent, evaluated by each
// subscription's filter, received.
func (w Workload) creditsPerEvent() float64 {
	return float64(1 + w.Subscriptions + w.deliveries())
}

// brokerBytesPerSecond goes in and out of the namespace.
func (w Workload) brokerBytesPerSecond() float64 {
	return w.EventsPerSecond * float64(w.messageBytes()) * float64(1+w.deliveries())
}

// premium is how many units a Premium namespace needs, and into how many such
// namespaces the entities have to be split where 16 units are not enough.
func (w Workload) premium() (units, namespaces int) {
	need := w.brokerBytesPerSecond() / (unitBytesPerSecond * Utilization)
	for _, units := range messagingUnits {
		if need <= float64(units) {
			return units, 1
		}
	}
	most := messagingUnits[len(messagingUnits)-1]
	return most, int(math.Ceil(need / float64(most)))
}

// standardCarries says whether the Standard tier does.
func (w Workload) standardCarries() bool {
	return w.EventsPerSecond*w.creditsPerEvent() <= StandardCredits*Utilization && w.messageBytes() <= standardMessageBytes
}
