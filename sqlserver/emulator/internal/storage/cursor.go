package storage

import (
	"context"
	"time"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// ReadMode is how a scan reads rows.
type ReadMode uint8

const (
	// ReadVersion reads the statement's snapshot and the transaction's own
	// changes. It takes no row locks and waits only for Sch-M.
	ReadVersion ReadMode = iota
	// ReadDirty reads what is there, committed or not (NOLOCK).
	ReadDirty
	// ReadLocked locks each row before it reads the newest version.
	ReadLocked
)

// Bound is one end of a range on an index key: the rows whose first
// len(Prefix) key parts are above (or below) Prefix, or equal to it when
// Inclusive. Not Set means no bound.
type Bound struct {
	Prefix    []sqltype.Value
	Inclusive bool
	Set       bool
}

// ScanRequest says what to read and how.
type ScanRequest struct {
	// Index is the index to walk, nil for the clustered index or the heap.
	Index *Index
	// Lower and Upper are ends in key order (for a Desc part, descending
	// order); Reverse walks from Upper to Lower.
	Lower, Upper Bound
	Reverse      bool

	Mode ReadMode
	// Lock is S, U or X, for ReadLocked.
	Lock LockMode
	// Base says that the plan needs columns outside Index: the base row's key is
	// locked after the index key.
	Base bool
	// ReadPast passes over rows whose lock is not free at once. A table lock is
	// waited for all the same.
	ReadPast bool
	// NoWait fails with ErrLockTimeout instead of waiting.
	NoWait bool
	// TableLock locks the table instead of its rows: S for S, X for U and X
	// (UPDLOCK with TABLOCK is X, says the page on table hints).
	TableLock bool
	// Hold keeps S locks to the end of the transaction. U and X locks stay
	// always.
	Hold bool
}

// Cursor is a running scan.
type Cursor struct {
	tx      *Txn
	ctx     context.Context
	access  *access
	index   *Index
	r       ScanRequest
	timeout time.Duration
	// instant says that row locks are given back once the row is read.
	instant bool

	opened bool
	// from is where the next chunk begins: the first edge, later the last entry
	// seen. until is the other edge. current is the entry being locked.
	from, until, current *entry
	edges                [2]entry
	places               [2]version // of the edges
	chunk                int
	exhausted            bool
	// passed counts entries that were met and gave no row.
	passed int64

	// What fill brought: rows, or in a locking scan the entries to lock.
	rows    []Row
	entries []*entry
	next    int

	// taken are the locks that this scan took for the last row.
	taken [2]struct {
		held *heldLock
		on   *entry
	}
}

// Scans fetch a few entries first, for seeks, and then more at a time.
const (
	firstChunk = 8
	lastChunk  = 256
)

// Scan starts a scan; errors come from Next. Between two calls of Next the
// transaction may do anything, but what it inserts ahead of the scan may be
// met by it: a statement that changes what it reads collects its rows first.
func (tx *Txn) Scan(ctx context.Context, t *Table, r ScanRequest) *Cursor {
	c := new(Cursor)
	c.Begin(ctx, tx, t, r)
	return c
}

// Begin is Scan with a cursor that is new or closed: a join that seeks once a
// row need not make one each time.
func (c *Cursor) Begin(ctx context.Context, tx *Txn, t *Table, r ScanRequest) {
	*c = Cursor{
		tx: tx, ctx: ctx, access: tx.access(t), index: r.Index, r: r, chunk: firstChunk,
		rows: c.rows[:0], entries: c.entries[:0],
	}
	if c.index == nil {
		c.index = t.base
	}
	if tx.iso == Serializable && r.Mode == ReadLocked {
		c.r.TableLock = true
	}
	if tx.iso == RepeatableRead || tx.iso == Serializable {
		c.r.Hold = true
	}
	c.timeout = tx.session.LockTimeout
	if r.NoWait {
		c.timeout = 0
	}
	c.instant = r.Lock == S && !c.r.Hold
	c.edges = [2]entry{edge(r.Lower, -1, &c.places[0]), edge(r.Upper, +1, &c.places[1])}
	c.from, c.until = &c.edges[0], &c.edges[1]
	if r.Reverse {
		c.from, c.until = c.until, c.from
	}
}

// edge is the place in an index where a bound cuts; outside is -1 for a lower
// bound and +1 for an upper one.
func edge(b Bound, outside int8, of *version) entry {
	if !b.Set {
		return entry{edge: outside, keyed: true}
	}
	if !b.Inclusive {
		outside = -outside
	}
	of.values = b.Prefix
	return entry{edge: outside, keyed: true, of: of, parts: uint16(len(b.Prefix))}
}

// Next returns the next row, or false at the end. Errors are ErrLockTimeout,
// ErrDeadlock (the caller rolls the transaction back), ErrIndexGone when the
// index was dropped before the scan could begin, and the context's.
func (c *Cursor) Next() (Row, bool, error) {
	if !c.opened {
		if err := c.open(); err != nil {
			return Row{}, false, err
		}
	}
	c.taken[0].held, c.taken[1].held = nil, nil
	for {
		if c.r.Mode != ReadLocked && c.next < len(c.rows) {
			c.next++
			return c.rows[c.next-1], true, nil
		}
		if c.r.Mode == ReadLocked && c.next < len(c.entries) {
			c.next++
			row, ok, err := c.lockAndRead(c.entries[c.next-1])
			if ok || err != nil {
				return row, ok, err
			}
			c.passed++
			continue
		}
		if c.exhausted {
			return Row{}, false, nil
		}
		if err := c.ctx.Err(); err != nil {
			return Row{}, false, err
		}
		c.fill()
	}
}

// open takes the table lock.
func (c *Cursor) open() error {
	if c.tx.done {
		return ErrTxnDone
	}
	mode, keep := SchS, false
	if c.r.Mode == ReadLocked {
		switch {
		case c.r.TableLock && c.r.Lock == S:
			mode, keep = S, c.r.Hold
		case c.r.TableLock:
			mode, keep = X, true
		case c.r.Lock == S:
			mode, keep = IS, c.r.Hold
		default:
			mode, keep = IX, true
		}
	}
	waited, err := c.tx.lockTable(c.ctx, c.access, mode, keep, c.timeout)
	if err != nil {
		return err
	}
	if c.r.Mode == ReadVersion && (!c.tx.snap.taken || waited && c.tx.iso != Snapshot) {
		// Whoever had the table may have rewritten its rows: a snapshot from
		// before the wait would show them in their old width.
		c.tx.db.history.end(&c.tx.snap)
		c.tx.db.history.take(&c.tx.snap)
	}
	if c.access.table.indexes[c.index.slot] != c.index {
		return ErrIndexGone
	}
	c.opened = true
	return nil
}

// fill fetches the next chunk.
func (c *Cursor) fill() {
	t := c.access.table
	c.rows, c.entries, c.next = c.rows[:0], c.entries[:0], 0
	seen := 0
	visit := func(e *entry) bool {
		if e == c.from {
			return true
		}
		if c.r.Reverse && !c.index.less(c.until, e) || !c.r.Reverse && !c.index.less(e, c.until) {
			c.exhausted = true
			return false
		}
		if seen == c.chunk {
			return false
		}
		seen++
		c.read(e)
		c.from = e
		return true
	}
	full := c.chunk
	t.mu.RLock()
	if c.r.Reverse {
		c.index.tree.DescendHint(c.from, visit, c.access.nearIn(c.index))
	} else {
		c.index.tree.AscendHint(c.from, visit, c.access.nearIn(c.index))
	}
	t.mu.RUnlock()
	if seen < full {
		c.exhausted = true
	}
	c.chunk = min(c.chunk*4, lastChunk)
}

// read keeps what there is to return, or to lock, at an entry. The table's
// mutex is held.
func (c *Cursor) read(e *entry) {
	own := c.tx.status
	switch c.r.Mode {
	case ReadVersion:
		if v := e.rec.at(c.tx.snap.at, own); c.index.sees(v, e) {
			c.rows = append(c.rows, Row{RowRef: RowRef{e.rec.id, e.rec}, Values: v.values})
		}
	case ReadDirty:
		if v := e.rec.head; c.index.sees(v, e) {
			c.rows = append(c.rows, Row{RowRef: RowRef{e.rec.id, e.rec}, Values: v.values})
		}
	case ReadLocked:
		// A ghost of an open transaction is locked like a row: it may come back.
		if e.ghost == nil || !own.settled(e.ghost) {
			c.entries = append(c.entries, e)
		}
	}
}

// Passed is how many entries the scan met that gave no row: those that READPAST
// skipped, and those whose row had gone by the time their lock was there. Entries
// of versions that a plain read does not see are not counted.
func (c *Cursor) Passed() int64 { return c.passed }

// Skip says that the row last returned does not qualify after all: the locks
// that this scan took for it are released.
func (c *Cursor) Skip() {
	for i := range c.taken {
		l := &c.taken[i]
		c.tx.db.locks.release(l.held, l.on, c.r.Lock)
		l.held = nil
	}
}

// Close ends the scan. It may be called twice.
func (c *Cursor) Close() {
	if cap(c.rows) > firstChunk || cap(c.entries) > firstChunk {
		c.rows, c.entries = nil, nil
	}
	c.rows, c.entries, c.next, c.exhausted = c.rows[:0], c.entries[:0], 0, true
}
