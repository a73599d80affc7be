package diagnose

import (
	"strings"
	"testing"
	"time"

	"azsqloutbox/maintenance/sizing"
)

// The judgements, with the numbers of the Azure SQL article where it has some.

// says holds a section to texts, by verdict.
func says(t *testing.T, s Section, verdict Verdict, want ...string) {
	t.Helper()
	s = s.sorted()
	if s.Verdict != verdict {
		t.Errorf("the verdict is %s, want %s: %+v", s.Verdict, verdict, s.Evidence.Findings)
	}
	var all strings.Builder
	for _, f := range s.Evidence.Findings {
		all.WriteString(string(f.Verdict) + ": " + f.Text + " → " + f.Remedy + "\n")
	}
	for _, n := range s.Evidence.Notes {
		all.WriteString(n + "\n")
	}
	for _, w := range want {
		if !strings.Contains(all.String(), w) {
			t.Errorf("nothing says %q:\n%s", w, all.String())
		}
	}
}

func figure(t *testing.T, s Section, name string) any {
	t.Helper()
	for _, f := range s.Evidence.Figures {
		if f.Name == name {
			return f.Value
		}
	}
	t.Fatalf("no figure %q in %+v", name, s.Evidence.Figures)
	return nil
}

const driverOptions = 1 | 8 | 16 | 32 | 64 | 128 // what the ODBC flag of a login turns on

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// ran is a cached statement with totals of n runs.
func ran(name, text string, n, worker, reads, rows int64) cachedStatement {
	return cachedStatement{
		name: name, text: text, sqlHandle: name + text, queryHash: "h" + name + text, planHash: "p1", options: driverOptions | 4096,
		created: noon.Add(-time.Hour), last: noon, executions: n, worker: n * worker, elapsed: n * worker, reads: n * reads, got: n * rows,
	}
}

const (
	claimText  = "-- outbox:ClaimEvents\nSELECT TOP (@batch) e.id FROM [dbo].[outbox_event] AS e"
	flipText   = "UPDATE e SET status = 1 FROM OPENJSON(@ids)"
	outputText = "UPDATE TOP (100) dbo.outbox_event SET status = 1 OUTPUT inserted.id WHERE status = 0"
)

func TestJudgeStatements(t *testing.T) {
	claim, flip := ran("ClaimEvents", claimText, 1000, 2840, 34, 100), ran("FlipClaim", flipText, 1000, 1500, 720, 100)
	for _, c := range []struct {
		name    string
		facts   statementFacts
		verdict Verdict
		want    []string
	}{
		{"nothing ran", statementFacts{}, Unknown, []string{"No statement in the plan cache names this table"}},
		{
			"the worker alone",
			statementFacts{statements: []cachedStatement{claim, flip}},
			OK,
			[]string{"An event costs 0.34 pages to claim and 7.2 to flip, and 43.4 µs of CPU"},
		},
		{
			"the article: 0.06 estimated, 142 ms measured, 50 times dearer",
			statementFacts{statements: []cachedStatement{claim, flip, ran("", outputText, 400, 142_000, 9000, 100)}},
			Bad,
			[]string{"An UPDATE … OUTPUT claims in one statement: 142 ms of CPU", "eager spool", "outbox:ClaimEvents takes 2.84 ms: that is 50 times cheaper"},
		},
		{
			"the claim scans",
			statementFacts{statements: []cachedStatement{ran("ClaimEvents", claimText, 10, 900_000, 61_400, 100)}},
			Bad,
			[]string{"An event costs 614 pages to claim", "something scans"},
		},
		{
			"more than a few seeks",
			statementFacts{statements: []cachedStatement{claim, ran("FlipClaim", flipText, 1000, 1500, 4000, 100)}},
			Warn,
			[]string{"An event costs 0.34 pages to claim and 40 to flip"},
		},
		{
			"OFFSET",
			statementFacts{statements: []cachedStatement{claim, ran("", "SELECT id FROM dbo.outbox_event ORDER BY id OFFSET 500000 ROWS FETCH NEXT 100 ROWS ONLY", 9, 1, 83_000, 100)}},
			Warn,
			[]string{"OFFSET pages through the table: 83,000 pages each time", "keyset"},
		},
		{
			"COUNT",
			statementFacts{statements: []cachedStatement{claim, ran("", "SELECT COUNT(*) FROM dbo.outbox_event WHERE status = 0", 1440, 1, 7_000_000, 1)}},
			Warn,
			[]string{"A COUNT reads 7,000,000 pages each time, 1,440 times so far"},
		},
		{
			"nothing was claimed",
			statementFacts{statements: []cachedStatement{ran("ClaimEvents", claimText, 9, 10, 3, 0)}, logReason: "No log bytes per statement: Query Store is OFF."},
			OK,
			[]string{"No event was claimed", "Query Store is OFF"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.facts.top, c.facts.now = 20, noon
			says(t, judgeStatements(c.facts, newSection("statements", "")), c.verdict, c.want...)
		})
	}
}

func TestLogPerEventIsWeightedByRuns(t *testing.T) {
	claim, flip := ran("ClaimEvents", claimText, 100, 2840, 34, 100), ran("FlipClaim", flipText, 100, 1500, 720, 100)
	s := judgeStatements(statementFacts{
		statements: []cachedStatement{claim, flip}, top: 20, now: noon,
		logBytes: map[string]float64{claim.queryHash: 0, flip.queryHash: 240_000},
	}, newSection("statements", ""))
	if got := figure(t, s, "log per event, all named statements"); got != 2400.0 {
		t.Errorf("log per event is %v", got)
	}
}

func TestJudgePlanCache(t *testing.T) {
	seek := ran("", "SELECT TOP 100 id FROM dbo.outbox_event WHERE status = 0", 500, 900, 34, 100)
	seek.options = driverOptions | 4096
	scan := seek
	scan.options, scan.planHash, scan.reads, scan.executions = driverOptions, "p2", 5000*61_400, 5000
	same := seek
	same.options = driverOptions
	quoted := seek
	quoted.options = seek.options &^ 64
	parallel := seek
	parallel.options |= 2
	forced := seek
	forced.options |= bitForced
	var many []cachedStatement
	for i := range 30 {
		c := seek
		c.sqlHandle = strings.Repeat("x", i)
		c.text = "SELECT id FROM dbo.outbox_event WHERE id = " + strings.Repeat("1", i+1)
		many = append(many, c)
	}
	for _, c := range []struct {
		name    string
		list    []cachedStatement
		verdict Verdict
		want    []string
	}{
		{"nothing ran", nil, Unknown, []string{"No statement"}},
		{"one entry", []cachedStatement{seek}, OK, []string{"1 text is cached once"}},
		{"threads are no option of a session", []cachedStatement{seek, parallel}, OK, nil},
		{
			"the article: seek in SSMS, scan in the application",
			[]cachedStatement{seek, scan},
			Bad,
			[]string{"runs by 2 plans: with ARITHABORT OFF it reads 61,400 pages each time, with ARITHABORT ON only 34", "it is a key of the plan cache", "connection-init-sql"},
		},
		{"two compilations, one plan", []cachedStatement{seek, same}, Warn, []string{"is compiled 2 times over. They differ in ARITHABORT"}},
		{"QUOTED_IDENTIFIER OFF", []cachedStatement{quoted}, Bad, []string{"ran with QUOTED_IDENTIFIER OFF", "1934"}},
		{"literals in the text", many, Warn, []string{"One query is cached in 30 texts"}},
		{"forced parameterization", []cachedStatement{forced}, Warn, []string{"forced parameterization", "PARAMETERIZATION SIMPLE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := judgePlanCache(planCacheFacts{statements: c.list, compat: 150, top: 20}, newSection("plan_cache", ""))
			says(t, s, c.verdict, c.want...)
		})
	}
}

func TestSetOptions(t *testing.T) {
	// The example of sys-dm-exec-plan-attributes-transact-sql.md.
	if got := strings.Join(decodeOptions(251), " "); got != "ANSI_PADDING ParallelPlan CONCAT_NULL_YIELDS_NULL ANSI_WARNINGS ANSI_NULLS QUOTED_IDENTIFIER ANSI_NULL_DFLT_ON" {
		t.Errorf("251 is %s", got)
	}
	if got := strings.Join(differing([]int{251, 251 | 4096 | 2, 251 &^ 2}), " "); got != "ARITHABORT" {
		t.Errorf("they differ in %s", got)
	}
	if got := wrongForFiltered(driverOptions); len(got) != 0 {
		t.Errorf("a driver's options are wrong: %v", got)
	}
	if got := strings.Join(wrongForFiltered(driverOptions&^64|8192), ", "); got != "QUOTED_IDENTIFIER OFF, NUMERIC_ROUNDABORT ON" {
		t.Errorf("wrong are %s", got)
	}
}

// articleTable is the table of the article: 45 M rows of 1.3 KB in 58 GB.
func articleTable() physicsFacts {
	pk := indexDef{id: 1, name: "PK", clustered: true, unique: true, constraint: true, fillFactor: 85, keys: []string{"id"}, rows: 45_000_000}
	claim := indexDef{id: 2, name: "IX_outbox_claim", filtered: true, filter: "([status]=(0))", keys: []string{"event_type", "id"}, included: []string{"aggregate_id", "payload"}, rows: 3500}
	o, _ := sizing.ParseObjective("BC_Gen5_8")
	return physicsFacts{
		engine: "Azure SQL Database", objective: "BC_Gen5_8",
		memory: limit{o.MemoryBytes(), "documented"}, logRate: limit{o.LogBytesPerSecond(), "documented"}, inMemory: o.InMemoryBytes(),
		catalog: catalog{
			columns: []columnDef{{name: "id", kind: "bigint", bytes: 8}, {name: "payload", kind: "nvarchar", bytes: 4000, collation: "SQL_Latin1_General_CP1_CI_AS"}},
			indexes: []indexDef{pk, claim},
		},
		storage: storage{
			sizes: map[int]indexSize{
				1: {rows: 45_000_000, usedBytes: 58 * sizing.GB, leafPages: 58 * sizing.GB / sizing.PageBytes, known: true, density: 84.7, recordBytes: 1331, sampled: true, records: 45_000_000},
				2: {rows: 3500, usedBytes: 5 * sizing.MB, leafPages: 600, known: true, density: 61, recordBytes: 1290, sampled: true},
			},
			sample: payloadSample{rows: 20_000, bytes: 1200, narrow: 600, chars: 600, from: noon.Add(-20_000 * time.Second / 350)},
			oldest: noon.Add(-15 * 24 * time.Hour), newest: noon,
		},
		now: noon, claimIndex: "IX_outbox_claim", events: "[dbo].[outbox_event]",
	}
}

func TestJudgePhysics(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*physicsFacts)
		verdict Verdict
		want    []string
	}{
		{
			"the article", func(*physicsFacts) {}, Bad,
			[]string{
				"The table does not fit in memory: 45,000,000 rows and their indexes take 58 GB, and the whole engine has 41.5 GB (6.28 GB of it kept for In-Memory OLTP)",
				"reading the queue means reading disk", "With VARCHAR it would take 32.9 GB, and fit.",
				"An event writes about 5.61 KB to the log in its life, 4.79 times its payload", "At 350 events/s that is 1.92 MB/s, 2 % of the 96 MB/s that are allowed",
				"outboxctl migrate-varchar",
			},
		},
		{
			"it fits", func(f *physicsFacts) {
				f.storage.sizes[1] = indexSize{rows: 3_000_000, usedBytes: 4 * sizing.GB, known: true, recordBytes: 1331}
			}, OK, []string{"take 4 GB of 41.5 GB memory"},
		},
		{
			"it fills most of it", func(f *physicsFacts) {
				f.storage.sizes[1] = indexSize{rows: 25_000_000, usedBytes: 33 * sizing.GB, known: true, recordBytes: 1331}
			}, Warn, []string{"take 33 GB of 41.5 GB memory (79.5 %)"},
		},
		{
			"the log limit is near", func(f *physicsFacts) {
				f.logRate = limit{2 * sizing.MB, "documented"}
				f.storage.sizes[1] = indexSize{rows: 1000, usedBytes: sizing.GB, known: true, recordBytes: 1331}
			}, Bad, []string{"LOG_RATE_GOVERNOR will slow the whole application down with CPU to spare", "fewer bytes an event"},
		},
		{
			"nothing is known", func(f *physicsFacts) {
				f.storage = storage{sizes: map[int]indexSize{}, sizeReason: "No sizes: A right is missing. GRANT …"}
				f.memory, f.logRate = limit{}, limit{}
			}, Unknown, []string{"GRANT", "How many events arrive is not known", "Neither size nor log"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := articleTable()
			c.change(&f)
			says(t, judgePhysics(f, newSection("physics", "")), c.verdict, c.want...)
		})
	}
}

func TestSavingsOfTheArticle(t *testing.T) {
	f := articleTable()
	f.catalog.indexes = append(f.catalog.indexes, indexDef{id: 3, name: "IX_wide", keys: []string{"status", "event_type", "id"}, included: []string{"payload"}, rows: 45_000_000})
	f.storage.sizes[3] = indexSize{rows: 45_000_000, usedBytes: 60 * sizing.GB, known: true, recordBytes: 1311}
	want := map[string]string{
		"NVARCHAR(2000) payload to VARCHAR":        "50.3 GB, 4.69 KB an event",
		"FILLFACTOR 98":                            "7.87 GB, 0 B an event",
		"leave the payload out of IX_outbox_claim": "4.17 MB, 2.44 KB an event",
		"drop IX_wide, if nobody reads it":         "60 GB, 5.51 KB an event",
	}
	for _, row := range f.savings(350).Rows {
		got := format(row[1], Bytes) + ", " + format(row[2], Bytes) + " an event"
		if want[row[0].(string)] != got {
			t.Errorf("%s saves %s, want %s", row[0], got, want[row[0].(string)])
		}
		delete(want, row[0].(string))
	}
	if len(want) > 0 {
		t.Errorf("not said: %v", want)
	}
}

func TestJudgeIndexes(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*indexFacts)
		verdict Verdict
		want    []string
	}{
		{"as the schema makes it", func(f *indexFacts) {
			f.catalog.indexes[0].fillFactor, f.catalog.indexes[0].sequentialKey = 98, true
			f.storage.sizes[1] = indexSize{rows: 1000, leafPages: 1000, density: 97.5, sampled: true, known: true}
		}, OK, []string{"IX_outbox_claim includes the payload"}},
		{"the article: FILLFACTOR 85 over 45 M rows", func(*indexFacts) {}, Warn, []string{"PK is 84.7 % full: 7.87 GB of nothing in memory", "FILLFACTOR 85", "14 bytes", "rebuild --fillfactor 98"}},
		{"the article: a convoy at the last page", func(f *indexFacts) {
			f.latches[1] = latches{480_000, 3_300_000, 0}
		}, Bad, []string{"Inserts queue for the last page: 480,000 waits for page latches on PK, 55m in all, 6.88 ms each", "OPTIMIZE_FOR_SEQUENTIAL_KEY = ON"}},
		{"the article: status in the key", func(f *indexFacts) {
			f.catalog.indexes = append(f.catalog.indexes, indexDef{id: 3, name: "IX_wide", keys: []string{"status", "event_type", "id"}, included: []string{"payload"}})
			f.storage.sizes[3] = indexSize{recordBytes: 1331, known: true}
			f.storage.usage[3] = indexUse{seeks: 9}
		}, Bad, []string{"status is a key column of IX_wide", "the payload with it. That is 1.3 KB of index for every published event"}},
		{"an index nobody reads", func(f *indexFacts) {
			f.catalog.indexes = append(f.catalog.indexes, indexDef{id: 3, name: "IX_n", keys: []string{"created_at"}})
			f.storage.sizes[3] = indexSize{usedBytes: 2 * sizing.GB, known: true, recordBytes: 25}
			f.storage.usage[3] = indexUse{updates: 6_000_000}
		}, Warn, []string{"Nobody reads IX_n (created_at), and every event writes it: 6,000,000 writes so far, 2 GB of memory and disk, about 250 B of log an event.", "DROP INDEX [IX_n] ON [dbo].[outbox_event]"}},
		{"who reads it is not known", func(f *indexFacts) {
			f.catalog.indexes = append(f.catalog.indexes, indexDef{id: 3, name: "IX_n", keys: []string{"created_at"}})
			f.storage.usage, f.storage.usageReason = map[int]indexUse{}, "No reads and writes of indexes: A right is missing. GRANT VIEW SERVER STATE TO [x];"
		}, Warn, []string{"GRANT VIEW SERVER STATE"}},
		{"no claim index", func(f *indexFacts) { f.catalog.indexes = f.catalog.indexes[:1] }, Bad, []string{"There is no index IX_outbox_claim", "45,000,000 rows", "schema apply"}},
		{"no filter", func(f *indexFacts) { f.catalog.indexes[1].filtered = false }, Bad, []string{"IX_outbox_claim has no filter"}},
		{"another filter", func(f *indexFacts) { f.catalog.indexes[1].filter = "([status]=(1))" }, Bad, []string{"is filtered by ([status]=(1))", "8622"}},
		{"another key", func(f *indexFacts) { f.catalog.indexes[1].keys = []string{"id"} }, Bad, []string{"begins with id"}},
		{"ghosts at the head", func(f *indexFacts) {
			f.storage.head = headCost{reads: 48_000, known: true}
			z := f.storage.sizes[1]
			z.ghosts = 5_000_000
			f.storage.sizes[1] = z
		}, Warn, []string{"Reading the very first row took 48,000 pages", "5,000,000 ghosts (10 % of the records)"}},
		{"lock escalation", func(f *indexFacts) { f.latches[1] = latches{escalations: 3} }, Warn, []string{"Locks on PK were escalated to a lock of the whole table 3 times"}},
		{"forced parameterization", func(f *indexFacts) { f.forced = true }, Warn, []string{"Forced parameterization is on"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := indexFacts{physicsFacts: articleTable(), latches: map[int]latches{}}
			f.storage.usage = map[int]indexUse{1: {seeks: 1}, 2: {seeks: 1}}
			c.change(&f)
			says(t, judgeIndexes(f, newSection("indexes", "")), c.verdict, c.want...)
		})
	}
}

func TestJudgeWaits(t *testing.T) {
	load := func(log float64) []loadPoint {
		list := make([]loadPoint, 240)
		for i := range list {
			list[i] = loadPoint{at: noon.Add(time.Duration(i-240) * 15 * time.Second), cpu: 10, io: 5, log: 3, memory: 99, workers: -1}
			if i > 220 {
				list[i].log = log
			}
		}
		return list
	}
	for _, c := range []struct {
		name    string
		facts   waitFacts
		verdict Verdict
		want    []string
	}{
		{"quiet", waitFacts{waits: []waitTotal{{"WRITELOG", 10, 40, 9, 0}, {"SOS_WORK_DISPATCHER", 1, 1e9, 9, 0}}}, OK, []string{"No wait stands out: 40 ms of waiting"}},
		{"idle threads", waitFacts{waits: []waitTotal{{"XE_TIMER_EVENT", 1, 1e9, 9, 0}, {"SLEEP_TASK", 1, 1e9, 9, 0}, {"QDS_ASYNC_QUEUE", 1, 1e9, 9, 0}}}, OK, []string{"No wait stands out: 0 of waiting"}},
		{
			"LOG_RATE_GOVERNOR",
			waitFacts{waits: []waitTotal{{"LOG_RATE_GOVERNOR", 5000, 900_000, 900, 0}, {"WRITELOG", 1000, 100_000, 9, 0}}},
			Bad,
			[]string{"LOG_RATE_GOVERNOR is 90 % of all waiting: 15m over 5,000 waits, 180 ms each. The log-rate limit of the service objective: writers are held back, with CPU to spare."},
		},
		{
			"PAGELATCH_EX",
			waitFacts{waits: []waitTotal{{"PAGELATCH_EX", 5000, 30_000, 900, 0}, {"WRITELOG", 100_000, 70_000, 9, 0}}},
			Warn,
			[]string{"PAGELATCH_EX is 30 % of all waiting", "OPTIMIZE_FOR_SEQUENTIAL_KEY = ON"},
		},
		{
			"locks are added up",
			waitFacts{waits: []waitTotal{{"LCK_M_U", 10, 30_000, 900, 0}, {"LCK_M_X", 10, 20_000, 900, 0}, {"WRITELOG", 60_000, 60_000, 9, 0}}},
			Warn,
			[]string{"LCK_M_* is 45.5 % of all waiting: 50 s over 20 waits"},
		},
		{"a slow log", waitFacts{waits: []waitTotal{{"WRITELOG", 1000, 40_000, 900, 0}, {"ASYNC_NETWORK_IO", 1000, 50_000, 9, 0}}}, Warn, []string{"WRITELOG is 44.4 % of all waiting: 40 s over 1,000 waits, 40 ms each"}},
		{"RESOURCE_SEMAPHORE", waitFacts{waits: []waitTotal{{"RESOURCE_SEMAPHORE", 10, 90_000, 900, 0}}}, Bad, []string{"wait for memory to sort or hash in"}},
		{"a burst of log", waitFacts{load: load(91)}, Bad, []string{"Log writes stood at 91 % of its limit"}},
		{"some log", waitFacts{load: load(70)}, Warn, []string{"Log writes stood at 70 %"}},
		{"full memory is how it should be", waitFacts{load: load(10)}, OK, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.facts.top, c.facts.now = 20, noon
			s := judgeWaits(c.facts, newSection("waits", ""))
			says(t, s, c.verdict, c.want...)
			if len(c.facts.load) > 0 && len(s.Evidence.Charts) != 4 {
				t.Errorf("%d charts, want those of what was told", len(s.Evidence.Charts))
			}
		})
	}
}

func TestJudgeRegressions(t *testing.T) {
	on := func(plans ...storePlan) queryStore {
		return queryStore{state: "READ_WRITE", capture: "AUTO", plans: plans, split: noon.Add(-6 * time.Hour)}
	}
	cheap, dear := runtime{executions: 40_000, cpu: 2800, reads: 34, duration: 3000}, runtime{executions: 4000, cpu: 142_000, reads: 61_400, duration: 150_000}
	plan := func(query, id int64, earlier, recent runtime) storePlan {
		return storePlan{queryID: query, planID: id, queryHash: "claim", text: "select 1 from outbox_event", earlier: earlier, recent: recent}
	}
	forced := plan(1, 2, cheap, cheap)
	forced.forced, forced.forceFailures, forced.forceFailure = true, 4, "NO_INDEX"
	for _, c := range []struct {
		name    string
		store   queryStore
		verdict Verdict
		want    []string
	}{
		{"off", queryStore{state: "OFF"}, Unknown, []string{"Query Store is OFF.", "SET QUERY_STORE = ON"}},
		{"nothing of ours", on(), Unknown, []string{"no statement that touches the outbox"}},
		{"steady", on(plan(1, 2, cheap, cheap)), OK, []string{"1 statement of the outbox in Query Store, none got dearer"}},
		{"a new plan, 50 times dearer", on(plan(1, 2, cheap, runtime{}), plan(1, 3, runtime{}, dear)), Bad, []string{"ClaimEvents SELECT got dearer: 142 ms of CPU and 61,400 pages each time, before it was 2.8 ms and 34 pages. It changed from plan 2 to plan 3.", "sp_query_store_force_plan 1, 2"}},
		{"the same plan, dearer", on(plan(1, 2, cheap, runtime{executions: 900, cpu: 7000, reads: 40})), Warn, []string{"the plan is the same"}},
		{"too few runs to say", on(plan(1, 2, cheap, runtime{executions: 3, cpu: 1e6, reads: 1e6})), OK, nil},
		{"next to nothing", on(plan(1, 2, runtime{executions: 900, cpu: 10, reads: 1}, runtime{executions: 900, cpu: 90, reads: 9})), OK, nil},
		{"two plans, unlike", on(plan(1, 2, cheap, cheap), plan(1, 3, dear, dear)), Warn, []string{"has 2 plans: plan 3 reads 61,400 pages each time, plan 2 only 34"}},
		{"forcing fails", on(forced), Warn, []string{"Plan 2 is forced on ClaimEvents SELECT, and forcing it failed 4 times (NO_INDEX)", "sp_query_store_unforce_plan 1, 2"}},
		{"read-only", queryStore{state: "READ_ONLY", readonly: 65536, used: 1000, max: 1000, plans: []storePlan{plan(1, 2, cheap, cheap)}}, Warn, []string{"read-only (reason 65536)", "1000 of 1000 MB"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := judgeRegressions(regressionFacts{store: c.store, names: map[string]string{"claim": "ClaimEvents SELECT"}, since: noon.Add(-24 * time.Hour), now: noon, top: 20}, newSection("query_store", ""))
			says(t, s, c.verdict, c.want...)
		})
	}
}
