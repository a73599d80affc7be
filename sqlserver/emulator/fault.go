package emulator

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// What a Fault can name beside statements.
const (
	Login    = "LOGIN"    // a login
	Begin    = "BEGIN"    // BeginTx, which is a request of its own, no statement
	Commit   = "COMMIT"   // Tx.Commit
	Rollback = "ROLLBACK" // Tx.Rollback
	Bulk     = "BULK"     // the rows of a bulk load
)

// DropPoint is where a fault cuts the connection.
type DropPoint uint8

const (
	DropNone DropPoint = iota
	// DropBefore cuts before anything runs.
	DropBefore
	// DropAfter runs the request to its end and cuts before the first byte of
	// the answer: after a COMMIT the client cannot know that it happened.
	DropAfter
)

// Error is what SQL Server would report. It is also what Exec returns.
type Error struct {
	Number  int32
	State   uint8
	Class   uint8 // severity; from 20 on the connection ends too
	Message string
}

func (e *Error) Error() string { return e.Message }

// Fault is something that is to go wrong.
type Fault struct {
	// Statement is the name in the text of the statement, "/* outbox:Name */",
	// or one of Login, Begin, Commit, Rollback and Bulk. Empty matches every
	// request, but no login.
	Statement string
	// Nth says which occurrence from now on is the first to fail. Default 1, the
	// next.
	Nth int
	// Times says how many in a row fail from there. Default 1; negative: until
	// it is removed.
	Times int

	// Delay comes first. A client that cancels or goes away ends it.
	Delay time.Duration
	// Error is reported instead of running the request. The open transaction is
	// rolled back where the number is 1205, and where Doom is set.
	Error *Error
	// Doom rolls back the open transaction when Error is reported, as SQL Server
	// does under XACT_ABORT ON.
	Doom bool
	// Drop cuts the connection.
	Drop DropPoint
	// Refuse closes a connection as soon as it is accepted, before the protocol
	// begins. Only with Login, and only with Nth and Times beside it.
	Refuse bool
}

// Injected is a fault that was scripted in.
type Injected struct {
	faults *faults
	fault  Fault
	seen   int // occurrences; guarded by faults.mu
	fired  atomic.Int64
}

// Fired says how often the fault has happened.
func (i *Injected) Fired() int { return int(i.fired.Load()) }

// Remove ends it. What it has begun already, such as a delay, goes on.
func (i *Injected) Remove() {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	i.faults.all = slices.DeleteFunc(i.faults.all, func(o *Injected) bool { return o == i })
}

// Inject scripts a fault in. Several may wait for the same statement: each
// counts for itself, all whose turn it is happen, in the order of Inject.
func (s *Server) Inject(f Fault) *Injected {
	f.Nth = max(f.Nth, 1)
	if f.Times == 0 {
		f.Times = 1
	}
	i := &Injected{faults: &s.faults, fault: f}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.all = append(s.faults.all, i)
	return i
}

// faults are the scripted faults that are not used up.
type faults struct {
	mu  sync.Mutex
	all []*Injected
}

// due counts an occurrence and returns what is to happen.
func (f *faults) due(name string, refuse bool) []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var now []Fault
	f.all = slices.DeleteFunc(f.all, func(i *Injected) bool {
		any := i.fault.Statement == "" && name != Login
		if i.fault.Refuse != refuse || i.fault.Statement != name && !any {
			return false
		}
		i.seen++
		if i.seen < i.fault.Nth {
			return false
		}
		i.fired.Add(1)
		now = append(now, i.fault)
		return i.fault.Times > 0 && i.seen >= i.fault.Nth+i.fault.Times-1
	})
	return now
}

// admit is asked for every accepted connection.
func (f *faults) admit() bool { return len(f.due(Login, true)) == 0 }

// errCancelled is a delay that the client did not wait for.
var errCancelled = errors.New("cancelled during a scripted delay")

// meet counts an occurrence of name, waits as scripted, and returns the fault
// that decides: the first with an error or a drop.
func (f *faults) meet(ctx context.Context, name string) (Fault, error) {
	var decides Fault
	for _, fault := range f.due(name, false) {
		if fault.Delay > 0 {
			timer := time.NewTimer(fault.Delay)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return Fault{}, errCancelled
			}
		}
		if decides.Error == nil && decides.Drop == DropNone {
			decides = fault
		}
	}
	return decides, nil
}

const numberDeadlock = 1205

func (f Fault) dooms() bool { return f.Doom || f.Error.Number == numberDeadlock }

func (e *Error) wire() *tds.Error {
	return &tds.Error{Number: e.Number, State: max(e.State, 1), Class: e.Class, Message: e.Message, Line: 1}
}

const classEndsConnection = 20
