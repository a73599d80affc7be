package servicebus

import "time"

// Hurry has p wait next to nothing between tries. Call it before the first use.
func Hurry(p *Publisher) {
	p.pause = func(Kind, int) time.Duration { return time.Millisecond }
	p.retries.RetryDelay = time.Millisecond
}

// WaitClosed waits until the senders that died so far are closed.
func WaitClosed(p *Publisher) {
	for _, c := range p.connections {
		c.closings.Wait()
	}
}
