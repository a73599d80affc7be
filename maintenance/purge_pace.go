package maintenance

import "time"

// pace is how much the next batch takes and what comes before it.
type pace struct {
	rows  int
	pause time.Duration
}

// pacer is the policy of a purge's pace. The rows follow how long a batch
// takes, because that is how long its locks are held; the pause follows how
// short the database is of log rate, because that is what every other writer
// waits for.
type pacer struct {
	maxRows  int
	minPause time.Duration
}

const (
	// targetLatency is what a batch may take.
	targetLatency = 250 * time.Millisecond
	// minRows is what a slow database is asked for at the least, where the
	// settings do not say less.
	minRows = 100
	// firstPause is where a pause of zero begins to grow, longestPause where
	// every pause ends to.
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

func (p pacer) start() pace { return pace{rows: p.maxRows, pause: p.minPause} }

// signs are what the database said since the last batch.
type signs struct {
	// took is the time of the last delete; zero where there was none.
	took time.Duration
	// contended: it met a deadlock or a lock timeout, or its connection was lost.
	contended bool
	// news says that the log was looked at, short what that look or an earlier
	// one found: that writers wait for log rate.
	news, short bool
}

func (p pacer) next(c pace, s signs) pace {
	lowest := min(minRows, p.maxRows)
	switch {
	case s.contended || s.took > 2*targetLatency:
		c.rows = max(lowest, c.rows/2)
	case s.took > targetLatency:
		c.rows = max(lowest, c.rows-c.rows/4)
	case s.took > 0 && s.took < targetLatency/2:
		c.rows = min(p.maxRows, c.rows+max(1, p.maxRows/8))
	}
	switch {
	case s.contended:
		c.pause = p.longer(c.pause)
	case s.short && s.news:
		// At least as long as the batch: half the log, at once.
		c.pause = max(p.longer(c.pause), min(s.took, longestPause))
	case s.short: // until the next look shows what that did
	default:
		c.pause = max(p.minPause, c.pause-c.pause/4)
		if c.pause < time.Millisecond {
			c.pause = p.minPause
		}
	}
	return c
}

func (p pacer) longer(pause time.Duration) time.Duration {
	return max(p.minPause, min(longestPause, max(firstPause, 2*pause)))
}
