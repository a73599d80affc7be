package servicebus

import "time"

// Hurry has p wait next to nothing between tries. Call it before the first use.
func Hurry(p *Publisher) { Pace(p, time.Millisecond) }

// Pace has p wait so long between tries, and azservicebus about as long. Call it
// before the first use.
func Pace(p *Publisher, pause time.Duration) {
	p.pause = func(Kind, int) time.Duration { return pause }
	p.retries.RetryDelay = pause
}

// Leaving is how many abandoned clients, dead senders and connections in quarantine
// p keeps.
func Leaving(p *Publisher) (n int) {
	for _, c := range p.connections {
		c.mu.Lock()
		n += len(c.leaving)
		if c.client != nil {
			n += len(c.client.open) - len(c.client.serving)
		}
		c.mu.Unlock()
	}
	p.quarantine.mu.Lock()
	defer p.quarantine.mu.Unlock()
	return n + len(p.quarantine.open)
}

// WaitClosed waits until the senders that died so far are closed.
func WaitClosed(p *Publisher) {
	for _, c := range p.connections {
		c.closings.Wait()
	}
}
