package amqp

// Performative is the body of a frame: one of the types below, or one of the
// SASL bodies. Fields that a server neither needs nor sends are left out.
type Performative interface {
	append(b []byte) []byte
}

// Roles of a link's end.
const (
	RoleSender   = false
	RoleReceiver = true
)

// Settle modes of a sender and of a receiver.
const (
	SenderUnsettled uint8 = 0
	SenderSettled   uint8 = 1
	SenderMixed     uint8 = 2

	ReceiverFirst  uint8 = 0
	ReceiverSecond uint8 = 1
)

// Open starts a connection.
type Open struct {
	ContainerID  string
	Hostname     string
	MaxFrameSize uint32
	ChannelMax   uint16
	// IdleTimeoutMillis is how long the sender of this Open waits for a frame
	// before it gives the connection up; 0 is for ever.
	IdleTimeoutMillis uint32
}

// Begin starts a session.
type Begin struct {
	// RemoteChannel is set in the answer only.
	RemoteChannel  *uint16
	NextOutgoingID uint32
	IncomingWindow uint32
	OutgoingWindow uint32
	HandleMax      uint32
}

// Attach starts a link, or answers its start.
type Attach struct {
	Name           string
	Handle         uint32
	Role           bool
	SenderSettle   uint8
	ReceiverSettle uint8
	// Source and Target are nil where there is none: in an answer that means
	// that the attach is refused and a Detach with the reason follows.
	Source *Source
	Target *Target
	// Coordinator says that the target is a transaction coordinator.
	Coordinator          bool
	InitialDeliveryCount uint32
	MaxMessageSize       uint64
	Properties           map[Symbol]any
}

// Source is where the messages of a link come from.
type Source struct {
	Address string
	Dynamic bool
	// Filter is nil where the peer asked for none. A described filter value
	// stays [Described].
	Filter map[string]any
}

// Target is where the messages of a link go to.
type Target struct {
	Address string
	Dynamic bool
}

// Flow updates a session's windows and, with a Handle, a link's credit.
type Flow struct {
	NextIncomingID *uint32
	IncomingWindow uint32
	NextOutgoingID uint32
	OutgoingWindow uint32
	Handle         *uint32
	DeliveryCount  *uint32
	LinkCredit     *uint32
	Drain          bool
	Echo           bool
}

// Transfer carries a message or a part of one; its payload follows it in the
// frame.
type Transfer struct {
	Handle        uint32
	DeliveryID    *uint32
	DeliveryTag   []byte
	MessageFormat *uint32
	Settled       bool
	More          bool
	Aborted       bool
}

// Disposition tells the state of the deliveries First to Last.
type Disposition struct {
	Role    bool
	First   uint32
	Last    uint32
	Settled bool
	// State is nil where the peer gave none.
	State *State
}

// Detach ends a link.
type Detach struct {
	Handle uint32
	Closed bool
	Error  *Error
}

// End ends a session.
type End struct{ Error *Error }

// Close ends a connection.
type Close struct{ Error *Error }

// Outcome is the kind of a delivery state.
type Outcome uint8

// The outcomes of a delivery. Received is no outcome but the state of a
// delivery under way. Other is a state that this package does not know, such
// as a transactional one.
const (
	Accepted Outcome = iota
	Rejected
	Released
	Modified
	Received
	Other
)

// State is the state of a delivery.
type State struct {
	Outcome Outcome
	// Error is why a delivery is Rejected, if a reason was given.
	Error *Error
	// UndeliverableHere and Annotations belong to Modified.
	UndeliverableHere bool
	Annotations       map[string]any
}
