package maintenance

import (
	"context"
	"time"

	"azsqloutbox/sqlserver"
)

// PurgeEstimate is how much a purge would delete.
type PurgeEstimate struct {
	EstimatedRows  int64 `json:"estimated_rows"`
	EstimatedBytes int64 `json:"estimated_bytes"`
	// Exact says that they were counted, which takes a few looks at most;
	// otherwise samples of the ids were taken.
	Exact bool `json:"estimate_exact"`
}

const (
	// lookahead is how many rows in a row have to be too young before the rest
	// of the table is taken to be. Ids are no order of time: writers take them in
	// blocks and keep the rest of a block for later, so a few hundred young rows
	// may well stand before old ones. Thousands only do where one writer had so
	// many ids at once and was late with them; then the rest waits until they are
	// old enough too. Ending too early loses nothing.
	lookahead = 4000
	// countedWindows, of MaxBatch rows, are counted before it comes to samples.
	countedWindows = 5
	sampleRows     = 100
	sampleSlices   = 32
)

// walk is the order in which windows are looked at, and where it ends.
type walk struct {
	from  int64
	young int64 // rows in a row that are too young
}

// step takes a window of at most rows into account; it returns false when there
// is nothing behind it.
func (w *walk) step(s purgeTexts, l look, rows int, at time.Time) bool {
	if l.seen < int64(rows) {
		return false
	}
	if w.young += l.seen; !l.young(at) {
		w.young = 0
	}
	next, more := s.after(l.last)
	w.from = next
	return more && w.young < lookahead
}

// estimate counts, or samples, what is old enough, reading some 20,000 rows at
// most. looking is a look that notes doubtful times.
func (s purgeTexts) estimate(ctx context.Context, first, last int64, at time.Time, looking func(ctx context.Context, from int64, rows int) (look, error)) (PurgeEstimate, error) {
	var e PurgeEstimate
	var textBytes float64
	w := walk{from: first}
	for n := 0; ; n++ {
		if n == countedWindows {
			break
		}
		l, err := looking(ctx, w.from, sqlserver.MaxBatch)
		if err != nil {
			return e, err
		}
		e.EstimatedRows += l.due
		textBytes += float64(l.textBytes)
		if !w.step(s, l, sqlserver.MaxBatch, at) {
			e.Exact = true
			e.EstimatedBytes = int64(textBytes) + e.EstimatedRows*s.rowBytes
			return e, nil
		}
	}
	border, err := s.border(ctx, w.from, last, at, looking)
	if err != nil {
		return e, err
	}
	rows := float64(e.EstimatedRows)
	for from, width := w.from, gap(w.from, border)/sampleSlices; from < border; {
		l, err := looking(ctx, from, sampleRows)
		if err != nil {
			return e, err
		}
		if l.seen == 0 {
			break
		}
		next, more := s.after(l.last)
		// What the sample has of the ids it spans, the rest of the slice has too.
		spread := 1.0
		if slice := from + int64(width); more && slice > next && slice > from {
			spread = gap(from, min(slice, border)) / gap(from, next)
			next = slice
		}
		rows += float64(l.due) * max(1, spread)
		textBytes += float64(l.textBytes) * max(1, spread)
		if !more {
			break
		}
		from = next
	}
	e.EstimatedRows = int64(rows)
	e.EstimatedBytes = int64(textBytes) + e.EstimatedRows*s.rowBytes
	return e, nil
}

// border is an id near which the rows become too young, found by halving.
func (s purgeTexts) border(ctx context.Context, low, high int64, at time.Time, looking func(ctx context.Context, from int64, rows int) (look, error)) (int64, error) {
	for low < high {
		middle := low + int64((uint64(high)-uint64(low))/2)
		l, err := looking(ctx, middle, sampleRows)
		if err != nil {
			return 0, err
		}
		if l.seen == 0 || l.young(at) {
			high = middle
			continue
		}
		low = max(middle+1, l.last)
	}
	return high, nil
}

// gap is b - a, which int64 may not hold.
func gap(a, b int64) float64 { return float64(b) - float64(a) }
