package servicebus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"azsqloutbox/worker"
)

// destination is a queue or topic that routes lead to.
type destination struct {
	entity string
	// confirmed counts the sends that the entity has confirmed: the evidence
	// that it works, when one message does not pass.
	confirmed atomic.Uint64
	doubts    doubts
	slots     chan struct{} // one token for every send under way
}

// delivery is one call of Publish.
type delivery struct {
	p        *Publisher
	events   []worker.Event
	ids      []string         // the message id of each
	outcomes []worker.Outcome // each element is written by one goroutine only
	sends    errgroup.Group

	mu       sync.Mutex
	suspects []suspect
}

// suspect is an event that failed while it stood alone.
type suspect struct {
	event int
	dest  *destination
	// before is what dest had confirmed when its batch was first sent.
	before uint64
	why    *failure
}

func (d *delivery) run(ctx context.Context) {
	groups, unrouted := d.p.groupEvents(d.events)
	for _, i := range unrouted {
		d.outcomes[i] = worker.Outcome{Verdict: worker.Unsent, Err: fmt.Errorf("event type %q has no route and there is no default route", routeKey(&d.events[i]))}
	}
	d.sends.SetLimit(d.p.cfg.MaxInFlight)
	for _, g := range groups {
		clean, doubted, broke := g.dest.doubts.divide(d.events, g.events)
		if g.key.ordered() {
			d.sends.Go(func() error {
				d.inOrder(ctx, g, doubted)
				return nil
			})
			continue
		}
		d.pack(ctx, g.dest, clean, func(p parcel) *failure {
			d.sends.Go(func() error {
				d.ship(ctx, p, nil)
				return nil
			})
			return nil
		})
		if len(doubted) > 0 {
			d.sends.Go(func() error {
				if broke {
					d.oneByOne(ctx, g.dest, doubted)
				} else {
					d.scatter(ctx, g.dest, doubted)
				}
				return nil
			})
		}
	}
	_ = d.sends.Wait() // outcomes carry the errors
	d.judge()
}

// inOrder sends a group one batch after the other, in parts where some of its
// events are in doubt. What follows a failure waits.
func (d *delivery) inOrder(ctx context.Context, g *group, doubted []int) {
	todo := [][]int{g.events}
	if len(doubted) > 0 {
		todo = inParts(g.events)
	}
	d.inTurn(ctx, g.dest, todo) // outcomes carry the failure
}

// inTurn sends parts one after the other. After a failure the rest is not tried;
// inTurn returns that failure.
func (d *delivery) inTurn(ctx context.Context, dest *destination, todo [][]int) *failure {
	for n, events := range todo {
		f := d.pack(ctx, dest, events, func(p parcel) *failure { return d.ship(ctx, p, nil) })
		if f == nil {
			continue
		}
		for _, later := range todo[n+1:] {
			d.unsent(dest, later, f)
		}
		return f
	}
	return nil
}

// oneByOne sends parts one after the other and goes on after a failure. A message
// that breaks its connection takes with it whatever else is on the way there, so
// at once all parts would look guilty. Few events are parts of their own: the
// search inside a part costs connections, and with them the time of the rest.
func (d *delivery) oneByOne(ctx context.Context, dest *destination, events []int) {
	todo := inParts(events)
	if len(events) <= 2*parts {
		todo = slices.Collect(slices.Chunk(events, 1))
	}
	for n, part := range todo {
		f := d.pack(ctx, dest, part, func(p parcel) *failure { return d.ship(ctx, p, nil) })
		if f == nil || !f.nothingSent && ctx.Err() == nil {
			continue
		}
		for _, later := range todo[n+1:] {
			d.unsent(dest, later, f)
		}
		return
	}
}

// scatter sends events in parts, all at once, to learn which part it is that
// the broker does not answer to. It returns the first failure in their order.
func (d *delivery) scatter(ctx context.Context, dest *destination, events []int) *failure {
	var sends errgroup.Group // without a limit: the destination's slots are one
	failures := make([]*failure, parts)
	for i, part := range inParts(events) {
		sends.Go(func() error {
			failures[i] = d.pack(ctx, dest, part, func(p parcel) *failure { return d.ship(ctx, p, nil) })
			return nil
		})
	}
	_ = sends.Wait() // outcomes carry the errors
	for _, f := range failures {
		if f != nil {
			return f
		}
	}
	return nil
}

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
	f := d.retried(ctx, p.dest, patience{hunting: h != nil, many: p.single == nil}, p.send)
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
// where its order counts.
func (d *delivery) unanswered(ctx context.Context, p parcel, f *failure) *failure {
	if f.doubtful() {
		if p.single == nil && ctx.Err() == nil {
			if d.ordered(p) {
				return d.inTurn(ctx, p.dest, inParts(p.events))
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

// patience says how long retried goes on.
type patience struct {
	// hunting ends it at the first try of a batch that broke the connection. A
	// message alone has two: the first may meet what another one has broken.
	hunting bool
	// many ends it at the first try that was not answered: it is sent in parts
	// then.
	many bool
}

// maxTries bounds the tries of one send where ctx has no deadline.
const maxTries = 8

// retried runs call on a sender of dest until it succeeds, fails for a reason
// that waiting will not mend, its patience is over, or ctx is nearly over.
func (d *delivery) retried(ctx context.Context, dest *destination, until patience, call func(context.Context, *sender) error) *failure {
	broke, fresh := 0, false
	var f, before *failure
	for try := 1; ; try++ {
		before = f
		if f = d.p.use(ctx, dest, call); f == nil {
			return nil
		}
		if ctx.Err() != nil {
			return cutOff(ctx, f, before)
		}
		if f.stale && !fresh {
			fresh = true
			continue
		}
		if f.action != retry {
			return f
		}
		if !f.nothingSent && (f.kind == KindConnection || f.kind == KindBroker) {
			// The link could be opened and the send broke it, twice: no outage of
			// the network looks like that, a poison message does.
			if broke++; broke == 2 || until.hunting && until.many {
				f.action = bisect
				return f
			}
		}
		if until.many && !f.nothingSent && f.kind == KindTimeout {
			return f
		}
		if try == maxTries || !sleep(ctx, d.p.pause(f.kind, try)) {
			return f
		}
	}
}

// cutOff is the failure of a send that ctx ended. What was sent may have
// arrived all the same. before is what the last whole try said, nil where there
// was none: it tells more than that the time is over.
func cutOff(ctx context.Context, last, before *failure) *failure {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return &failure{policy: policy{action: giveBack}, err: fmt.Errorf("not confirmed before the stop: %w", cause)}
	case before != nil:
		return &failure{
			policy: policy{kind: before.kind, action: giveBack}, condition: before.condition, nothingSent: before.nothingSent,
			err: fmt.Errorf("not confirmed in time: %w; before that: %w", cause, before.err),
		}
	default:
		return &failure{
			policy: policy{kind: KindTimeout, action: giveBack}, nothingSent: last.nothingSent,
			err: fmt.Errorf("not confirmed in time: %w; the last try: %w", cause, last.err),
		}
	}
}

// pause is how long to wait before the next try: short, doubling up to five
// seconds, with jitter. After server-busy the service asks for two seconds
// (azure-docs, service-bus-throttling.md: error code 50009).
func pause(kind Kind, try int) time.Duration {
	base := 200 * time.Millisecond
	if kind == KindThrottled {
		base = 2 * time.Second
	}
	wait := min(base<<min(try-1, 5), 5*time.Second)
	return wait/2 + rand.N(wait)
}

// sleep waits, and returns false, at once, when ctx would end before.
func sleep(ctx context.Context, wait time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *delivery) fill(m *message, event int) error {
	e := &d.events[event]
	route, _ := d.p.cfg.Routes.Lookup(routeKey(e)) // it has one: it is in a group
	return m.fill(d.ids[event], route, e)
}

// ordered says whether the order of the parcel's events counts at the broker.
func (d *delivery) ordered(p parcel) bool {
	route, _ := d.p.cfg.Routes.Lookup(routeKey(&d.events[p.events[0]]))
	return route.ordered()
}

func (d *delivery) refuse(event int, err error) {
	d.outcomes[event] = worker.Outcome{Verdict: worker.Refused, Err: err}
}

// unsent gives events back that have no outcome yet.
func (d *delivery) unsent(dest *destination, events []int, f *failure) {
	outcome := worker.Outcome{Verdict: worker.Unsent, Err: d.p.destinationError(dest, f)}
	for _, i := range events {
		d.outcomes[i] = outcome
	}
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
	measured := d.p.use(ctx, p.dest, func(ctx context.Context, s *sender) (err error) {
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
