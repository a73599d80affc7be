package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance/sizing"
)

// Thresholds of section 4: shares of memory and of the log-rate limit.
const (
	memoryWarn = 0.6
	logWarn    = 0.5
	logBad     = 0.8
)

// judgePhysics holds the table against memory and its log against the limit.
func judgePhysics(f physicsFacts, sec Section) Section {
	rows := f.rows()
	row, measured := f.rowBytes()
	average, recent := f.rates()
	perEvent := f.logPerEvent()
	var total float64
	known := false
	for _, z := range f.storage.sizes {
		total += z.usedBytes
		known = known || z.known
	}
	base := f.storage.sizes[f.catalog.base().id]

	sec.figure("rows", rows, Count)
	how := "row size"
	if !measured {
		how = "row size, by arithmetic"
	}
	sec.figure(how, row, Bytes)
	if known {
		sec.figure("table", base.usedBytes, Bytes)
		sec.figure("indexes beside it", total-base.usedBytes, Bytes)
	}
	if f.memory.value > 0 {
		sec.figure("memory ("+f.memory.source+")", f.memory.value, Bytes)
	}
	if f.storage.sample.rows > 0 {
		sec.figure("payload of the newest rows, as stored", f.storage.sample.bytes, Bytes)
		sec.figure("payload of the newest rows, in characters", f.storage.sample.chars, Count)
	}
	if average > 0 {
		sec.figure("events, average over what is kept", average, PerSecond)
	}
	if recent > 0 {
		sec.figure("events, the newest rows", recent, PerSecond)
	}
	sec.figure("log per event, by arithmetic", perEvent, Bytes)
	if f.measuredLog > 0 {
		sec.figure("log per event of the named statements, by Query Store", f.measuredLog, Bytes)
	}
	if f.measuredRate > 0 {
		sec.figure("log of all statements of the outbox, by Query Store", f.measuredRate, BytesPerSec)
		sec.note(fmt.Sprintf("Query Store measured the log of what touches the outbox since %s: %s/s on average, whatever the arithmetic says; bursts are higher.", format(f.measuredFrom, Moment), quantity.Bytes(f.measuredRate)))
	}
	if f.logRate.value > 0 {
		sec.figure("log-rate limit ("+f.logRate.source+")", f.logRate.value, BytesPerSec)
	}
	if known && f.memory.value > 0 {
		sec.Evidence.Gauges = append(sec.Evidence.Gauges, Gauge{"size against memory", total, f.memory.value, Bytes})
	}
	if rate := max(average, recent); rate > 0 && f.logRate.value > 0 {
		sec.Evidence.Gauges = append(sec.Evidence.Gauges, Gauge{"log against its limit", perEvent * rate, f.logRate.value, BytesPerSec})
	}
	f.judgeMemory(total, known, &sec)
	f.judgeLog(perEvent, max(average, recent), &sec)
	if len(sec.Evidence.Findings) == 0 {
		sec = sec.unknown("Neither size nor log could be held against a limit; the notes say why.", "")
	}
	sec.table(f.savings(max(average, recent)))
	sec.note("1 GB is 1,024 MB, as in Azure's limits. What changes would save is arithmetic from these figures; the log of an event counts images of the row and of its index entries, from insert to purge.")
	for _, r := range append([]string{f.storage.sizeReason, f.storage.pageReason, f.storage.sampleReason}, f.reasons...) {
		sec.note(r)
	}
	return sec
}

func (f physicsFacts) judgeMemory(total float64, known bool, sec *Section) {
	switch {
	case !known:
		sec.note("The engine gives no sizes of pages, so whether the table fits in memory cannot be said.")
	case f.memory.value == 0:
		sec.note("What memory this database has is not known, so the size stands alone.")
	case total > f.memory.value:
		less := ""
		if f.inMemory > 0 {
			less = fmt.Sprintf(" (%s of it kept for In-Memory OLTP)", quantity.Bytes(f.inMemory))
		}
		narrow := f.narrowSaves()
		base := f.storage.sizes[f.catalog.base().id].usedBytes
		alone := ""
		if total-base > total/100 {
			alone = fmt.Sprintf(" (the table alone %s)", quantity.Bytes(base))
		}
		text := fmt.Sprintf("The table does not fit in memory: %s rows and their indexes take %s%s, and the whole engine has %s%s, out of which plan cache and locks come too. Past that point reading the queue means reading disk.",
			quantity.Grouped(f.rows()), quantity.Bytes(total), alone, quantity.Bytes(f.memory.value), less)
		if narrow > 0 && total-narrow < f.memory.value {
			text += fmt.Sprintf(" With VARCHAR it would take %s, and fit.", quantity.Bytes(total-narrow))
		}
		sec.find(Bad, text, f.memoryRemedy())
	case total > memoryWarn*f.memory.value:
		sec.find(Warn, fmt.Sprintf("The table and its indexes take %s of %s memory (%s %%), and share it with all else.", quantity.Bytes(total), quantity.Bytes(f.memory.value), quantity.Short(100*total/f.memory.value)), f.memoryRemedy())
	default:
		sec.find(OK, fmt.Sprintf("The table and its indexes take %s of %s memory.", quantity.Bytes(total), quantity.Bytes(f.memory.value)), "")
	}
}

func (f physicsFacts) memoryRemedy() string {
	if f.narrowSaves() > 0 {
		return "fewer rows, then fewer bytes: outboxctl purge with a shorter --retention; outboxctl migrate-varchar; outboxctl rebuild"
	}
	return "keep fewer rows: outboxctl purge with a shorter --retention; then outboxctl rebuild gives the pages back"
}

func (f physicsFacts) judgeLog(perEvent, rate float64, sec *Section) {
	if rate == 0 {
		sec.note(fmt.Sprintf("How many events arrive is not known: that takes rows that are more than a minute apart, or %s of them over %d seconds.", quantity.Grouped(sampleRows), shortestSpan))
		return
	}
	mb := perEvent * rate
	payload := f.storage.sample.bytes
	times := ""
	if payload > 0 {
		times = fmt.Sprintf(", %s times its payload", quantity.Short(perEvent/payload))
	}
	text := fmt.Sprintf("An event writes about %s to the log in its life%s: insert, flip and purge, and every index again. At %s events/s that is %s/s", quantity.Bytes(perEvent), times, quantity.Short(rate), quantity.Bytes(mb))
	if f.logRate.value == 0 {
		sec.find(OK, text+".", "")
		return
	}
	share := mb / f.logRate.value
	text += fmt.Sprintf(", %s %% of the %s/s that are allowed; the limit would be reached at %s events/s.", quantity.Short(100*share), quantity.Bytes(f.logRate.value), quantity.Short(f.logRate.value/perEvent))
	remedy := f.logRemedy()
	switch {
	case share > logBad:
		sec.find(Bad, text+" LOG_RATE_GOVERNOR will slow the whole application down with CPU to spare.", remedy)
	case share > logWarn:
		sec.find(Warn, text, remedy)
	default:
		sec.find(OK, text, "")
	}
}

// logRemedy names the changes that would save log in this table.
func (f physicsFacts) logRemedy() string {
	parts := []string{}
	if f.narrowPerRow() > 0 {
		parts = append(parts, "VARCHAR instead of NVARCHAR (outboxctl migrate-varchar)")
	}
	if slices.ContainsFunc(f.catalog.indexes, func(d indexDef) bool { return d.id > 1 && !d.unique && d.onStatus() == "" }) {
		parts = append(parts, "no index that nobody reads")
	}
	if d, ok := f.catalog.find(f.claimIndex); ok && d.has("payload") {
		parts = append(parts, "the slim claim index, if outboxctl bench claim agrees")
	}
	if len(parts) == 0 {
		return "shorter payloads, or a larger service objective"
	}
	return "fewer bytes an event: " + strings.Join(parts, ", ") + "; or a larger service objective"
}

// narrowSaves is what VARCHAR would free in the table and the indexes that hold
// the payload, in bytes.
func (f physicsFacts) narrowSaves() float64 {
	per := f.narrowPerRow()
	if per <= 0 {
		return 0
	}
	var total float64
	for _, d := range f.catalog.indexes {
		if z := f.storage.sizes[d.id]; d.has("payload") && z.known {
			total += per * float64(z.rows)
		}
	}
	return total
}

// narrowPerRow is what a payload would be shorter in VARCHAR, by the newest rows
// under a UTF-8 collation, which loses nothing.
func (f physicsFacts) narrowPerRow() float64 {
	c, ok := f.catalog.column("payload")
	if !ok || !c.unicode() {
		return 0
	}
	return f.storage.sample.bytes - f.storage.sample.narrow
}

// savings are the changes that would pay, and what.
func (f physicsFacts) savings(rate float64) Table {
	t := Table{
		Title:   "What changes would save",
		Columns: []Column{{"change", Text}, {"memory and disk", Bytes}, {"log per event", Bytes}, {"log", BytesPerSec}, {"by", Text}},
	}
	add := func(change string, bytes, log float64, by string) {
		t.Rows = append(t.Rows, []any{change, bytes, log, log * rate, by})
	}
	if per := f.narrowPerRow(); per > 0 {
		images := sizing.RowImages
		for _, d := range f.catalog.indexes {
			if d.id > 1 && !d.disabled && d.has("payload") {
				images += f.indexLog(d).Images()
			}
		}
		c, _ := f.catalog.column("payload")
		add(c.declaration()+" payload to VARCHAR", f.narrowSaves(), per*float64(images), "outboxctl migrate-varchar")
	}
	var empty float64
	for _, d := range f.catalog.indexes {
		if z := f.storage.sizes[d.id]; z.sampled && d.onStatus() == "" {
			empty += sizing.Emptiness(float64(z.leafPages)*sizing.PageBytes, z.density, 98)
		}
	}
	if empty > sizing.MB {
		add("FILLFACTOR 98", empty, 0, "outboxctl rebuild")
	}
	for _, d := range f.catalog.indexes {
		if d.id <= 1 || d.disabled || d.unique {
			continue
		}
		log, z := f.indexLog(d), f.storage.sizes[d.id]
		switch {
		case d.onStatus() == "0" && d.has("payload"):
			slim := log
			slim.EntryBytes = min(log.EntryBytes, 40)
			add("leave the payload out of "+d.name, float64(z.rows)*(log.EntryBytes-slim.EntryBytes), log.PerEvent()-slim.PerEvent(), "outboxctl bench claim says what the lookups cost")
		case d.onStatus() == "" && !f.ofWorker(d):
			add("drop "+d.name+", if nobody reads it", z.usedBytes, log.PerEvent(), "the section on indexes says who reads it")
		}
	}
	return t
}
