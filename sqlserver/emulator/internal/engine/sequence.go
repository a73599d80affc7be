package engine

import (
	"sync"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// sequence is CREATE SEQUENCE. What it gives out is never given back.
type sequence struct {
	objectHeader
	typ       sqltype.Type
	start     int64
	increment int64
	min, max  int64
	cycle     bool
	cached    bool
	cacheSize int64

	mu sync.Mutex
	// next is the number that is given out next; done that there is none.
	next int64
	done bool
	// reserved is how many of the numbers from next on are in the cache: what a
	// crash loses.
	reserved int64
	// last is current_value: the start value until one was taken.
	last int64
	used bool
}

func (q *sequence) errExhausted() error {
	return raise(11728, 16, 1, "The sequence object '%s' has reached its minimum or maximum value. Restart the sequence object to allow new values to be generated.", q.name)
}

// take gives out the next number.
func (q *sequence) take() (int64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.done {
		return 0, q.errExhausted()
	}
	if q.reserved == 0 {
		q.reserved = q.cacheLength()
	}
	n := q.next
	q.last, q.used = n, true
	q.advance()
	q.reserved--
	return n, nil
}

// defaultCache is how many numbers a sequence caches that was made without a
// size. SQL Server's choice is its own (sql-docs, "CREATE SEQUENCE"); 50 is what
// it has been seen to choose.
const defaultCache = 50

func (q *sequence) cacheLength() int64 {
	switch {
	case !q.cached:
		return 1
	case q.cacheSize > 0:
		return q.cacheSize
	}
	return defaultCache
}

// loseCache is what an unexpected end of the server does: the numbers that are
// cached and were not given out never will be.
func (q *sequence) loseCache() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for ; q.reserved > 0 && !q.done; q.reserved-- {
		q.last, q.used = q.next, true
		q.advance()
	}
	q.reserved = 0
}

// advance moves next on by one increment.
func (q *sequence) advance() {
	next := q.next + q.increment
	over := (q.increment > 0 && (next > q.max || next < q.next)) || (q.increment < 0 && (next < q.min || next > q.next))
	switch {
	case !over:
		q.next = next
	case q.cycle && q.increment > 0:
		q.next = q.min
	case q.cycle:
		q.next = q.max
	default:
		q.done = true
	}
}

// takeRange is sp_sequence_get_range, without cycling.
func (q *sequence) takeRange(size int64) (first, last int64, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if size < 1 {
		return 0, 0, raise(11733, 16, 1, "Parameter '@range_size' must be a positive integer.")
	}
	if q.done {
		return 0, 0, q.errRange()
	}
	if q.cycle {
		return 0, 0, notModelled("sp_sequence_get_range of a sequence that cycles")
	}
	if uint64(size-1) > q.steps() {
		return 0, 0, q.errRange()
	}
	first = q.next
	last = first + (size-1)*q.increment
	q.next = last
	q.last, q.used = last, true
	q.advance()
	q.reserved = max(0, q.reserved-size)
	return first, last, nil
}

// steps is how many increments there are from next to the limit.
func (q *sequence) steps() uint64 {
	if q.increment > 0 {
		return uint64(q.max-q.next) / uint64(q.increment)
	}
	return uint64(q.next-q.min) / uint64(-q.increment)
}

func (q *sequence) errRange() error {
	return raise(11732, 16, 1, "The requested range for sequence object '%s' exceeds the maximum or minimum limit. Retry with a smaller range.", q.name)
}

// alter changes the settings by edit, and where the numbers go on when restart
// is set. An error of edit changes nothing.
func (q *sequence) alter(restart *int64, edit func(now *sequence) error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := &sequence{
		typ: q.typ, start: q.start, increment: q.increment, min: q.min, max: q.max,
		cycle: q.cycle, cached: q.cached, cacheSize: q.cacheSize,
	}
	if err := edit(now); err != nil {
		return err
	}
	changed := now.increment != q.increment
	q.increment, q.min, q.max = now.increment, now.min, now.max
	q.cycle, q.cached, q.cacheSize = now.cycle, now.cached, now.cacheSize
	q.reserved = 0
	switch {
	case restart != nil:
		q.start, q.next, q.last, q.done, q.used = *restart, *restart, *restart, false, false
	case changed && q.used && !q.done:
		q.next = q.last
		q.advance()
	}
	return nil
}
