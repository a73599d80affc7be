package servicebus

import (
	"context"
	"fmt"

	"azsqloutbox/worker"
)

// hunt is the search for the guilty messages of one batch.
type hunt struct {
	before uint64
	alone  int // messages that failed while they stood alone
}

// maxSuspects is how many messages of a batch may fail alone before the search
// ends, as long as nothing passed: then it is the entity, not the messages.
const maxSuspects = 3

// ship sends one parcel and decides its events, by sending parts of it again
// where that is what it takes. It returns the failure that is the destination's.
func (d *delivery) ship(ctx context.Context, p parcel, h *hunt) *failure {
	before := p.dest.confirmed.Load()
	f := d.retried(ctx, p.dest, manner{hunting: h != nil, many: p.single == nil, apart: p.apart}, p.send)
	if f == nil {
		p.dest.confirmed.Add(1)
		p.dest.doubts.settle(d.events, p.events)
		for _, i := range p.events {
			d.outcomes[i] = worker.Outcome{Verdict: worker.Sent}
		}
		return nil
	}
	if f.doubtful() {
		p.dest.doubts.add(d.events, p.events, before, f.kind != KindTimeout)
	}
	if f.nothingSent || f.action == giveBack || f.action == retry {
		return d.unanswered(ctx, p, f)
	}
	if f.action == split && p.single != nil {
		d.refuse(p.events[0], d.tooLarge(ctx, p, f))
		return nil
	}
	if f.action == bisect {
		p.apart = true
		if h == nil {
			h = &hunt{before: before}
		}
		if p.single != nil {
			h.alone++
			d.suspect(suspect{event: p.events[0], dest: p.dest, before: h.before, why: f})
			return nil
		}
	}
	again := func(half parcel) *failure {
		half.apart = p.apart
		if h != nil && h.alone >= maxSuspects && p.dest.confirmed.Load() == h.before {
			gaveUp := *f
			gaveUp.err = fmt.Errorf("every message that was tried alone failed: %w", f.err)
			d.unsent(half.dest, half.events, &gaveUp)
			return &gaveUp
		}
		return d.ship(ctx, half, h)
	}
	middle := len(p.events) / 2
	if f := d.pack(ctx, p.dest, p.events[:middle], again); f != nil {
		d.unsent(p.dest, p.events[middle:], f)
		return f
	}
	return d.pack(ctx, p.dest, p.events[middle:], again)
}

// unanswered decides a parcel that waiting does not help. A batch that was sent
// and not answered is tried in parts while there is time: one after the other
// where its order counts. Nothing broke, so nobody needs to be kept from it.
func (d *delivery) unanswered(ctx context.Context, p parcel, f *failure) *failure {
	if f.doubtful() {
		if p.single == nil && ctx.Err() == nil {
			if d.ordered(p) {
				return d.inTurn(ctx, p.dest, inParts(p.events), false)
			}
			return d.scatter(ctx, p.dest, p.events)
		}
		// What breaks connections is found by bisection, within one delivery.
		if p.single != nil && f.kind == KindTimeout {
			known, _ := p.dest.doubts.of(d.events[p.events[0]].ID)
			if known.alone >= aloneTwice {
				d.suspect(suspect{event: p.events[0], dest: p.dest, before: known.before, why: f})
				return f
			}
		}
	}
	d.unsent(p.dest, p.events, f)
	return f
}

// suspect is an event that failed while it stood alone.
type suspect struct {
	event int
	dest  *destination
	// before is what dest had confirmed when its batch was first sent.
	before uint64
	why    *failure
}

func (d *delivery) suspect(s suspect) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.suspects = append(d.suspects, s)
}

// judge decides the suspects once everything else is decided. A condition that
// nobody knows may be the message's own; it spends an attempt and comes again.
// One that can also be the entity's state (a missing session id, a connection
// that breaks) counts against a message only when the entity took another one
// meanwhile.
func (d *delivery) judge() {
	for _, s := range d.suspects {
		outcome := worker.Outcome{Verdict: worker.Unsent, Err: d.p.destinationError(s.dest, s.why)}
		if s.why.kind == KindUnknown || s.dest.confirmed.Load() > s.before {
			outcome = worker.Outcome{
				Verdict: worker.Failed,
				Err:     fmt.Errorf("%q does not take this message, sent alone: %w", s.dest.entity, d.p.scrub(s.why.err)),
			}
			s.dest.doubts.settle(d.events, []int{s.event})
		}
		d.outcomes[s.event] = outcome
	}
}

// tooLarge says by how much a message is too large.
func (d *delivery) tooLarge(ctx context.Context, p parcel, f *failure) error {
	var size, limit uint64
	measured := d.p.use(ctx, p.dest, d.p.next(), func(ctx context.Context, s *sender) (err error) {
		if size, err = s.encodedSize(ctx, p.single); err != nil {
			return err
		}
		limit, err = s.batchLimit(ctx)
		return err
	})
	payload := len(d.events[p.events[0]].Payload)
	if measured != nil {
		return fmt.Errorf("payload of %d bytes makes a message that %q refuses as too large: %w", payload, p.dest.entity, d.p.scrub(f.err))
	}
	return fmt.Errorf("message of %d bytes (payload %d) is too large: %q takes %d bytes in a batch, and refused it sent alone", size, payload, p.dest.entity, limit)
}
