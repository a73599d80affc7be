package emulator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"azsqloutbox/servicebus/emulator/internal/broker"
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
	// Every is how far apart those that fire are, from the Nth on; default 1, all.
	Every int
	// Times is how many events fire; default 1.
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
	if f.Kind < Reject || f.Kind > lastKind {
		panic(fmt.Sprintf("emulator: fault kind %d is unknown", f.Kind))
	}
	if f.Match != nil && !f.Kind.ofSends() {
		panic(fmt.Sprintf("emulator: Match with %q, which happens before messages are known", f.Kind))
	}
	if (f.Kind == PutToken || f.Kind == AdminStatus) && (f.Status < 100 || f.Status > 599) {
		panic(fmt.Sprintf("emulator: %q with status %d", f.Kind, f.Status))
	}
	if f.Nth < 0 || f.Every < 0 || f.Times < Forever {
		panic("emulator: Nth, Every and Times are counts")
	}
	if (f.Kind == Delay || f.Kind == SlowCredit) && f.Duration <= 0 {
		panic("emulator: Delay and SlowCredit need a Duration")
	}
	i := &Injection{faults: &s.faults, fault: f}
	if f.Entity != "" {
		i.path = s.namespace.mustFind(f.Entity).path
	}
	i.fault.Nth = cmp.Or(f.Nth, 1)
	i.fault.Every = cmp.Or(f.Every, 1)
	i.fault.Times = cmp.Or(f.Times, 1)
	if f.Kind == ServerBusy {
		i.fault.Condition = cmp.Or(f.Condition, string(condServerBusy))
		i.fault.Description = cmp.Or(f.Description, throttled)
	}
	i.fault.Condition = cmp.Or(i.fault.Condition, string(broker.CondInternal))
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.active = append(s.faults.active, i)
	return i
}

// FaultsFired is how many times faults of each kind have happened since the
// server was started, those that were removed since among them.
func (s *Server) FaultsFired() map[FaultKind]int64 {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	return maps.Clone(s.faults.fired)
}
