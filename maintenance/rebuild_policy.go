package maintenance

import (
	"fmt"
	"math"
	"time"

	"azsqloutbox/internal/quantity"
)

// rebuildState is what is known of an index before it is decided about.
type rebuildState struct {
	object                      int64
	id                          int
	name                        string
	kind                        int // sys.indexes.type
	filter                      string
	filtered, disabled, byHint  bool // byHint: the worker names it in a hint
	fillFactor                  int  // 100 where the catalog says 0
	sequential                  *bool
	leadingID, unresumableKey   bool
	rows                        int64
	measured                    bool // whether the rest was seen
	pages, otherPages           int64
	density, fragmentation, row float64
	ghosts                      int64
	operation                   *ResumableOperation
}

// Types of sys.indexes that ALTER INDEX … REBUILD and this policy are for.
const (
	heapType         = 0
	clusteredType    = 1
	nonclusteredType = 2
)

// RebuildAction is what happens to an index.
type RebuildAction string

const (
	RebuildNone   RebuildAction = "none"
	RebuildSet    RebuildAction = "set"     // an option that needs no rebuild
	RebuildWhole  RebuildAction = "rebuild" // with the option, where it is to be set
	RebuildResume RebuildAction = "resume"  // go on with a paused rebuild
	RebuildWait   RebuildAction = "wait"    // somebody else rebuilds it now
	RebuildAbort  RebuildAction = "abort"   // give a paused rebuild up
)

const (
	// leastGain is what a rebuild must free, of the index's pages, to be worth
	// writing all of it anew. FILLFACTOR 85 instead of 98 is 13 %; the emptiness
	// that splits and purges leave in the pages of ascending ids is below 5.
	leastGain = 0.05
	// leastPages is 8 MB: below it nobody notices either way.
	leastPages = 1000
	// pageRoom is what a page has for rows and their slots of 2 bytes each
	// (sql-docs, estimate-the-size-of-a-clustered-index.md).
	pageRoom  = 8096
	slotBytes = 2
	pageBytes = 8192
)

// rebuildDecision is what is to be done with an index, and why.
type rebuildDecision struct {
	action RebuildAction
	// set: OPTIMIZE_FOR_SEQUENTIAL_KEY is to be turned on, before a rebuild where
	// there is one.
	set    bool
	reason string
	// frees and log are in bytes, and nil where that of a rebuild is not known
	// because the index was not measured.
	frees, log *int64
}

// decideRebuild says what an index gains. Fragmentation is no reason: it slows
// read-ahead of large scans, and nobody scans this table (sql-docs,
// sys-dm-db-index-physical-stats-transact-sql.md: "Fragmentation alone isn't a
// sufficient reason").
func decideRebuild(s rebuildState, fillFactor int, force, named bool) rebuildDecision {
	d := rebuildDecision{action: RebuildNone, set: s.leadingID && s.sequential != nil && !*s.sequential && !s.disabled}
	after := s.pagesAfter(fillFactor)
	if s.measured {
		log, frees := s.logBytes(after), max(0, s.pages-after)*pageBytes
		d.log, d.frees = &log, &frees
	}
	switch {
	case s.operation != nil && s.operation.State == "RUNNING":
		d.action, d.set = RebuildWait, false
		d.reason = fmt.Sprintf("another session is at it, %.0f %% done", s.operation.PercentComplete)
	case s.operation != nil:
		d.action, d.set = RebuildResume, false // other DDL is refused while it is paused (error 10637)
		d.reason = fmt.Sprintf("its rebuild was paused at %.0f %%: every write pays for two copies until it is done or aborted", s.operation.PercentComplete)
	case s.kind != clusteredType && s.kind != nonclusteredType:
		d.reason = "no rowstore index"
	case s.disabled && (s.byHint || named):
		d.action, d.reason = RebuildWhole, "it is disabled, and a rebuild brings it back"
	case s.disabled:
		d.reason = "it is disabled; name it with --index to bring it back"
	case force:
		d.action, d.reason = RebuildWhole, "forced"
	case !s.measured:
		d.byFillFactor(s, fillFactor)
	case s.pages < leastPages:
		d.reason = quantity.Bytes(s.pages*pageBytes) + " are too small to matter"
	case float64(s.pages-after) < leastGain*float64(s.pages):
		d.reason = fmt.Sprintf("its pages are %.0f %% full and would be about %.0f %%", s.density, s.densityAfter(fillFactor))
	default:
		d.action = RebuildWhole
		d.reason = fmt.Sprintf("its pages are %.0f %% full and would be about %.0f %%: %.0f %% of it is nothing", s.density, s.densityAfter(fillFactor), 100*float64(s.pages-after)/float64(s.pages))
	}
	if d.action == RebuildNone && d.set {
		d.action = RebuildSet
	}
	if d.action != RebuildWhole && d.action != RebuildResume {
		d.log = new(int64)
	}
	if d.action != RebuildWhole {
		d.frees = new(int64)
	}
	return d
}

// byFillFactor decides without knowing the pages: those that were built with
// room in them have it still, as rows do not grow.
func (d *rebuildDecision) byFillFactor(s rebuildState, fillFactor int) {
	if gain := 1 - float64(s.fillFactor)/float64(fillFactor); gain >= leastGain && s.rows > 0 {
		d.action = RebuildWhole
		d.reason = fmt.Sprintf("it was built with fill factor %d: about %.0f %% of it is nothing (its density was not seen)", s.fillFactor, 100*gain)
		return
	}
	d.reason = fmt.Sprintf("its density was not seen, and fill factor %d is no reason", s.fillFactor)
}

// densityAfter is how full the pages would be, in percent. A page takes whole
// rows: on average half a row of the room is left, and when few rows fit, no more
// than those. It is rather too little than too much, so that an index which was
// just rebuilt is not rebuilt again.
func (s rebuildState) densityAfter(fillFactor int) float64 {
	room := pageRoom * float64(fillFactor) / 100
	one := s.row + slotBytes
	whole := max(1, math.Floor(room/one)) * one
	return 100 * max(min(room-one/2, whole), min(one, pageRoom)) / pageRoom
}

func (s rebuildState) pagesAfter(fillFactor int) int64 {
	if !s.measured || s.pages == 0 {
		return 0
	}
	return max(1, int64(math.Ceil(float64(s.pages)*s.density/s.densityAfter(fillFactor))))
}

// logBytes is about what a rebuild writes to the log. An online one is fully
// logged (sql-docs, guidelines-for-online-index-operations.md), so every new page
// is in it once; a clustered one also builds the mapping index, a row of both
// keys for every row (index-disk-space-example.md): one BIGINT, as they are the
// same, and 12 bytes of record and slot. Off-row pages of a clustered index are
// not rewritten. Concurrent changes come on top.
func (s rebuildState) logBytes(pagesAfter int64) int64 {
	log := pagesAfter * pageBytes
	if s.kind == clusteredType {
		log += s.rows * 20
	}
	return log
}

// unresumable says why the rebuild of an index cannot be RESUMABLE (sql-docs,
// alter-index-transact-sql.md, "Resumable index operations"; filtered indexes:
// create-index-transact-sql.md). ALL, SORT_IN_TEMPDB and a transaction around it
// are excluded too; none of them is used here.
func (s rebuildState) unresumable() string {
	switch {
	case s.filtered:
		return "a filtered index"
	case s.disabled:
		return "a disabled index"
	case s.unresumableKey:
		return "a computed or timestamp column in its key"
	}
	return ""
}

// offlineOnly says why an index cannot be rebuilt online.
func (s rebuildState) offlineOnly() string {
	if s.disabled && s.kind == clusteredType {
		return "a disabled clustered index"
	}
	return ""
}

const (
	setSequentialKeySQL = `/* outbox:SetSequentialKey */
ALTER INDEX {index} ON {events}
SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON);`

	rebuildIndexSQL = `/* outbox:RebuildIndex */
ALTER INDEX {index} ON {events}
REBUILD WITH ({how});`

	resumeRebuildSQL = `/* outbox:ResumeRebuild */
ALTER INDEX {index} ON {events}
RESUME WITH ({how});`

	pauseRebuildSQL = `/* outbox:PauseRebuild */
ALTER INDEX {index} ON {events}
PAUSE;`

	abortRebuildSQL = `/* outbox:AbortRebuild */
ALTER INDEX {index} ON {events}
ABORT;`
)

// rebuildHow are the options of REBUILD. ONLINE and RESUMABLE are always said: a
// database may elevate statements that leave them out (ELEVATE_ONLINE,
// ELEVATE_RESUMABLE; sql-docs, guidelines-for-online-index-operations.md).
func (r Rebuild) rebuildHow(s rebuildState, online bool) string {
	how := fmt.Sprintf("FILLFACTOR = %d", r.FillFactor)
	switch {
	case !online:
		how += ", ONLINE = OFF"
	case s.unresumable() != "":
		how += ", ONLINE = ON" + r.lowPriority(" (", ")") + ", RESUMABLE = OFF"
	default:
		how += ", ONLINE = ON" + r.lowPriority(" (", ")") + fmt.Sprintf(", RESUMABLE = ON, MAX_DURATION = %d MINUTES", minutes(r.MaxDuration))
	}
	return how + r.maxDOP()
}

func (r Rebuild) resumeHow() string {
	return fmt.Sprintf("MAX_DURATION = %d MINUTES", minutes(r.MaxDuration)) + r.lowPriority(", ", "") + r.maxDOP()
}

// lowPriority lets others pass while the rebuild waits for its locks, and gives
// up rather than end anybody's transaction.
func (r Rebuild) lowPriority(before, after string) string {
	if r.LowPriorityWait == 0 {
		return ""
	}
	return before + fmt.Sprintf("WAIT_AT_LOW_PRIORITY (MAX_DURATION = %d MINUTES, ABORT_AFTER_WAIT = SELF)", minutes(r.LowPriorityWait)) + after
}

func (r Rebuild) maxDOP() string {
	if r.MaxDOP == 0 {
		return ""
	}
	return fmt.Sprintf(", MAXDOP = %d", r.MaxDOP)
}

func minutes(d time.Duration) int { return int(d / time.Minute) }
