package maintenance

import (
	"database/sql"
	"fmt"
	"time"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/sqlserver"
)

const (
	// clockSkew is for the clocks of applications that write created_at
	// themselves; a wrong time zone is a quarter of an hour off at least.
	clockSkew = time.Minute
	// zonesApart is how far two zones are apart at most, from UTC-12 to UTC+14.
	// Local time in the place of UTC is off by no more.
	zonesApart = 26 * time.Hour
)

// DoubtfulTimes are the events of which processed_at lies in the future or before
// created_at, by more than a minute: no worker of this project writes that, for
// the database's clock tells it the time. They hold up no other event. The counts
// are of the rows that were looked at: of a plan, that is at least so many.
type DoubtfulTimes struct {
	// ShiftedRows are off by no more than time zones are apart: a writer or some
	// other worker takes local time for UTC. They stay 26 hours longer, and then
	// they go. Other rows of such a worker may look older than they are and nothing
	// shows it; so while there are shifted rows, nothing goes that may be in flight
	// still, which matters where the retention is shorter than 26 hours.
	ShiftedRows    int64  `json:"shifted_rows"`
	FirstShiftedID *int64 `json:"first_shifted_id,string"`
	// StrayRows are off by more than any zone explains: they stay until somebody
	// has mended them.
	StrayRows    int64  `json:"stray_rows"`
	FirstStrayID *int64 `json:"first_stray_id,string"`
	LastStrayID  *int64 `json:"last_stray_id,string"`
	// Remedy is what a person can do.
	Remedy string `json:"remedy"`
}

const cannotBe = "a processed_at in the future or before created_at"

// Shifted says what there is to know of those rows; empty where there are none.
func (d *DoubtfulTimes) Shifted() string {
	if d == nil || d.ShiftedRows == 0 {
		return ""
	}
	return fmt.Sprintf("at least %s with %s by hours, the first has the id %d: a writer or a worker takes local time for UTC; they go 26 hours later than others", quantity.Of(d.ShiftedRows, "event"), cannotBe, *d.FirstShiftedID)
}

// Stray says what there is to know of those rows; empty where there are none.
func (d *DoubtfulTimes) Stray() string {
	if d == nil || d.StrayRows == 0 {
		return ""
	}
	return fmt.Sprintf("at least %s with %s by more than a day, the first has the id %d: they stay, because nobody can say when they are old enough", quantity.Of(d.StrayRows, "event"), cannotBe, *d.FirstStrayID)
}

// doubt takes in what one look, or a whole walk, found: looks of a plan overlap,
// so the most that one of them saw is what there is for certain.
func (p *PurgePlan) doubt(t Target, o oddities) {
	if o.shifted == 0 && o.stray == 0 {
		return
	}
	if p.Doubtful == nil {
		p.Doubtful = &DoubtfulTimes{}
	}
	d := p.Doubtful
	d.ShiftedRows, d.StrayRows = max(d.ShiftedRows, o.shifted), max(d.StrayRows, o.stray)
	d.FirstShiftedID = lower(d.FirstShiftedID, o.shiftedID)
	d.FirstStrayID = lower(d.FirstStrayID, o.strayID)
	d.LastStrayID = higher(d.LastStrayID, o.lastStrayID)
	d.Remedy = "mend the clock that writes local time"
	if d.StrayRows > 0 {
		d.Remedy = "mend what wrote them, then run this until it changes no row, and their retention begins today: " + d.mend(t, p.Cutoff)
	}
}

func lower(known *int64, found sql.NullInt64) *int64 {
	if !found.Valid || known != nil && *known <= found.Int64 {
		return known
	}
	return &found.Int64
}

func higher(known *int64, found sql.NullInt64) *int64 {
	if !found.Valid || known != nil && *known >= found.Int64 {
		return known
	}
	return &found.Int64
}

// mend is the statement for all stray rows that are known. It leaves alone what may
// be in flight: an open receipt knows its events by processed_at, and with another
// one they would not come back when the lease is over. It stays below the number of
// locks at which they would become one on the table.
func (d *DoubtfulTimes) mend(t Target, cutoff time.Time) string {
	return fmt.Sprintf("UPDATE TOP (%d) %s SET created_at = SYSUTCDATETIME(), processed_at = SYSUTCDATETIME() WHERE id BETWEEN %d AND %d AND status = 1 AND (processed_at > DATEADD(HOUR, %d, SYSUTCDATETIME()) OR processed_at < '%s' AND DATEDIFF_BIG(MILLISECOND, processed_at, created_at) > %d) AND NOT EXISTS (SELECT 1 FROM %s AS r WHERE r.claimed_at = processed_at)",
		sqlserver.MaxBatch, t.Events(), *d.FirstStrayID, *d.LastStrayID, zonesApart/time.Hour, cutoff.UTC().Format("2006-01-02T15:04:05.000"), zonesApart.Milliseconds(), t.Receipts())
}

// shifted says that some clock is taken to tell local time.
func (p *PurgePlan) shifted() bool { return p.Doubtful != nil && p.Doubtful.ShiftedRows > 0 }

// hold takes a cutoff over. While some clock is taken to tell local time it is far
// enough back that what looks older was settled long ago in any zone.
func (p *PurgePlan) hold(cut cutoff) {
	p.Cutoff, p.OpenReceipts, p.LeaseSeconds = cut.at, cut.receipts, cut.lease.Seconds()
	if !cut.held {
		p.HeldBackBy = nil
	}
	if settled := cut.now.Add(-zonesApart - 2*cut.lease); p.shifted() && settled.Before(p.Cutoff) {
		p.Cutoff = settled
	}
}

// shiftedCutoff is up to where events with shifted times are old enough.
func shiftedCutoff(cutoff time.Time) time.Time {
	if at := cutoff.Add(-zonesApart); at.After(time.Time{}) {
		return at
	}
	return time.Time{} // the first that DATETIME2 holds
}
