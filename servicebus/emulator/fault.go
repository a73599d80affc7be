package emulator

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// FaultKind is what a fault does.
type FaultKind uint8

// The kinds of faults. Those up to ServerBusy happen to sends: each delivery,
// a single message or a batch, counts as one.
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
	// Delay answers later, by Duration. The messages are stored at once.
	Delay
	// NoReply stores the messages and never answers.
	NoReply
	// ExpireToken has the client's token end in the middle of the send: nothing is
	// stored, all links of the connection are detached with
	// amqp:unauthorized-access, and until a new token is put none can be attached.
	ExpireToken
	// ServerBusy refuses the delivery as the service does when it throttles;
	// with a Duration, all that follow until it is over too, whatever Times says.
	ServerBusy
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
)

// Forever as Times has a fault fire until it is removed.
const Forever = -1

// Fault is a scripted failure.
type Fault struct {
	Kind FaultKind
	// Entity is the path of the queue, topic or subscription; empty is any.
	Entity string
	// Nth is the first event that fires, counted from the injection on; default
	// 1, the next one.
	Nth int
	// Times is how many events in a row fire; default 1.
	Times int
	// Condition and Description are what the client is told. The condition has
	// a default: com.microsoft:server-busy for ServerBusy, else
	// amqp:internal-error.
	Condition   string
	Description string
	// Duration is for Delay, SlowCredit and ServerBusy.
	Duration time.Duration
	// Status is for PutToken and AdminStatus, such as 401.
	Status int
	// Match, on a fault that happens to sends, has only those deliveries count
	// that hold such a message: a poison message, whose whole batch suffers
	// without anyone saying which it was. It is called by many goroutines at once
	// and must not call the server.
	Match func(Message) bool
}

// Injection is a fault that was injected. It is safe for concurrent use.
type Injection struct {
	faults *faults
	fault  Fault
	path   string

	// guarded by faults
	seen  int
	fired int
	until time.Time // ServerBusy with a Duration, once it fired
}

// Fired is how many times the fault has happened.
func (i *Injection) Fired() int {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	return i.fired
}

// Remove ends the fault.
func (i *Injection) Remove() {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	i.faults.active = slices.DeleteFunc(i.faults.active, func(other *Injection) bool { return other == i })
}

// Inject adds a fault. It panics where the fault cannot be or the entity is
// not there: a test that scripts what never happens proves nothing.
func (s *Server) Inject(f Fault) *Injection {
	if f.Kind < Reject || f.Kind > SlowCredit {
		panic(fmt.Sprintf("emulator: fault kind %d is unknown", f.Kind))
	}
	if f.Match != nil && f.Kind > ServerBusy {
		panic("emulator: Match is for faults that happen to sends")
	}
	if (f.Kind == PutToken || f.Kind == AdminStatus) && (f.Status < 100 || f.Status > 599) {
		panic(fmt.Sprintf("emulator: a fault of kind %d with status %d", f.Kind, f.Status))
	}
	if (f.Kind == Delay || f.Kind == SlowCredit) && f.Duration <= 0 {
		panic("emulator: Delay and SlowCredit need a Duration")
	}
	i := &Injection{faults: &s.faults, fault: f}
	if f.Entity != "" {
		i.path = s.namespace.mustFind(f.Entity).path
	}
	i.fault.Nth = cmp.Or(f.Nth, 1)
	i.fault.Times = cmp.Or(f.Times, 1)
	if f.Kind == ServerBusy {
		i.fault.Condition = cmp.Or(f.Condition, string(condServerBusy))
		i.fault.Description = cmp.Or(f.Description, "The request was terminated because the entity is being throttled. "+
			"Error code : 50009. Please wait 2 seconds and try again.")
	}
	i.fault.Condition = cmp.Or(i.fault.Condition, string(broker.CondInternal))
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.active = append(s.faults.active, i)
	return i
}

// faults are the injected ones of a server.
type faults struct {
	mu     sync.Mutex
	active []*Injection
}

// effect is what the faults do to one send.
type effect struct {
	reject    *amqp.Error
	detach    *amqp.Error
	dropFirst bool // before storing
	dropLast  bool // after storing
	silent    bool
	delay     time.Duration
	expire    bool
}

// onSend counts a delivery and says what happens to it.
func (f *faults) onSend(path string, messages []*broker.Message) effect {
	var e effect
	f.mu.Lock()
	candidates := slices.Clone(f.active)
	f.mu.Unlock()
	for _, i := range candidates {
		if i.fault.Kind > ServerBusy || !i.concerns(path) || !i.matches(messages) || !i.count() {
			continue
		}
		switch i.fault.Kind {
		case Reject, ServerBusy:
			e.reject = i.err()
		case DetachLink:
			e.detach = i.err()
		case DropBeforeStore:
			e.dropFirst = true
		case DropAfterStore:
			e.dropLast = true
		case Delay:
			e.delay += i.fault.Duration
		case ExpireToken:
			e.expire = true
		case NoReply:
			e.silent = true
		}
	}
	return e
}

// onAttach counts an attach and returns why it is refused, nil if it is not.
func (f *faults) onAttach(path string) error {
	f.mu.Lock()
	candidates := slices.Clone(f.active)
	f.mu.Unlock()
	for _, i := range candidates {
		if i.fault.Kind == RefuseAttach && i.concerns(path) && i.count() {
			return i.err()
		}
	}
	return nil
}

// onPutToken counts a token and returns the status to refuse it with, 0 to
// take it.
func (f *faults) onPutToken(path string) int {
	f.mu.Lock()
	candidates := slices.Clone(f.active)
	f.mu.Unlock()
	for _, i := range candidates {
		if i.fault.Kind != PutToken {
			continue
		}
		if (i.concerns(path) || i.path+managementSuffix == path) && i.count() {
			return i.fault.Status
		}
	}
	return 0
}

// onAdmin counts an admin operation and returns the status to answer with, 0
// to perform it.
func (f *faults) onAdmin(path string) int {
	f.mu.Lock()
	candidates := slices.Clone(f.active)
	f.mu.Unlock()
	for _, i := range candidates {
		if i.fault.Kind == AdminStatus && i.concerns(path) && i.count() {
			return i.fault.Status
		}
	}
	return 0
}

func (i *Injection) concerns(path string) bool { return i.path == "" || i.path == path }

func (i *Injection) matches(messages []*broker.Message) bool {
	if i.fault.Match == nil {
		return true
	}
	return slices.ContainsFunc(messages, func(m *broker.Message) bool {
		return i.fault.Match(newMessage(m.Preview()))
	})
}

// slowCredit says whether a link's credit is slow. For one that has none left
// it counts the next and says when it comes.
func (f *faults) slowCredit(path string, exhausted bool) (wait time.Duration, slow bool) {
	f.mu.Lock()
	candidates := slices.Clone(f.active)
	f.mu.Unlock()
	for _, i := range candidates {
		if i.fault.Kind != SlowCredit || !i.concerns(path) {
			continue
		}
		if !exhausted {
			return 0, true // not topped up before it is
		}
		if i.count() {
			return i.fault.Duration, true
		}
	}
	return 0, false
}

// count takes one event into account and says whether the fault fires.
func (i *Injection) count() bool {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	if !slices.Contains(i.faults.active, i) {
		return false
	}
	i.seen++
	fires := i.seen >= i.fault.Nth && (i.fault.Times == Forever || i.seen < i.fault.Nth+i.fault.Times)
	if i.fault.Kind == ServerBusy && i.fault.Duration > 0 && i.seen >= i.fault.Nth {
		if i.until.IsZero() {
			i.until = time.Now().Add(i.fault.Duration)
		}
		fires = time.Now().Before(i.until)
	}
	if fires {
		i.fired++
	}
	return fires
}

func (i *Injection) err() *amqp.Error {
	return &amqp.Error{
		Condition:   amqp.Symbol(i.fault.Condition),
		Description: cmp.Or(i.fault.Description, "scripted by a test"),
	}
}
