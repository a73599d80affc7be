package worker

import (
	"fmt"
	"sync"
	"time"
)

// pulses are when each loop last moved, and since when each batch is published.
// What they do is bounded by a deadline or by the lease, so one that has not
// moved for longer than all of these together is stuck, and only a restart
// helps. A loop that waits for time to pass, or for another one, rests: it has no
// pulse, and the other one has.
type pulses struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// beat says that a loop moves.
func (p *pulses) beat(loop string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = make(map[string]time.Time)
	}
	p.last[loop] = time.Now()
}

// rest says that a loop has ended, or waits for what others are watched for.
func (p *pulses) rest(loop string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, loop)
}

// stuck names a loop that has not moved for so long.
func (p *pulses) stuck(after time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for loop, at := range p.last {
		if since := time.Since(at); since > after {
			return fmt.Errorf("%s has not moved for %s", loop, since.Round(time.Second))
		}
	}
	return nil
}

// stuckAfter is two leases, in which a batch is published and settled or given
// up, and what else a loop may wait for.
func (c Config) stuckAfter() time.Duration { return 2*c.Lease + time.Minute }

// Alive says whether the loops move; an error means that only a restart helps.
// A database or a broker that is away is no such error: see Ready. It may be
// called at any time.
func (w *Worker) Alive() error { return w.pulses.stuck(w.cfg.stuckAfter()) }
