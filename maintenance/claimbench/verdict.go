package claimbench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// noise is how much two figures may differ and still say nothing: a few batches
// on a server that does other things too.
const noise = 1.1

// Cheapest is what the verdict names, nil where nothing is known.
type Cheapest struct {
	CPU *Best `json:"cpu"`
	Log *Best `json:"log"`
}

// Best is the strategy, with its index, that takes least of one measure.
type Best struct {
	Strategy string  `json:"strategy"`
	Index    string  `json:"index"`
	PerEvent float64 `json:"per_event"`
	// Next is the strategy that comes behind it, with its better index; Times how
	// much more it takes. Clear says that this is more than noise.
	Next      string   `json:"next_strategy,omitempty"`
	NextIndex string   `json:"next_index,omitempty"`
	Times     *float64 `json:"times"`
	Clear     bool     `json:"clear"`
}

// judge says which is cheapest and by how much. What takes the rows out of the
// table is left aside: it is no claim that can be given back.
func judge(r *Report) {
	cpu := func(x Result) *float64 { return x.CPU }
	log := func(x Result) *float64 { return x.Log }
	r.Cheapest.CPU, r.Cheapest.Log = best(r.Results, cpu), best(r.Results, log)
	r.say("CPU", r.Cheapest.CPU, func(v float64) string { return short(v) + " µs" })
	r.say("log", r.Cheapest.Log, func(v float64) string { return short(v) + " bytes" })
	for _, s := range r.Strategies {
		if s != DeleteOutput {
			r.compareIndexes(s)
			break // the others have the same indexes
		}
	}
	if r.Cheapest.Log == nil && !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "dm_tran_database_transactions") }) {
		r.Notes = append(r.Notes, "the log is unknown: sys.dm_tran_database_transactions did not say how many bytes a transaction wrote")
	}
}

// best finds the least, and behind it the least of another strategy.
func best(results []Result, of func(Result) *float64) *Best {
	known := slices.DeleteFunc(slices.Clone(results), func(x Result) bool { return of(x) == nil || x.Strategy == DeleteOutput || x.Strategy == Insert })
	if len(known) == 0 {
		return nil
	}
	slices.SortStableFunc(known, func(a, b Result) int {
		switch {
		case *of(a) < *of(b):
			return -1
		case *of(a) > *of(b):
			return 1
		}
		return 0
	})
	first := known[0]
	b := &Best{Strategy: first.Strategy, Index: first.Index, PerEvent: *of(first)}
	for _, x := range known[1:] {
		if x.Strategy == first.Strategy {
			continue
		}
		b.Next, b.NextIndex = x.Strategy, x.Index
		if b.PerEvent > 0 {
			times := *of(x) / b.PerEvent
			b.Times, b.Clear = &times, times >= noise
		}
		break
	}
	return b
}

func (r *Report) say(what string, b *Best, text func(float64) string) {
	if b == nil {
		r.Verdict = append(r.Verdict, fmt.Sprintf("By %s nothing can be said: it is unknown.", what))
		return
	}
	s := fmt.Sprintf("By %s %s with the %s index is cheapest: %s an event", what, b.Strategy, b.Index, text(b.PerEvent))
	switch {
	case b.Times == nil:
	case b.Clear:
		s += fmt.Sprintf(", and %s with the %s index takes %.1f times as much", b.Next, b.NextIndex, *b.Times)
	default:
		s += fmt.Sprintf(", and %s with the %s index is as good as the same (%.2f times)", b.Next, b.NextIndex, *b.Times)
	}
	r.Verdict = append(r.Verdict, s+".")
}

// compareIndexes says what the slim form gives and takes, for an event that is
// inserted and claimed.
func (r *Report) compareIndexes(strategy string) {
	var parts []string
	for _, m := range []struct {
		what, unit string
		of         func(Result) *float64
	}{
		{"CPU", " µs", func(x Result) *float64 { return x.CPU }},
		{"reads", "", func(x Result) *float64 { return x.Reads }},
		{"log", " bytes", func(x Result) *float64 { return x.Log }},
	} {
		covering, ok := r.both(strategy, Covering, m.of)
		slim, also := r.both(strategy, Slim, m.of)
		if !ok || !also {
			parts = append(parts, m.what+" unknown")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s instead of %s%s", m.what, short(slim), short(covering), m.unit))
	}
	r.Verdict = append(r.Verdict, fmt.Sprintf("Inserted and claimed by %s, an event costs with the slim index, not the covering one: %s.", strategy, strings.Join(parts, ", ")))
}

// both is what insert and claim take together; false where one is not known.
func (r *Report) both(strategy, index string, of func(Result) *float64) (sum float64, ok bool) {
	known := 0
	for _, x := range r.Results {
		if x.Index == index && (x.Strategy == strategy || x.Strategy == Insert) && of(x) != nil {
			sum += *of(x)
			known++
		}
	}
	return sum, known == 2
}

// short is a figure with three digits that count.
func short(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return fmt.Sprintf("%.*f", min(max(digits, 0), 3), v)
}
