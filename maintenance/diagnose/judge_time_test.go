package diagnose

import (
	"testing"
	"time"
)

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
		{"a burst of log", waitFacts{load: load(91)}, Bad, []string{"Log writes stood at 91 % of the limit"}},
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
		return storePlan{queryID: query, planID: id, queryHash: "claim", text: "(@batch int)SELECT /* outbox:ClaimEvents */ TOP (@batch) e.id FROM outbox_event AS e", earlier: earlier, recent: recent}
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
			s := judgeRegressions(regressionFacts{store: c.store, since: noon.Add(-24 * time.Hour), now: noon, top: 20}, newSection("query_store", ""))
			says(t, s, c.verdict, c.want...)
		})
	}
}
