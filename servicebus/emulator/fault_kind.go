package emulator

import "fmt"

// FaultKind is what a fault does, and to what.
type FaultKind uint8

// Faults of sends: each delivery, a single message or a batch, counts as one.
const (
	// Reject refuses the delivery with Condition and Description, and stores
	// nothing.
	Reject FaultKind = iota + 1
	// DetachLink detaches the sender's link with Condition and Description, and
	// stores nothing.
	DetachLink
	// DropBeforeStore cuts the connection before anything is stored.
	DropBeforeStore
	// DropAfterStore cuts the connection when the messages are stored and before
	// the sender is told: it cannot know.
	DropAfterStore
	// DropAfterReply cuts the connection as soon as the sender is told.
	DropAfterReply
	// Delay answers later, by Duration. The messages are stored at once.
	Delay
	// NoReply stores the messages and never answers.
	NoReply
	// Swallow stores nothing and never answers.
	Swallow
	// ExpireToken has the client's token end in the middle of the send: nothing is
	// stored, all links of the connection are detached with
	// amqp:unauthorized-access, and until a new token is put none can be attached.
	ExpireToken
	// ServerBusy refuses the delivery as the service does when it throttles;
	// with a Duration, all that follow until it is over too, whatever Times says.
	ServerBusy

	lastOfSends = ServerBusy
)

// Other faults.
const (
	// DropInTransfer cuts the connection when the first frame of a delivery is
	// there, which of a large one is a part; each delivery counts as one. What is
	// in it is not known yet, so Match cannot be.
	DropInTransfer FaultKind = iota + lastOfSends + 1
	// DropAtAttach cuts the connection when a link to the entity, or to its
	// $management, is to be attached; each attach counts as one.
	DropAtAttach
	// RefuseAttach refuses a link to the entity with Condition and Description;
	// each attach counts as one.
	RefuseAttach
	// PutToken answers a token for the entity with Status; each token counts as
	// one. azservicebus puts one for the entity and one for its $management.
	PutToken
	// AdminStatus answers an admin operation on the entity with Status; each
	// request counts as one.
	AdminStatus
	// SlowCredit gives a sender's link one credit at a time, each after Duration,
	// where it otherwise has a thousand; each credit counts as one. A link that is
	// attached already first uses up what it has.
	SlowCredit

	lastKind = SlowCredit
)

var kindNames = [lastKind + 1]string{
	Reject: "reject", DetachLink: "detach", DropBeforeStore: "drop before storing", DropAfterStore: "drop after storing",
	DropAfterReply: "drop after the reply", Delay: "delay", NoReply: "no reply", Swallow: "swallow", ExpireToken: "expire token",
	ServerBusy: "server busy", DropInTransfer: "drop in transfer", DropAtAttach: "drop at attach", RefuseAttach: "refuse attach",
	PutToken: "put token", AdminStatus: "admin status", SlowCredit: "slow credit",
}

// String is a name for reports.
func (k FaultKind) String() string {
	if k < Reject || k > lastKind {
		return fmt.Sprintf("FaultKind(%d)", uint8(k))
	}
	return kindNames[k]
}

// ofSends says whether the messages of a delivery are known when it happens.
func (k FaultKind) ofSends() bool { return k <= lastOfSends }
