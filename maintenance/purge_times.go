package maintenance

import (
	"fmt"
	"time"

	"azsqloutbox/internal/quantity"
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
// the database's clock tells it the time. They do not stop a purge. The counts are
// of the rows that were looked at: of a plan, that is at least so many.
type DoubtfulTimes struct {
	// ShiftedRows are off by no more than time zones are apart: some worker or
	// writer takes local time for UTC. Where a worker does, other rows of its may
	// look older than they are and nothing shows it; so while there are such rows
	// everything stays 26 hours longer, and then they go too.
	ShiftedRows    int64  `json:"shifted_rows"`
	FirstShiftedID *int64 `json:"first_shifted_id,string"`
	// StrayRows are off by more than any zone explains: they stay until somebody
	// has mended them, and hold up nothing else.
	StrayRows    int64  `json:"stray_rows"`
	FirstStrayID *int64 `json:"first_stray_id,string"`
	// Remedy is what a person can do.
	Remedy string `json:"remedy"`
}

// Found says it in a sentence.
func (d DoubtfulTimes) Found() string {
	const what = "a processed_at in the future or before created_at"
	var text string
	if d.ShiftedRows > 0 {
		text = fmt.Sprintf("at least %s with %s by hours, the first has the id %d: a worker or a writer takes local time for UTC, and until none is left all events stay 26 hours longer", quantity.Of(d.ShiftedRows, "event"), what, *d.FirstShiftedID)
	}
	if d.StrayRows > 0 {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("at least %s with %s by more than a day, the first has the id %d: they stay, because nobody can say when they are old enough", quantity.Of(d.StrayRows, "event"), what, *d.FirstStrayID)
	}
	return text
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
	first := func(known *int64, rows, id int64) *int64 {
		if rows == 0 || known != nil && *known <= id {
			return known
		}
		return &id
	}
	d.FirstShiftedID = first(d.FirstShiftedID, o.shifted, o.shiftedID.Int64)
	d.FirstStrayID = first(d.FirstStrayID, o.stray, o.strayID.Int64)
	d.Remedy = "mend the clock that writes local time"
	if d.StrayRows > 0 {
		// An open receipt knows its events by processed_at: with another one they
		// would not come back when the lease is over.
		d.Remedy = fmt.Sprintf("mend what wrote them, then let their retention begin today: UPDATE %s SET created_at = SYSUTCDATETIME(), processed_at = SYSUTCDATETIME() WHERE id = %d AND status = 1 AND NOT EXISTS (SELECT 1 FROM %s AS r WHERE r.claimed_at = processed_at)",
			t.Events(), *d.FirstStrayID, t.Receipts())
	}
}

// shifted says that some clock is taken to tell local time.
func (p *PurgePlan) shifted() bool { return p.Doubtful != nil && p.Doubtful.ShiftedRows > 0 }

// apart is by how much a row that may be deleted may have been created after it
// was processed.
func (p *PurgePlan) apart() time.Duration {
	if p.shifted() {
		return zonesApart // and the cutoff is as much earlier
	}
	return clockSkew
}

// hold takes a cutoff over, earlier while clocks are in doubt.
func (p *PurgePlan) hold(cut cutoff) {
	p.Cutoff, p.OpenReceipts, p.LeaseSeconds = cut.at, cut.receipts, cut.lease.Seconds()
	if p.shifted() {
		p.Cutoff = cut.at.Add(-zonesApart)
		if p.Cutoff.Before(time.Time{}) {
			p.Cutoff = time.Time{} // the first that DATETIME2 holds
		}
	}
}
