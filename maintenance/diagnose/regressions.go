package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"azsqloutbox/internal/quantity"
)

// regressionFacts are what section 7 judges.
type regressionFacts struct {
	store queryStore
	since time.Time
	now   time.Time
	top   int
}

func regressionsSection(ctx context.Context, s *source, sec Section) (Section, error) {
	store, err := s.store.read(ctx)
	if err != nil {
		return sec, err
	}
	return judgeRegressions(regressionFacts{store: store, since: s.since, now: s.env.now, top: s.top}, sec), nil
}

// Thresholds of section 7.
const (
	// regressed is when a query costs so many times what it did.
	regressed = 2
	// enoughRuns is what both parts of the time must have.
	enoughRuns = 20
	// What a difference must come to each time to be worth a word: CPU in
	// microseconds, pages.
	someCPU   = 1000
	somePages = 50
	// unlikePlans is when two plans of one query are worth a word.
	unlikePlans = 5
)

// storeQuery is a query with its plans.
type storeQuery struct {
	label           string
	named           bool
	id              int64
	plans           []storePlan
	earlier, recent runtime
}

func judgeRegressions(f regressionFacts, sec Section) Section {
	if !f.store.on() {
		return sec.unknown(f.store.whyNot(), turnOnQueryStore)
	}
	if f.store.state == "READ_ONLY" {
		sec.find(Warn, fmt.Sprintf("Query Store is read-only (reason %d): it keeps nothing new, %d of %d MB are used.", f.store.readonly, f.store.used, f.store.max),
			"ALTER DATABASE CURRENT SET QUERY_STORE (MAX_STORAGE_SIZE_MB = …), or QUERY_STORE CLEAR; on a readable secondary it is so by design")
	}
	if f.store.capture == "NONE" {
		sec.find(Warn, "Query Store captures no new queries (QUERY_CAPTURE_MODE = NONE).", "ALTER DATABASE CURRENT SET QUERY_STORE (QUERY_CAPTURE_MODE = AUTO);")
	}
	queries := f.queries()
	if len(queries) == 0 {
		if len(sec.Evidence.Findings) == 0 {
			return sec.unknown("Query Store has no statement that touches the outbox in this time.", "a longer --since")
		}
		return sec
	}
	before := len(sec.Evidence.Findings)
	for _, q := range queries {
		q.judge(&sec)
	}
	if len(sec.Evidence.Findings) == before {
		sec.find(OK, fmt.Sprintf("%s of the outbox in Query Store, none got dearer: what ran after %s against what ran before.", quantity.Of(len(queries), "statement"), format(f.store.split, Moment)), "")
	}
	sec.table(f.table(queries))
	sec.note(fmt.Sprintf("Recent is from %s on, earlier from %s to then. Averages are weighted by runs; runs that were broken off or failed are left out.", format(f.store.split, Moment), format(f.since, Moment)))
	return sec
}

func (f regressionFacts) queries() []storeQuery {
	index := make(map[int64]int)
	var list []storeQuery
	for _, p := range f.store.plans {
		i, ok := index[p.queryID]
		if !ok {
			i = len(list)
			index[p.queryID] = i
			// The name is inside of the statement, so that it is there too.
			s := cachedStatement{name: statementName(p.text), text: p.text}
			list = append(list, storeQuery{label: s.label(), named: s.name != "", id: p.queryID})
		}
		q := &list[i]
		q.plans = append(q.plans, p)
		q.earlier, q.recent = q.earlier.plus(p.earlier), q.recent.plus(p.recent)
	}
	slices.SortStableFunc(list, func(a, b storeQuery) int {
		cost := func(q storeQuery) float64 {
			all := q.earlier.plus(q.recent)
			return all.cpu * all.executions
		}
		return sign(cost(b) - cost(a))
	})
	return list
}

func (q storeQuery) judge(sec *Section) {
	label := say(q.named, q.label)
	for _, p := range q.plans {
		if p.forced && p.forceFailures > 0 {
			sec.find(Warn, fmt.Sprintf("Plan %d is forced on %s, and forcing it failed %s (%s).", p.planID, label, quantity.Of(p.forceFailures, "time"), p.forceFailure),
				fmt.Sprintf("EXEC sys.sp_query_store_unforce_plan %d, %d;", q.id, p.planID))
		}
	}
	if q.judgeTime(label, sec) {
		return
	}
	best, bad, ok := q.extremes()
	if ok && bad.reads >= unlikePlans*best.reads && bad.reads-best.reads > somePages {
		sec.find(Warn, fmt.Sprintf("%s has %d plans: plan %d reads %s pages each time, plan %d only %s. The next compilation decides which one runs.", label, len(q.plans), bad.id, quantity.Short(bad.reads), best.id, quantity.Short(best.reads)),
			fmt.Sprintf("find out why plan %d was compiled; as a bridge EXEC sys.sp_query_store_force_plan %d, %d;", bad.id, q.id, best.id))
	}
}

// judgeTime compares the two parts of the time.
func (q storeQuery) judgeTime(label string, sec *Section) bool {
	if q.earlier.executions < enoughRuns || q.recent.executions < enoughRuns {
		return false
	}
	cpu, pages := ratio(q.recent.cpu, q.earlier.cpu), ratio(q.recent.reads, q.earlier.reads)
	dearer := cpu >= regressed && q.recent.cpu-q.earlier.cpu > someCPU
	wider := pages >= regressed && q.recent.reads-q.earlier.reads > somePages
	if !dearer && !wider {
		return false
	}
	what := fmt.Sprintf("%s of CPU and %s each time, before it was %s and %s", duration(q.recent.cpu/1000), counted(q.recent.reads, "page"), duration(q.earlier.cpu/1000), counted(q.earlier.reads, "page"))
	text := fmt.Sprintf("%s got dearer: %s.", label, what)
	remedy := "the plan is the same: it reads more rows or crosses ghosts; see the sections on indexes and size"
	if fresh, old, ok := q.switched(); ok {
		text += fmt.Sprintf(" It changed from plan %d to plan %d.", old, fresh)
		remedy = fmt.Sprintf("compare both plans in Query Store; as a bridge EXEC sys.sp_query_store_force_plan %d, %d;", q.id, old)
	}
	verdict := Warn
	if q.named && max(cpu, pages) >= worsePlan {
		verdict = Bad
	}
	sec.find(verdict, text, remedy)
	return true
}

// switched finds the plan that most runs had before, where most have another now.
func (q storeQuery) switched() (fresh, old int64, ok bool) {
	most := func(of func(storePlan) runtime) int64 {
		p := slices.MaxFunc(q.plans, func(a, b storePlan) int { return sign(of(a).executions - of(b).executions) })
		return p.planID
	}
	old, fresh = most(func(p storePlan) runtime { return p.earlier }), most(func(p storePlan) runtime { return p.recent })
	return fresh, old, old != fresh
}

type planCost struct {
	id    int64
	reads float64
}

// extremes are the plans that read least and most, of those that ran enough.
func (q storeQuery) extremes() (best, bad planCost, ok bool) {
	var list []planCost
	for _, p := range q.plans {
		if all := p.earlier.plus(p.recent); all.executions >= enoughRuns {
			list = append(list, planCost{p.planID, all.reads})
		}
	}
	if len(list) < 2 {
		return best, bad, false
	}
	slices.SortFunc(list, func(a, b planCost) int { return sign(a.reads - b.reads) })
	return list[0], list[len(list)-1], true
}

func (f regressionFacts) table(queries []storeQuery) Table {
	t := Table{
		Title: "Statements in Query Store, earlier and recent",
		Columns: []Column{
			{"statement", Text},
			{"query", Text},
			{"plans", Count},
			{"runs", Count},
			{"CPU earlier", Milliseconds},
			{"CPU recent", Milliseconds},
			{"pages earlier", Pages},
			{"pages recent", Pages},
			{"log each", Bytes},
		},
	}
	cell := func(r runtime, v float64) any {
		if r.executions == 0 {
			return nil
		}
		return v
	}
	for _, q := range queries[:min(f.top, len(queries))] {
		all := q.earlier.plus(q.recent)
		t.Rows = append(t.Rows, []any{
			q.label, strconv.FormatInt(q.id, 10), int64(len(q.plans)), int64(all.executions), cell(q.earlier, q.earlier.cpu/1000), cell(q.recent, q.recent.cpu/1000),
			cell(q.earlier, q.earlier.reads), cell(q.recent, q.recent.reads), all.logBytes,
		})
	}
	return t
}
