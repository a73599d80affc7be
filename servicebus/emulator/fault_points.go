package emulator

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// faults are the injected ones of a server.
type faults struct {
	mu     sync.Mutex
	active []*Injection
	fired  map[FaultKind]int64
}

// candidates are those there may be one of to happen now.
func (f *faults) candidates() []*Injection {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.active)
}

// effect is what the faults do to one send.
type effect struct {
	reject    *amqp.Error
	detach    *amqp.Error
	dropFirst bool // before storing
	dropLast  bool // after storing
	dropReply bool // after the reply
	silent    bool
	swallow   bool
	delay     time.Duration
	expire    bool
}

// onSend counts a delivery and says what happens to it.
func (f *faults) onSend(path string, messages []*broker.Message) effect {
	var e effect
	// Decoded at most once, and only for a fault that looks.
	var all []Message
	decoded := func() []Message {
		if all == nil {
			all = make([]Message, len(messages))
			for n, m := range messages {
				all[n] = newMessage(m.Preview())
			}
		}
		return all
	}
	for _, i := range f.candidates() {
		if !i.fault.Kind.ofSends() || !i.concerns(path) || !i.matches(decoded) || !i.count() {
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
		case Swallow:
			e.swallow = true
		case DropAfterReply:
			e.dropReply = true
		}
	}
	return e
}

// onTransfer counts a delivery that begins and says whether the connection is
// to be cut.
func (f *faults) onTransfer(path string) (drop bool) {
	for _, i := range f.candidates() {
		if i.fault.Kind == DropInTransfer && i.concerns(path) && i.count() {
			return true
		}
	}
	return false
}

// onAttach counts an attach and returns why it is refused, nil if it is not, or
// whether the connection is to be cut instead.
func (f *faults) onAttach(path string) (refused error, drop bool) {
	entity := strings.TrimSuffix(path, managementSuffix)
	for _, i := range f.candidates() {
		switch {
		case i.fault.Kind == RefuseAttach && i.concerns(path) && i.count():
			return i.err(), false
		case i.fault.Kind == DropAtAttach && i.concerns(entity) && i.count():
			return nil, true
		}
	}
	return nil, false
}

// onPutToken counts a token and returns the status to refuse it with, 0 to
// take it.
func (f *faults) onPutToken(path string) int {
	for _, i := range f.candidates() {
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
	for _, i := range f.candidates() {
		if i.fault.Kind == AdminStatus && i.concerns(path) && i.count() {
			return i.fault.Status
		}
	}
	return 0
}

func (i *Injection) concerns(path string) bool { return i.path == "" || i.path == path }

func (i *Injection) matches(messages func() []Message) bool {
	return i.fault.Match == nil || slices.ContainsFunc(messages(), i.fault.Match)
}

// slowCredit says whether a link's credit is slow. For one that has none left
// it counts the next and says when it comes.
func (f *faults) slowCredit(path string, exhausted bool) (wait time.Duration, slow bool) {
	for _, i := range f.candidates() {
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
	fires := i.seen >= i.fault.Nth && (i.seen-i.fault.Nth)%i.fault.Every == 0 &&
		(i.fault.Times == Forever || i.fired < i.fault.Times)
	if i.fault.Kind == ServerBusy && i.fault.Duration > 0 && i.seen >= i.fault.Nth {
		if i.until.IsZero() {
			i.until = time.Now().Add(i.fault.Duration)
		}
		fires = time.Now().Before(i.until)
	}
	if fires {
		i.fired++
		if i.faults.fired == nil {
			i.faults.fired = map[FaultKind]int64{}
		}
		i.faults.fired[i.fault.Kind]++
	}
	return fires
}

func (i *Injection) err() *amqp.Error {
	return &amqp.Error{
		Condition:   amqp.Symbol(i.fault.Condition),
		Description: cmp.Or(i.fault.Description, "scripted by a test"),
	}
}
