package worker

import (
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// outage turns a run of failures of one thing into two log lines: one when it
// begins, one when it ends, with its length and how often it was met.
type outage struct {
	subject string
	log     *zap.Logger

	mu    sync.Mutex
	since time.Time // zero while all is well
	count int
	last  error
}

func (o *outage) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	o.last = err
	if o.since.IsZero() {
		o.since = time.Now()
		o.log.Warn(o.subject+" fails; more of the same is only counted", zap.Error(err))
	}
}

func (o *outage) passed() { o.over("works again") }

// over ends the outage, if there is one, in the given words.
func (o *outage) over(how string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return
	}
	o.log.Info(o.subject+" "+how,
		zap.Duration("after", time.Since(o.since).Round(time.Millisecond)),
		zap.Int("failures", o.count))
	o.since, o.count, o.last = time.Time{}, 0, nil
}

// err is nil while all is well.
func (o *outage) err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return nil
	}
	return fmt.Errorf("%s has been failing for %s: %w", o.subject, time.Since(o.since).Round(time.Second), o.last)
}

// facts are when the outage began, how often it was met and how last.
func (o *outage) facts() (since time.Time, count int, last error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, o.count, o.last
}
