package servicebus

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"azsqloutbox/worker"
)

// doubts are the events whose sends the broker did not answer, while the link
// could be opened. Any one of a batch may be to blame: a message that the broker
// swallows would hold up its batch for ever. So the events of such a batch go
// out in parts the next time, in smaller ones each time, until the guilty one
// stands alone. What it takes is remembered here from one claim to the next.
type doubts struct {
	mu     sync.Mutex
	events map[int64]doubt
	// swept is when what is too old was looked for: a claim may be divided into as
	// many groups as it has events.
	swept time.Time
}

type doubt struct {
	// before is what the destination had confirmed when the event was first
	// sent: whatever it confirms after that, it works and this event may not.
	before uint64
	// tries counts the sends with this event among others, or alone, that were not
	// answered; alone those of this one event by itself.
	tries, alone int
	// broke says that a connection broke under it, and not only that no answer
	// came.
	broke bool
	seen  time.Time
}

const (
	// parts is how many sends a batch in doubt becomes: 500 events are single ones
	// after three rounds, and no round costs the entity more sends than a busy
	// second does.
	parts = 8
	// mostDoubts bounds the memory; with more, the destination is down rather
	// than the events to blame.
	mostDoubts = 20_000
	// forgetDoubt is when someone else has sent the event, or a person has
	// discarded it.
	forgetDoubt = 15 * time.Minute
	sweepEvery  = time.Minute
	// aloneTwice: a single send that is not answered once can be the network.
	aloneTwice = 2
)

// add notes that a send of these events was not answered. The first note keeps
// its before.
func (d *doubts) add(events []worker.Event, which []int, before uint64, broke bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.events == nil {
		d.events = make(map[int64]doubt)
	}
	if len(d.events)+len(which) > mostDoubts {
		clear(d.events)
	}
	for _, i := range which {
		known, ok := d.events[events[i].ID]
		if !ok {
			known.before = before
		}
		known.tries++
		if len(which) == 1 {
			known.alone++
		}
		known.broke = known.broke || broke
		known.seen = now
		d.events[events[i].ID] = known
	}
}

// of is the doubt about one event.
func (d *doubts) of(id int64) (known doubt, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok = d.events[id]
	return known, ok
}

// settle forgets events that are decided.
func (d *doubts) settle(events []worker.Event, which []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.events) == 0 {
		return
	}
	for _, i := range which {
		delete(d.events, events[i].ID)
	}
}

// divide sorts events into those without a doubt, in their order, and those with
// one, and says whether a connection may break under one of the latter. What
// failed alone, and then what was tried most, goes last: a message that breaks
// connections can take the whole time of a delivery, and would take it each time
// from those behind it.
// What failed before, here or in another worker, is in doubt from the beginning:
// a message that breaks connections must not take a new batch with it each time
// that it comes back.
func (d *doubts) divide(events []worker.Event, which []int) (clean, doubted []int, broke bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep(time.Now())
	for _, i := range which {
		known, ok := d.events[events[i].ID]
		failed := events[i].RetryCount > 0
		if ok || failed {
			doubted = append(doubted, i)
			broke = broke || known.broke || failed
		} else {
			clean = append(clean, i)
		}
	}
	slices.SortStableFunc(doubted, func(a, b int) int {
		one, other := d.events[events[a].ID], d.events[events[b].ID]
		return cmp.Or(cmp.Compare(one.alone, other.alone), cmp.Compare(one.tries, other.tries))
	})
	return clean, doubted, broke
}

// sweep forgets what has not been seen for long. d.mu is held.
func (d *doubts) sweep(now time.Time) {
	if now.Sub(d.swept) < sweepEvery {
		return
	}
	d.swept = now
	for id, known := range d.events {
		if now.Sub(known.seen) > forgetDoubt {
			delete(d.events, id)
		}
	}
}

// inParts cuts events into parts of about the same size.
func inParts(events []int) [][]int {
	size := max((len(events)+parts-1)/parts, 1)
	var out [][]int
	for len(events) > size {
		out = append(out, events[:size])
		events = events[size:]
	}
	return append(out, events)
}
