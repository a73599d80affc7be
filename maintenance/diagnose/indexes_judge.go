package diagnose

import (
	"fmt"
	"strings"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance/sizing"
	"azsqloutbox/sqlserver"
)

// Thresholds of section 5.
const (
	// fullEnough is how full pages are, in percent, that were built with no room
	// to grow: in a table that only grows at its end nothing but FILLFACTOR leaves
	// them emptier.
	fullEnough = float64(sqlserver.LeastFillFactor)
	// latchMillis is when an index's waits for page latches are worth a word, and
	// latchAverage when they are a convoy.
	latchMillis  = 60_000
	latchAverage = 1.0
	// headReads is what the first row may cost: the depth of the tree and a page.
	headReads = 50
	// ghostShare is the share of records that are ghosts.
	ghostShare = 0.05
)

func judgeIndexes(f indexFacts, sec Section) Section {
	f.judgeClaimIndex(&sec)
	for _, d := range f.catalog.indexes {
		f.judgeUse(d, &sec)
		f.judgeStatusKey(d, &sec)
		f.judgeFill(d, &sec)
		f.judgeSequential(d, &sec)
		if n := f.latches[d.id].escalations; n > 0 {
			sec.find(Warn, fmt.Sprintf("Locks on %s were escalated to a lock of the whole table %s: READPAST skips locked rows and no locked table, so every claim waits then.", f.nameOf(d), quantity.Of(n, "time")),
				"find the statement that touches 5,000 rows and more (a purge by hand, a report under SERIALIZABLE) and cut it into batches; outboxctl purge stays below")
		}
	}
	f.judgeGhosts(&sec)
	if f.forced {
		sec.find(Warn, "Forced parameterization is on in this database: it turns literals into parameters in statements without a variable or RECOMPILE, and a parameter never matches a filtered index. The worker's statements are safe; scripts, dashboards and KEDA queries are not.",
			"ALTER DATABASE CURRENT SET PARAMETERIZATION SIMPLE;")
	}
	if len(sec.Evidence.Findings) == 0 {
		sec.find(OK, quantity.Of(len(f.catalog.indexes), "index")+", each of them of use; status is in no key, the pages are full.", "")
	}
	sec.table(f.table())
	since := "the engine last started"
	if !f.started.IsZero() {
		since += " (" + format(f.started, Moment) + ")"
	}
	sec.note("Reads and writes count operations, not rows, since " + since + " or the database failed over: an index that serves a monthly job looks unread for a month.")
	if f.catalog.hidden {
		sec.note("The filters of indexes cannot be seen without VIEW DEFINITION; those of the claim and retry indexes are taken to be what the schema makes them. " + f.definitionGrant)
	}
	for _, r := range []string{f.storage.usageReason, f.latchReason, f.storage.sizeReason, f.storage.pageReason, f.storage.head.reason} {
		sec.note(r)
	}
	return sec
}

// remake is said of the two indexes without which a worker stops: never to drop
// them.
const remake = "run the CREATE INDEX … WITH (DROP_EXISTING = ON) that outboxctl schema check prints for it: there is no moment without the index"

// judgeClaimIndex: is there a filtered index that a claim can seek?
func (f indexFacts) judgeClaimIndex(sec *Section) {
	d, ok := f.catalog.find(f.claimIndex)
	first := ""
	if len(d.keys) > 0 {
		first = strings.ToLower(d.keys[0])
	}
	switch {
	case !ok:
		sec.find(Bad, fmt.Sprintf("There is no index %s: a worker stops with error 308, and any other claim scans %s.", f.claimIndex, quantity.Of(f.rows(), "row")), "outboxctl schema apply --execute")
		return
	case d.disabled:
		sec.find(Bad, fmt.Sprintf("The index %s is disabled: nothing uses it, and a worker stops with error 315.", d.name), "outboxctl rebuild --index "+d.name+" --execute")
		return
	case !d.filtered:
		sec.find(Bad, fmt.Sprintf("The index %s has no filter: it holds %s instead of the pending ones alone, and every event stays in it until the purge.", d.name, quantity.Of(f.rows(), "row")), remake)
	case d.filter != "" && d.onStatus() != "0":
		sec.find(Bad, fmt.Sprintf("The index %s is filtered by %s, not by status = 0: the claim cannot use it (error 8622).", d.name, d.filter), remake)
	case first != "event_type":
		sec.find(Bad, fmt.Sprintf("The index %s begins with %s, not with event_type: a claim reads the backlog of all types.", d.name, first), remake)
	}
	if !d.has("payload") || d.onStatus() != "0" {
		return
	}
	log := f.indexLog(d)
	rate := max(f.rates())
	text := fmt.Sprintf("%s includes the payload: the claim needs no lookup, and each event is logged twice more (%s an event", d.name, quantity.Bytes(log.PerEvent()))
	if rate > 0 {
		text += fmt.Sprintf(", %s/s at %s events/s", quantity.Bytes(log.PerEvent()*rate), quantity.Short(rate))
	}
	sec.find(OK, text+"). The slim form trades that for one lookup an event.", "")
}

// judgeUse finds indexes that cost and serve nobody.
func (f indexFacts) judgeUse(d indexDef, sec *Section) {
	if d.id <= 1 || d.disabled || f.storage.usageReason != "" {
		return
	}
	use := f.storage.usage[d.id]
	if use.reads() > 0 {
		return
	}
	if strings.EqualFold(d.name, f.claimIndex) {
		if d.filtered && d.rows > 0 {
			sec.find(Warn, fmt.Sprintf("Nobody has read %s: no worker has claimed since the counters began, or its claims pass it over.", d.name), "look at the section on the claim's plan")
		}
		return
	}
	if d.unique || f.ofWorker(d) || d.onStatus() == "2" || d.filtered && d.filter == "" {
		return // a unique one keeps duplicates out, whoever reads it
	}
	z, log := f.storage.sizes[d.id], f.indexLog(d)
	text := fmt.Sprintf("Nobody reads %s %s, and every event writes it: %s so far", d.name, d.describe(), counted(float64(use.updates), "write"))
	if z.known {
		text += fmt.Sprintf(", %s of memory and disk", quantity.Bytes(z.usedBytes))
	}
	text += fmt.Sprintf(", about %s of log an event.", quantity.Bytes(log.PerEvent()))
	sec.find(Warn, text, fmt.Sprintf("DROP INDEX %s ON %s; -- once you know that no rare job needs it", quote(d.name), f.events))
}

// judgeStatusKey: the flip moves an entry whose key holds status, or takes it out
// where the filter is on status.
func (f indexFacts) judgeStatusKey(d indexDef, sec *Section) {
	if d.id <= 1 || d.disabled || !d.keyed("status") || d.onStatus() != "" {
		return
	}
	log := f.indexLog(d)
	text := fmt.Sprintf("status is a key column of %s: each flip deletes the entry in one place and inserts it in another", d.name)
	if d.has("payload") {
		text += fmt.Sprintf(", the payload with it. That is %s of index for every published event", quantity.Bytes(log.EntryBytes))
	}
	text += fmt.Sprintf(", and %s of log over its life.", quantity.Bytes(log.PerEvent()))
	if f.ofWorker(d) {
		sec.find(Bad, text, remake)
		return
	}
	sec.find(Bad, text, fmt.Sprintf("drop %s: %s has status in its filter, so that a flip only takes the entry out", d.name, f.claimIndex))
}

// judgeFill: pages that were built with room for growth that never comes.
func (f indexFacts) judgeFill(d indexDef, sec *Section) {
	if d.disabled || d.filtered {
		return // a filtered index is emptied within seconds
	}
	if d.keyed("status") || d.id > 1 && !d.unique && f.storage.usageReason == "" && f.storage.usage[d.id].reads() == 0 {
		return // it is to go
	}
	z := f.storage.sizes[d.id]
	empty := 0.0
	if z.sampled {
		empty = sizing.Emptiness(float64(z.leafPages)*sizing.PageBytes, z.density, 98)
	}
	low := d.fillFactor > 0 && d.fillFactor < sqlserver.LeastFillFactor
	switch {
	case z.density < fullEnough && empty > 100*sizing.MB || low && empty > sizing.MB:
		text := fmt.Sprintf("%s is %s %% full: %s of nothing in memory, in every scan and in every backup.", f.nameOf(d), quantity.Short(z.density), quantity.Bytes(empty))
		if low {
			text += fmt.Sprintf(" It was built with FILLFACTOR %d, room for rows to grow. They do not: the version tag of 14 bytes is there from the insert on, and the flip writes columns of fixed length.", d.fillFactor)
		}
		sec.find(Warn, text, "outboxctl rebuild --fillfactor 98 --execute")
	case low && !z.sampled:
		sec.find(Warn, fmt.Sprintf("%s has FILLFACTOR %d: a rebuild would leave %d %% of every page empty, for rows that never grow.", f.nameOf(d), d.fillFactor, 100-d.fillFactor), "outboxctl rebuild --fillfactor 98 --execute")
	case low:
		sec.find(Warn, fmt.Sprintf("%s has FILLFACTOR %d. It does no harm to a table that only grows at its end until the next rebuild applies it.", f.nameOf(d), d.fillFactor), "outboxctl rebuild --fillfactor 98 --execute")
	}
}

func (f indexFacts) nameOf(d indexDef) string {
	if d.name == "" {
		return "the heap"
	}
	return d.name
}

// judgeSequential: every insert goes to the last page.
func (f indexFacts) judgeSequential(d indexDef, sec *Section) {
	if d.id != 1 || d.sequentialKey {
		return
	}
	l := f.latches[d.id]
	average := ratio(float64(l.ms), float64(l.waits))
	remedy := fmt.Sprintf("ALTER INDEX %s ON %s SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON); -- metadata only", quote(d.name), f.events)
	switch {
	case l.ms > latchMillis && average > latchAverage:
		sec.find(Bad, fmt.Sprintf("Inserts queue for the last page: %s for page latches on %s, %s in all, %s each, and OPTIMIZE_FOR_SEQUENTIAL_KEY is off. The page is in memory; neither disk nor CPU is short.",
			quantity.Of(l.waits, "wait"), d.name, duration(float64(l.ms)), duration(average)), remedy)
	case l.ms > latchMillis || f.latchReason != "" && f.pageLatchEX.ms > latchMillis:
		ms := max(l.ms, f.pageLatchEX.ms)
		sec.find(Warn, fmt.Sprintf("OPTIMIZE_FOR_SEQUENTIAL_KEY is off on %s and there were PAGELATCH_EX waits, %s in all: every insert goes to the last page.", d.name, duration(float64(ms))), remedy)
	default:
		sec.find(OK, fmt.Sprintf("OPTIMIZE_FOR_SEQUENTIAL_KEY is off on %s. No latch waits worth a word yet; it costs nothing to turn on.", d.name), remedy)
	}
}

// judgeGhosts: what the purge deleted is still crossed by who reads from the
// head.
func (f indexFacts) judgeGhosts(sec *Section) {
	base := f.storage.sizes[f.catalog.base().id]
	head := f.storage.head
	all := base.ghosts + base.versionGhosts
	share := ratio(float64(all), float64(all+base.records))
	ghosts := ""
	if base.sampled && all > 0 {
		ghosts = fmt.Sprintf(" The pages hold %s (%s %% of the records)", quantity.Of(all, "ghost"), quantity.Short(100*share))
		if base.versionGhosts > 0 {
			ghosts += fmt.Sprintf(", %s of them kept for an open transaction that may read them still", quantity.Grouped(base.versionGhosts))
		}
		ghosts += "."
	}
	const remedy = "let ghost cleanup catch up: purge in smaller batches with pauses, look for old open transactions that hold versions; outboxctl rebuild clears them"
	switch {
	case head.known && head.reads > headReads:
		sec.find(Warn, fmt.Sprintf("Reading the very first row took %s: ghosts of purged rows stand at the head of the table, and whatever reads from there crosses them.%s", quantity.Of(head.reads, "page"), ghosts), remedy)
	case share > ghostShare:
		sec.find(Warn, "Ghost cleanup lags behind the purge."+ghosts, remedy)
	}
}

func (f indexFacts) table() Table {
	t := Table{
		Title: "Indexes of the table",
		Columns: []Column{
			{"index", Text},
			{"rows", Count},
			{"size", Bytes},
			{"full", Percent},
			{"fill factor", Count},
			{"reads", Count},
			{"writes", Count},
			{"log per event", Bytes},
			{"filter", Text},
			{"key", Text},
			{"last read", Moment},
		},
	}
	for _, d := range f.catalog.indexes {
		z, use := f.storage.sizes[d.id], f.storage.usage[d.id]
		var bytes, density, reads, writes, last, log any
		if z.known {
			bytes = z.usedBytes
		}
		if z.sampled {
			density = z.density
		}
		if f.storage.usageReason == "" {
			reads, writes = use.reads(), use.updates
		}
		if !use.last.IsZero() {
			last = use.last
		}
		if d.id > 1 && !d.disabled {
			log = f.indexLog(d).PerEvent()
		}
		fill := d.fillFactor
		if fill == 0 {
			fill = 100
		}
		rows := d.rows
		if z.rows > 0 {
			rows = z.rows
		}
		t.Rows = append(t.Rows, []any{f.nameOf(d), rows, bytes, density, int64(fill), reads, writes, log, d.filter, strings.Join(d.keys, ", "), last})
	}
	return t
}
