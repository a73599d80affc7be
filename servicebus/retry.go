package servicebus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// manner is how a send is tried.
type manner struct {
	// hunting ends it at the first try of a batch that broke the connection. A
	// message alone has two: the first may meet what another one has broken.
	hunting bool
	// many ends it at the first try that was not answered: it is sent in parts
	// then.
	many bool
	// apart has it tried in quarantine from the beginning, and not only once it broke
	// its connection.
	apart bool
}

// maxTries bounds the tries of one send where ctx has no deadline.
const maxTries = 8

// retried runs call on a sender of dest until it succeeds, fails for a reason
// that waiting will not mend, has tried enough, or ctx is nearly over.
func (d *delivery) retried(ctx context.Context, dest *destination, how manner, call func(context.Context, *sender) error) *failure {
	broke := 0
	var f, before *failure
	for try := 1; ; try++ {
		before = f
		if f = d.p.use(ctx, dest, d.connection(how.apart), call); f == nil {
			return nil
		}
		if ctx.Err() != nil {
			return cutOff(ctx, f, before)
		}
		if f.stale && !f.repeated() && try == 1 {
			continue
		}
		if f.action != retry {
			return f
		}
		if f.repeated() {
			// The link could be opened and the send broke it, twice: no outage of
			// the network looks like that, a poison message does. Others may be on
			// their way over that connection, so the second time is in quarantine.
			how.apart = true
			if broke++; broke == 2 || how.hunting && how.many {
				f.action = bisect
				return f
			}
		}
		if how.many && !f.nothingSent && f.kind == KindTimeout {
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
			policy: policy{kind: before.kind, action: giveBack}, condition: before.condition, nothingSent: before.nothingSent && last.nothingSent,
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
