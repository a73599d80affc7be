package sizing

// What one event writes to the transaction log from its insert to its purge.
// SQL Server documents no sizes of log records; the arithmetic here counts the
// images of rows and index entries that the log has to carry, and an allowance
// for each record, so it says which design writes how much more than another.
// Query Store's avg_log_bytes_used is the truth, where it is to be had.

// recordBytes is the allowance for a log record beside the row it carries:
// header, keys of the page, alignment. A flip or a commit without a payload is
// seen at about that size in fn_dblog.
const recordBytes = 100

// IndexLog is what an index adds to the log of an event.
type IndexLog struct {
	// EntryBytes is the average size of its entry, the payload included where
	// the index includes it.
	EntryBytes float64
	// PendingOnly: the index is filtered on status = 0, so that the flip takes
	// the entry out and the purge finds none.
	PendingOnly bool
	// FailedOnly: it is filtered on status = 2; few events ever come there.
	FailedOnly bool
	// StatusKey: status is a key column, so that the flip deletes the whole entry
	// and inserts it elsewhere.
	StatusKey bool
}

// Images is how often the log carries the whole entry in the life of an event
// that is inserted, flipped and purged.
func (i IndexLog) Images() int {
	switch {
	case i.FailedOnly:
		return 0
	case i.PendingOnly:
		return 2 // the insert and the flip, whatever the key
	case i.StatusKey:
		return 4 // insert, flip (out and in), purge
	default:
		return 2 // insert and purge
	}
}

// PerEvent is what the index adds to the log of one event.
func (i IndexLog) PerEvent() float64 { return float64(i.Images()) * (i.EntryBytes + recordBytes) }

// RowImages is how often the log carries the whole row: insert and purge.
const RowImages = 2

// LogPerEvent is what an event writes to the log in its life: the row when it is
// inserted and again when it is purged, the few bytes of the flip, and what each
// index adds. With a covering claim index that is about four times the payload.
func LogPerEvent(rowBytes float64, indexes ...IndexLog) float64 {
	total := RowImages*(rowBytes+recordBytes) + recordBytes
	for _, i := range indexes {
		total += i.PerEvent()
	}
	return total
}
