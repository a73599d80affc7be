package maintenance

import (
	"cmp"
	"fmt"
	"time"

	"azsqloutbox/sqlserver"
)

// Purge deletes PROCESSED events that are older than the retention.
//
// It walks windows of ids on the primary key, from the lowest id on, and ends
// where a stretch of rows begins that are all too young; what lies behind is
// never read, so a batch costs the same whatever the table holds. (DELETE TOP (n)
// WHERE status = 1 AND processed_at < … scans the rest of the table as soon as
// fewer than n rows match.)
//
// What it never touches: events that are PENDING or FAILED, that have no
// processed_at, or that an open receipt may still name. A receipt names rows
// whose processed_at is its own claimed_at, so everything from the oldest open
// receipt's claimed_at on stays, whether this version can read its list of ids
// or not. Nor what may look older than it is (DoubtfulTimes).
type Purge struct {
	Target
	// Retention is how long an event stays after it was processed, in whole
	// seconds; at least MinRetention, and at least twice the lease of the workers.
	Retention time.Duration
	// Batch is the most rows a statement deletes; default and most
	// sqlserver.MaxBatch. It is lowered and raised again by how long the last
	// statement took.
	Batch int
	// Pause is the least pause between two batches, jittered; default none. It
	// grows while the database is short of log rate.
	Pause time.Duration
	// MaxDuration ends the run after so long; zero is no limit.
	MaxDuration time.Duration
	// Window is when it may work, by the database's clock; the zero value is all
	// day. Run ends at once outside of it, and stops when it closes.
	Window Hours
}

// MinRetention is the least Retention. Between a claim's taking its time and its
// receipt's being there lies one request of a worker, which waits for locks for
// seconds at most; the retention must be longer than that by far.
const MinRetention = time.Minute

func (p Purge) withDefaults() Purge {
	p.Target = p.Target.withDefaults()
	p.Batch = cmp.Or(p.Batch, sqlserver.MaxBatch)
	return p
}

// Validate names the field that cannot be.
func (p Purge) Validate() error {
	p = p.withDefaults()
	switch {
	case p.Retention < MinRetention || p.Retention%time.Second != 0:
		return fmt.Errorf("field Retention is %s, must be whole seconds and at least %s", p.Retention, MinRetention)
	case p.Retention > longestRetention:
		return fmt.Errorf("field Retention is %s, must be at most %s", p.Retention, longestRetention)
	case p.Batch < 1 || p.Batch > sqlserver.MaxBatch:
		return fmt.Errorf("field Batch is %d, must be 1 to %d, which keeps a statement's locks below escalation", p.Batch, sqlserver.MaxBatch)
	case p.Pause < 0 || p.Pause > time.Minute:
		return fmt.Errorf("field Pause is %s, must be 0s to 1m", p.Pause)
	case p.MaxDuration < 0:
		return fmt.Errorf("field MaxDuration is %s, must not be negative", p.MaxDuration)
	}
	if err := p.Window.Validate(); err != nil {
		return fmt.Errorf("field Window: %w", err)
	}
	return p.Target.Validate()
}

// longestRetention keeps the seconds inside the INT that DATEADD takes, and the
// cutoff inside the years of DATETIME2.
const longestRetention = 50 * 365 * 24 * time.Hour

// PurgePlan is what a purge finds and would do.
type PurgePlan struct {
	Table string `json:"table"`
	// Now is the database's clock, UTC, when the plan was made.
	Now time.Time `json:"now"`
	// Cutoff: events processed before it are old enough. It is Now less the
	// retention, or the oldest open receipt's claimed_at where that is older; while
	// there are rows with shifted times (DoubtfulTimes), at least 26 hours and two
	// leases before Now.
	Cutoff           time.Time `json:"cutoff"`
	RetentionSeconds int64     `json:"retention_seconds"`
	// LeaseSeconds is the longest lease of the workers and open receipts; where
	// there are none, the worker's default.
	LeaseSeconds float64 `json:"lease_seconds"`
	OpenReceipts int     `json:"open_receipts"`
	// HeldBackBy is the receipt that the cutoff is of; nil where it is the
	// retention's. Its lease has been over for another lease and more, so nobody gives
	// its events back.
	HeldBackBy *HoldingReceipt `json:"held_back_by"`
	// Oldest is the row with the lowest id; nil for an empty table.
	Oldest *OldestRow `json:"oldest"`
	// TableRows is what the catalog says, approximately.
	TableRows int64 `json:"table_rows"`
	PurgeEstimate
	// Doubtful are events with times that cannot be; nil where no look found any.
	Doubtful *DoubtfulTimes `json:"doubtful_times"`
	// InWindow says whether Now is inside the Window.
	InWindow bool `json:"in_window"`
}

// HoldingReceipt is an open receipt, as far as a person needs it.
type HoldingReceipt struct {
	ClaimID    string    `json:"claim_id"`
	Owner      string    `json:"owner"`
	ClaimedAt  time.Time `json:"claimed_at"`
	LeaseUntil time.Time `json:"lease_until"`
}

// OldestRow is the row that a purge begins with.
type OldestRow struct {
	ID        int64     `json:"id,string"`
	CreatedAt time.Time `json:"created_at"`
}

// PurgeResult is what a purge did. Rows are those of the batches that were
// answered: of one whose answer was lost with the connection nobody knows.
type PurgeResult struct {
	PurgePlan
	Rows          int64   `json:"rows"`
	Seconds       float64 `json:"seconds"`
	RowsPerSecond float64 `json:"rows_per_second"`
	// BytesFreed is the size of the deleted rows in the primary key's pages, by
	// the formula that Microsoft's documentation estimates it with: the columns'
	// bytes, of texts as DATALENGTH counts them, and the row's overhead. It is
	// what can be used again once the ghosts are cleaned up; the file does not
	// shrink. Row versions, free space and compression are not in it.
	BytesFreed int64 `json:"bytes_freed"`
	// Windows were looked at, Batches of them had something to delete.
	Windows int64 `json:"windows"`
	Batches int64 `json:"batches"`
	// PendingRows and FailedRows are what the windows held of those, and
	// UnstampedRows what is PROCESSED without a processed_at, which no worker
	// writes; all of them stay.
	PendingRows   int64 `json:"pending_rows"`
	FailedRows    int64 `json:"failed_rows"`
	UnstampedRows int64 `json:"unstamped_rows"`
	// LockedWindows were left to the next run: someone held their rows for half a
	// minute in a way that READPAST does not pass by.
	LockedWindows int64 `json:"locked_windows"`
	// Retries counts statements that were tried again, after a deadlock, a lock
	// timeout or a lost connection.
	Retries int64 `json:"retries"`
	// LogShortages counts the looks, one every 5 s, that found the database short
	// of log rate; each made the pauses longer.
	LogShortages int64 `json:"log_shortages"`
	// Notes are inputs of the pacing that could not be had, and what would help.
	Notes   []string `json:"notes"`
	Stopped Stop     `json:"stopped"`
}

// Stop is why a purge ended.
type Stop string

// The ends of a purge.
const (
	StopDone        Stop = "done"           // nothing is left that is old enough
	StopMaxDuration Stop = "max_duration"   // the time it was given is over
	StopWindow      Stop = "window_closed"  // the window closed
	StopOutside     Stop = "outside_window" // it was closed to begin with: nothing was done
	StopInterrupted Stop = "interrupted"    // the context ended
	StopRefused     Stop = "refused"        // something forbids to go on; the error says what
	StopFailed      Stop = "failed"         // the error says why
)
