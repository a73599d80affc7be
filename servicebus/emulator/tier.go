package emulator

// Tier is a pricing tier of Service Bus, as far as a client sees it: by the
// limits on a link.
type Tier uint8

const (
	// Standard takes 256 KB, a single message and a batch alike.
	Standard Tier = iota
	// Premium takes batches of 1 MB, announced by a property of the link, and
	// single messages of 1 MB, or up to 100 MB where the entity says so.
	Premium
)

// Limits of the tiers.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-premium-messaging#large-messages-support
const (
	standardMessageBytes   = 256 << 10
	premiumMessageBytes    = 1 << 20
	premiumMaxMessageBytes = 100 << 20
	premiumBatchBytes      = 1 << 20

	// maxConnections is the quota of AMQP connections to a namespace.
	maxConnections = 5000

	// maxBatchMessages is not documented, but enforced (azure-service-bus #397).
	maxBatchMessages = 4500
)

// StandardCreditsPerSecond is what a namespace of the Standard tier may spend.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-throttling
const StandardCreditsPerSecond = 1000

// propMaxBatch is the link property that tells the limit of a batch where it
// is another than that of a message.
const propMaxBatch = "com.microsoft:max-message-batch-size"

func (t Tier) String() string {
	if t == Premium {
		return "Premium"
	}
	return "Standard"
}

// messageLimit is the default limit of a single message.
func (t Tier) messageLimit() int64 {
	if t == Premium {
		return premiumMessageBytes
	}
	return standardMessageBytes
}

// batchLimit is the limit of a batch, and whether the link announces it.
func (t Tier) batchLimit() (limit int64, announced bool) {
	if t == Premium {
		return premiumBatchBytes, true
	}
	return standardMessageBytes, false
}
