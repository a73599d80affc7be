package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"azsqloutbox/internal/quantity"
)

// explained are the waits that matter for an outbox (sql-docs,
// sys-dm-os-wait-stats-transact-sql.md; resource-limits-logical-server.md of
// azure-docs on log rate governance). A name that ends in _ stands for all that
// begin so. warn is the share of all waits from which it is worth a finding; 0
// only explains. slow is what one wait must take on average, in ms: of a table
// that is only written, waiting for the log is the largest share, and right so.
var explained = []struct {
	name, means, remedy string
	warn, slow          float64
}{
	{"LOG_RATE_GOVERNOR", "the log-rate limit of the service objective: writers are held back, with CPU to spare", "fewer bytes an event (the section on size says which), or a larger service objective", 0.02, 0},
	{"POOL_LOG_RATE_GOVERNOR", "the log-rate limit of the elastic pool", "fewer bytes an event, or a larger pool", 0.02, 0},
	{"INSTANCE_LOG_RATE_GOVERNOR", "the log-rate limit of the instance", "fewer bytes an event, or a larger service objective", 0.02, 0},
	{"HADR_THROTTLE_LOG_RATE_", "the log is held back because a replica lags", "wait for the replica, or write less log", 0.02, 0},
	{"RBIO_RG_", "the log is held back because Hyperscale's page servers or replicas lag", "write less log; see the section on size", 0.02, 0},
	{"WRITELOG", "a commit waits until its log is written: many small transactions, or slow storage", "commit several events at once; claim larger batches", 0.4, 5},
	{"HADR_SYNC_COMMIT", "a commit waits for the secondary replica", "commit several events at once", 0.4, 5},
	{"PAGELATCH_EX", "sessions queue for one page in memory: inserts at the end of an ascending key", "ALTER INDEX … SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON)", 0.15, 0},
	{"PAGELATCH_SH", "readers wait for a page in memory that others write", "", 0, 0},
	{"PAGEIOLATCH_", "pages come from disk: what is read is not in memory", "keep fewer rows and fewer bytes a row; see the section on size", 0.3, 0},
	{"LCK_M_", "sessions wait for each other's locks", "look for long transactions, statements without READPAST or ROWLOCK, and lock escalation", 0.2, 0},
	{"RESOURCE_SEMAPHORE", "statements wait for memory to sort or hash in", "look for the statement with the large grant: a sort or hash over the whole table", 0.02, 0},
	{"THREADPOOL", "no worker thread is free", "fewer connections and lanes, or a larger service objective", 0.01, 0},
	{"SOS_SCHEDULER_YIELD", "runnable threads take turns: the CPU is busy", "", 0, 0},
	{"CXPACKET", "parallel plans wait for their slowest thread; nothing of the outbox needs parallelism", "look for the statement that scans the table", 0.3, 0},
	{"ASYNC_NETWORK_IO", "the client takes rows slowly", "", 0, 0},
	{"LOGBUFFER", "writers wait for room in the log buffer", "", 0, 0},
	{"IO_QUEUE_LIMIT", "the limit of data IO of the service objective", "fewer pages read: see plans and size", 0.05, 0},
}

// idle are waits of who has nothing to do; they say nothing
// (sys-dm-os-wait-stats-transact-sql.md calls them queue waits, or typical).
var idle = []string{
	"BROKER_", "CHECKPOINT_QUEUE", "CHKPT", "CLR_", "DBMIRROR", "DIRTY_PAGE_POLL", "DISPATCHER_QUEUE_SEMAPHORE", "FT_", "FSAGENT",
	"HADR_CLUSAPI_CALL", "HADR_FABRIC_CALLBACK", "HADR_FILESTREAM_IOMGR_IOCOMPLETION", "HADR_LOGCAPTURE_WAIT", "HADR_NOTIFICATION_DEQUEUE", "HADR_TIMER_TASK", "HADR_WORK_QUEUE",
	"KSOURCE_WAKEUP", "LAZYWRITER_SLEEP", "LOGMGR_QUEUE", "MEMORY_ALLOCATION_EXT", "ONDEMAND_TASK_QUEUE", "PARALLEL_REDO_", "PREEMPTIVE_", "PVS_PREALLOCATE",
	"PWAIT_", "QDS_", "REQUEST_FOR_DEADLOCK_SEARCH", "RESOURCE_QUEUE", "SERVER_IDLE_CHECK", "SLEEP_", "SNI_HTTP_ACCEPT", "SOS_WORK_DISPATCHER", "SP_SERVER_DIAGNOSTICS_SLEEP",
	"SQLTRACE_", "STARTUP_DEPENDENCY_MANAGER", "UCS_SESSION_REGISTRATION", "VDI_CLIENT_OTHER", "WAITFOR", "WAIT_XTP_", "WAIT_FOR_RESULTS", "XE_", "XTP_PREEMPTIVE_TASK", "REDO_THREAD_PENDING_WORK",
}

func begins(name string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(name, p) })
}

// explain finds what is known of a wait.
func explain(name string) (means, remedy string, warn, slow float64) {
	for _, e := range explained {
		if name == e.name || strings.HasSuffix(e.name, "_") && strings.HasPrefix(name, e.name) {
			return e.means, e.remedy, e.warn, e.slow
		}
	}
	return "", "", 0, 0
}

const (
	// someWaiting is what a wait must come to in all, in ms, before it is judged:
	// shares of next to nothing mean nothing. It is not taken by the hour: how long
	// the counters run since a failover is not known.
	someWaiting = 10_000
	// loadWarn and loadBad are percent of a limit: beyond the first there is no room
	// for a peak twice as high, beyond the second none for anything.
	loadWarn = 60.0
	loadBad  = 85.0
)

func judgeWaits(f waitFacts, sec Section) Section {
	var total int64
	var seen []waitTotal
	for _, w := range f.waits {
		if !begins(w.name, idle) {
			total += w.ms
			seen = append(seen, w)
		}
	}
	f.judgeEach(seen, total, &sec)
	f.judgeLoad(&sec)
	if len(sec.Evidence.Findings) == 0 && f.waitsReason == "" {
		sec.find(OK, fmt.Sprintf("No wait stands out: %s of waiting in all since the counters began.", duration(float64(total))), "")
	}
	sec.table(f.table(seen, total))
	whose := "this database"
	if f.ofServer {
		whose = "the whole server"
	}
	since := "since the engine started or failed over"
	if !f.started.IsZero() {
		since = "since " + format(f.started, Moment) + " or a failover after it"
	}
	if len(f.waits) > 0 {
		sec.note(fmt.Sprintf("Waits are those of %s, %s; waits of idle threads are left out.", whose, since))
	}
	sec.note(f.waitsReason)
	sec.note(f.loadReason)
	return sec
}

func (f waitFacts) judgeEach(seen []waitTotal, total int64, sec *Section) {
	groups := make(map[string]waitTotal)
	var order []string
	for _, w := range seen {
		name := w.name
		if strings.HasPrefix(name, "LCK_M_") {
			name = "LCK_M_*"
		}
		if strings.HasPrefix(name, "PAGEIOLATCH_") {
			name = "PAGEIOLATCH_*"
		}
		g, ok := groups[name]
		if !ok {
			order = append(order, name)
		}
		groups[name] = waitTotal{name, g.count + w.count, g.ms + w.ms, max(g.max, w.max), g.signal + w.signal}
	}
	for _, name := range order {
		g := groups[name]
		means, remedy, warn, slow := explain(strings.TrimSuffix(name, "*"))
		share := ratio(float64(g.ms), float64(total))
		if warn == 0 || share < warn || g.ms < someWaiting || ratio(float64(g.ms), float64(g.count)) < slow {
			continue
		}
		verdict := Warn
		if share > 0.5 || warn <= 0.02 && share > 0.1 {
			verdict = Bad
		}
		sec.find(verdict, fmt.Sprintf("%s is %s %% of all waiting: %s over %s, %s each. %s.",
			name, quantity.Short(100*share), duration(float64(g.ms)), quantity.Of(g.count, "wait"), duration(ratio(float64(g.ms), float64(g.count))), capital(means)), remedy)
	}
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// judgeLoad looks at the 95th percentile of the last hour, above which are three
// minutes, so that one spike is no verdict.
func (f waitFacts) judgeLoad(sec *Section) {
	if len(f.load) == 0 {
		return
	}
	for _, m := range []struct {
		title, remedy string
		of            func(loadPoint) float64
	}{
		{"CPU", "see which statement takes it in the first section", func(p loadPoint) float64 { return p.cpu }},
		{"data IO", "fewer pages from disk: see plans and size", func(p loadPoint) float64 { return p.io }},
		{"log writes", "fewer bytes an event: see size", func(p loadPoint) float64 { return p.log }},
		{"memory", "", func(p loadPoint) float64 { return p.memory }},
		{"workers", "fewer connections and lanes", func(p loadPoint) float64 { return p.workers }},
	} {
		chart := Chart{Title: m.title, Unit: Percent, Top: 100}
		var values []float64
		for _, p := range f.load {
			if v := m.of(p); v >= 0 {
				chart.Points = append(chart.Points, Point{p.at, v})
				values = append(values, v)
			}
		}
		if len(values) == 0 {
			continue
		}
		sec.Evidence.Charts = append(sec.Evidence.Charts, chart)
		slices.Sort(values)
		high := values[min(len(values)-1, len(values)*95/100)]
		// The buffer pool fills whatever memory there is: full is how it should be.
		if m.title == "memory" {
			continue
		}
		switch {
		case high > loadBad:
			sec.find(Bad, fmt.Sprintf("%s stood at %s %% of the limit or more in a twentieth of the last hour.", capital(m.title), quantity.Short(high)), m.remedy)
		case high > loadWarn:
			sec.find(Warn, fmt.Sprintf("%s stood at %s %% of the limit or more in a twentieth of the last hour.", capital(m.title), quantity.Short(high)), m.remedy)
		}
	}
}

func (f waitFacts) table(seen []waitTotal, total int64) Table {
	t := Table{
		Title:   "Waits, the longest first",
		Columns: []Column{{"wait", Text}, {"time", Milliseconds}, {"share", Percent}, {"each", Milliseconds}, {"means", Text}, {"waits", Count}, {"longest", Milliseconds}},
	}
	for _, w := range seen[:min(f.top, len(seen))] {
		means, _, _, _ := explain(w.name)
		t.Rows = append(t.Rows, []any{w.name, float64(w.ms), 100 * ratio(float64(w.ms), float64(total)), ratio(float64(w.ms), float64(w.count)), means, w.count, float64(w.max)})
	}
	return t
}
