package servicebus

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

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
	own      *connection // in quarantine; nil until something may break it
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
				d.inOrder(ctx, g, doubted, broke)
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
	if d.own != nil {
		d.p.quarantine.leave(d.own)
	}
}

// connection is the one for the next try.
func (d *delivery) connection(apart bool) *connection {
	if !apart {
		return d.p.next()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.own == nil {
		d.own = d.p.connection()
		d.p.quarantine.enter(d.own)
	}
	return d.own
}

// shipper ships parcels as they are packed, none of them hunted yet.
func (d *delivery) shipper(ctx context.Context, apart bool) func(parcel) *failure {
	return func(p parcel) *failure {
		p.apart = apart
		return d.ship(ctx, p, nil)
	}
}

// inOrder sends a group one batch after the other, in parts where some of its
// events are in doubt. What follows a failure waits.
func (d *delivery) inOrder(ctx context.Context, g *group, doubted []int, broke bool) {
	todo := [][]int{g.events}
	if len(doubted) > 0 {
		todo = inParts(g.events)
	}
	d.inTurn(ctx, g.dest, todo, broke) // outcomes carry the failure
}

// inTurn sends parts one after the other. After a failure the rest is not tried;
// inTurn returns that failure.
func (d *delivery) inTurn(ctx context.Context, dest *destination, todo [][]int, apart bool) *failure {
	for n, events := range todo {
		f := d.pack(ctx, dest, events, d.shipper(ctx, apart))
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
		f := d.pack(ctx, dest, part, d.shipper(ctx, true))
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
			failures[i] = d.pack(ctx, dest, part, d.shipper(ctx, false))
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
