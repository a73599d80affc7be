package diagnose

import (
	"testing"
	"time"

	"azsqloutbox/maintenance/sizing"
)

// articleTable is the table of the article: 45 M rows of 1.3 KB in 58 GB.
func articleTable() physicsFacts {
	pk := indexDef{id: 1, name: "PK", clustered: true, unique: true, fillFactor: 85, keys: []string{"id"}, rows: 45_000_000}
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
			"payloads off the page", func(f *physicsFacts) {
				f.storage.sizes[1] = indexSize{rows: 100_000, usedBytes: 4 * sizing.GB, known: true, recordBytes: 131, lobBytes: 100_000 * 20 * sizing.KB}
				f.catalog.indexes = f.catalog.indexes[:1]
			}, OK, []string{"An event writes about 40.5 KB to the log in its life"},
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
		{"with the slim claim index", func(f *indexFacts) {
			f.catalog.indexes[0].fillFactor, f.catalog.indexes[0].sequentialKey = 98, true
			f.catalog.indexes[1].included = nil
			f.storage.sizes[1] = indexSize{rows: 1000, leafPages: 1000, density: 97.5, sampled: true, known: true}
		}, OK, []string{"2 indexes, each of them of use"}},
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
		{"a filter on status, and status in the key", func(f *indexFacts) {
			f.catalog.indexes[0].fillFactor, f.catalog.indexes[0].sequentialKey = 98, true
			f.storage.sizes[1] = indexSize{rows: 1000, leafPages: 1000, density: 97.5, sampled: true, known: true}
			f.catalog.indexes = append(f.catalog.indexes, indexDef{id: 3, name: "IX_f", filtered: true, filter: "([status]=(0))", keys: []string{"status", "created_at"}})
			f.storage.usage[3] = indexUse{seeks: 9}
		}, OK, nil},
		{"a unique index nobody reads", func(f *indexFacts) {
			f.catalog.indexes[0].fillFactor, f.catalog.indexes[0].sequentialKey = 98, true
			f.storage.sizes[1] = indexSize{rows: 1000, leafPages: 1000, density: 97.5, sampled: true, known: true}
			f.catalog.indexes = append(f.catalog.indexes, indexDef{id: 3, name: "IX_u", unique: true, keys: []string{"source", "source_id"}})
			f.storage.usage[3] = indexUse{updates: 6_000_000}
		}, OK, nil},
		{"who reads it is not known", func(f *indexFacts) {
			f.catalog.indexes = append(f.catalog.indexes, indexDef{id: 3, name: "IX_n", keys: []string{"created_at"}})
			f.storage.usage, f.storage.usageReason = map[int]indexUse{}, "No reads and writes of indexes: A right is missing. GRANT VIEW SERVER STATE TO [x];"
		}, Warn, []string{"GRANT VIEW SERVER STATE"}},
		{"no claim index", func(f *indexFacts) { f.catalog.indexes = f.catalog.indexes[:1] }, Bad, []string{"There is no index IX_outbox_claim", "45,000,000 rows", "schema apply"}},
		{"no filter", func(f *indexFacts) { f.catalog.indexes[1].filtered = false }, Bad, []string{"IX_outbox_claim has no filter"}},
		{"another filter", func(f *indexFacts) { f.catalog.indexes[1].filter = "([status]=(1))" }, Bad, []string{"is filtered by ([status]=(1))", "8622"}},
		{"no filter, and status in the key", func(f *indexFacts) {
			f.catalog.indexes[1] = indexDef{id: 2, name: "IX_outbox_claim", keys: []string{"event_type", "status"}, included: []string{"payload"}}
		}, Bad, []string{"IX_outbox_claim has no filter", "status is a key column of IX_outbox_claim", "DROP_EXISTING = ON"}},
		{"another key", func(f *indexFacts) { f.catalog.indexes[1].keys = []string{"id"} }, Bad, []string{"begins with id"}},
		{"a low fill factor, and pages that nobody has sampled", func(f *indexFacts) {
			f.storage.sizes[1] = indexSize{rows: 45_000_000, usedBytes: 58 * sizing.GB, leafPages: 7_000_000, known: true}
		}, Warn, []string{"PK has FILLFACTOR 85: a rebuild would leave 15 % of every page empty"}},
		{"ghosts that an open snapshot keeps", func(f *indexFacts) {
			z := f.storage.sizes[1]
			z.ghosts, z.versionGhosts = 1000, 4_999_000
			f.storage.sizes[1] = z
		}, Warn, []string{"Ghost cleanup lags behind the purge. The pages hold 5,000,000 ghosts (10 % of the records), 4,999,000 of them kept for an open transaction that may read them still.", "look for old open transactions"}},
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
