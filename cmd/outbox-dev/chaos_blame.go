package main

import (
	"context"
	"slices"
	"time"
)

// blame says which duplicates a kind of fault explains: those of events that were
// first delivered about when it began, or while it lasted. Which worker sent an
// event cannot be seen in its message, so a fault of one worker explains for all.
type blame struct {
	// before its beginning, and after its end, is how long a worker may have had
	// the event in hand. The zero blame is of faults that explain no duplicate.
	before, after time.Duration
	// lasts is true where it does harm all the time, not only when it begins.
	lasts bool
	// entity is true where only sends to the step's entity suffer.
	entity bool
}

const (
	// inHand is the longest that a worker has a batch: its publish deadline, half
	// of the lease, and a moment for settling.
	inHand = chaosLease/2 + 500*time.Millisecond
	// onTheWire is the longest that an answer takes on a machine that keeps up.
	onTheWire = 250 * time.Millisecond
)

var (
	// nothing is for what a worker must survive without sending twice.
	nothing = blame{}
	// death leaves the receipts of what the worker had in hand.
	death = blame{before: inHand, after: onTheWire}
	// noSettling: what was claimed before is still published.
	noSettling = blame{before: inHand, after: inHand}
	// late is for a worker that goes on when its lease is over.
	late = blame{before: inHand, after: onTheWire, lasts: true}
	// cut is for a broken connection, with the answers to all sends on it, to
	// whatever entity.
	cut = blame{before: onTheWire, after: onTheWire, lasts: true}
	// away is for a broker that breaks all connections and is not there then.
	away = blame{before: onTheWire, after: onTheWire}
	// mute is for what happens to the answers on one link.
	mute = blame{before: onTheWire, after: onTheWire, lasts: true, entity: true}
	// closed is for an entity that takes nothing more.
	closed = blame{before: onTheWire, after: onTheWire, entity: true}
)

// trouble is the time in which first deliveries may be followed by another one.
type trouble struct {
	begins      time.Time // of the fault
	from, until time.Time // of the first delivery
	entity      string    // empty for all
}

// during is the trouble of a fault at entity that lasted so long.
func (b blame) during(begins, ends time.Time, entity string) trouble {
	if b == nothing {
		return trouble{}
	}
	if !b.entity {
		entity = ""
	}
	if !b.lasts {
		ends = begins
	}
	return trouble{begins: begins, from: begins.Add(-b.before), until: ends.Add(b.after), entity: entity}
}

func (t trouble) explains(entity string, first, again time.Time) bool {
	return (t.entity == "" || t.entity == entity) && !first.Before(t.from) && !first.After(t.until) && t.begins.Before(again)
}

// trouble notes one; that of faults which explain nothing is forgotten.
func (c *chaosRun) trouble(t trouble) {
	if t == (trouble{}) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.troubled = append(c.troubled, t)
}

// explained says whether a fault explains that an event of the entity came again,
// after it had been delivered at each of the given times.
func (c *chaosRun) explained(entity string, before []time.Time, again time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.troubled, func(t trouble) bool {
		return slices.ContainsFunc(before, func(first time.Time) bool { return t.explains(entity, first, again) })
	})
}

const (
	machinePulse = 50 * time.Millisecond
	// machineStall is how late it may be on a machine that keeps up.
	machineStall = 150 * time.Millisecond
)

// watchMachine notes when the machine itself stands still until ctx ends: answers
// are late then that nobody delayed.
func (c *chaosRun) watchMachine(ctx context.Context) {
	for last := time.Now(); wait(ctx, machinePulse); {
		now := time.Now()
		if now.Sub(last) > machinePulse+machineStall {
			c.happened("machine stalled")
			c.trouble(cut.during(last, now, ""))
		}
		last = now
	}
}
