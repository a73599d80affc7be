package diagnose

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"azsqloutbox/internal/quantity"
)

// planCacheFacts are what section 2 judges.
type planCacheFacts struct {
	statements []cachedStatement
	compat     int
	top        int
}

func planCacheSection(ctx context.Context, s *source, sec Section) (Section, error) {
	list, err := s.cached.read(ctx)
	if err != nil {
		return sec, err
	}
	return judgePlanCache(planCacheFacts{statements: list, compat: s.env.compat, top: s.top}, sec), nil
}

const (
	// worsePlan is when one variant of a text is called bad: so many times the
	// pages of the best.
	worsePlan = 5
	// manyTexts is how many texts of one query are too many plans of it.
	manyTexts = 20
)

// variants are the plans of one statement, each under SET options of its own.
type variants struct {
	label, say string
	plans      []cachedStatement
}

func judgePlanCache(f planCacheFacts, sec Section) Section {
	if len(f.statements) == 0 {
		return sec.unknown("No statement in the plan cache names this table.", "run diagnose while a worker runs")
	}
	table := Table{
		Title: "One text under several SET options",
		Columns: []Column{
			{"statement", Text},
			{"options that differ", Text},
			{"runs", Count},
			{"CPU each", Milliseconds},
			{"pages each", Pages},
			{"plan", Text},
			{"last run", Moment},
			{"all options that are on", Text},
		},
	}
	split := splitTexts(f.statements)
	for _, v := range split {
		judgeVariants(v, f.compat, &sec)
		names := differing(optionsOf(v.plans))
		for _, p := range v.plans {
			table.Rows = append(table.Rows, []any{
				v.label, describeOptions(p.options, names), p.executions, ratio(float64(p.worker), float64(p.executions)) / 1000,
				ratio(float64(p.reads), float64(p.executions)), shortHash(p.planHash), p.last, strings.Join(decodeOptions(p.options), ", "),
			})
		}
	}
	judgeFilteredOptions(f.statements, &sec)
	judgeTexts(f.statements, &sec)
	judgeForced(f.statements, &sec)
	if len(table.Rows) > f.top {
		sec.note("Not shown: " + quantity.Of(len(table.Rows)-f.top, "row") + "; --top shows more.")
		table.Rows = table.Rows[:f.top]
	}
	sec.table(table)
	if len(split) == 0 {
		sec.find(OK, fmt.Sprintf("Each of %s is cached once: all connections run it with the same SET options.", quantity.Of(len(f.statements), "text")), "")
	}
	sec.figure("cached plans of statements that touch the outbox", int64(len(f.statements)), Count)
	sec.figure("texts with several entries", int64(len(split)), Count)
	return sec
}

// splitTexts finds the texts that have more than one entry because of the
// session's options, the dearest first.
func splitTexts(list []cachedStatement) []variants {
	type key struct {
		handle string
		start  int
	}
	index := make(map[key]int)
	var all []variants
	for _, c := range list {
		if c.options < 0 {
			continue
		}
		k := key{c.sqlHandle, c.start}
		i, ok := index[k]
		if !ok {
			i = len(all)
			index[k] = i
			all = append(all, variants{label: c.label(), say: c.say()})
		}
		all[i].plans = append(all[i].plans, c)
	}
	var out []variants
	for _, v := range all {
		if len(differing(optionsOf(v.plans))) > 0 {
			out = append(out, v)
		}
	}
	return out
}

func optionsOf(plans []cachedStatement) []int {
	bits := make([]int, len(plans))
	for i, p := range plans {
		bits[i] = p.options
	}
	return bits
}

func judgeVariants(v variants, compat int, sec *Section) {
	names := differing(optionsOf(v.plans))
	reads := func(c cachedStatement) float64 { return ratio(float64(c.reads), float64(c.executions)) }
	best := slices.MinFunc(v.plans, func(a, b cachedStatement) int { return sign(reads(a) - reads(b)) })
	bad := slices.MaxFunc(v.plans, func(a, b cachedStatement) int { return sign(reads(a) - reads(b)) })
	why := fmt.Sprintf("They differ in %s.", strings.Join(names, ", "))
	if slices.Contains(names, "ARITHABORT") {
		why += " SSMS turns ARITHABORT on, a driver leaves it off"
		if compat >= 90 {
			why += "; with ANSI_WARNINGS on that changes no result, yet it is a key of the plan cache"
		}
		why += ": the plan looked at in SSMS is not the one that runs in the application."
	}
	remedy := "give every connection the same options: SET ARITHABORT ON when the pool opens a connection (HikariCP: connection-init-sql); the worker does so by itself"
	if times := ratio(reads(bad), reads(best)); times >= worsePlan && bad.planHash != best.planHash {
		sec.find(Bad, fmt.Sprintf("%s runs by %d plans: with %s it reads %s pages each time, with %s only %s. %s",
			v.say, len(v.plans), describeOptions(bad.options, names), quantity.Short(reads(bad)), describeOptions(best.options, names), quantity.Short(reads(best)), why), remedy)
		return
	}
	sec.find(Warn, fmt.Sprintf("%s is compiled %d times over. %s", v.say, len(v.plans), why), remedy)
}

func sign(v float64) int {
	switch {
	case v < 0:
		return -1
	case v > 0:
		return 1
	}
	return 0
}

// judgeFilteredOptions finds sessions that cannot use a filtered index at all.
func judgeFilteredOptions(list []cachedStatement, sec *Section) {
	seen := make(map[string][]string)
	for _, c := range list {
		if c.options < 0 {
			continue
		}
		if wrong := strings.Join(wrongForFiltered(c.options), ", "); wrong != "" && !slices.Contains(seen[wrong], c.say()) {
			seen[wrong] = append(seen[wrong], c.say())
		}
	}
	for _, wrong := range slices.Sorted(maps.Keys(seen)) {
		labels := seen[wrong]
		sec.find(Bad, fmt.Sprintf("%s ran with %s. A session with that never uses a filtered index, so its reads scan, and its writes to the table fail with error 1934.",
			labels[0]+others(len(labels)-1), wrong),
			"set the option right in that application, or create the stored procedure again with it ON: a procedure keeps QUOTED_IDENTIFIER and ANSI_NULLS of its creation")
	}
}

func others(n int) string {
	if n <= 0 {
		return ""
	}
	return " and " + quantity.Of(n, "other")
}

// judgeTexts finds queries that come in many texts: literals in place of
// parameters, or parameters declared with the length of each value.
func judgeTexts(list []cachedStatement, sec *Section) {
	type group struct {
		label string
		texts map[string]bool
	}
	byHash := make(map[string]*group)
	for _, c := range list {
		if strings.Trim(c.queryHash, "0") == "" {
			continue
		}
		g := byHash[c.queryHash]
		if g == nil {
			g = &group{label: c.say(), texts: make(map[string]bool)}
			byHash[c.queryHash] = g
		}
		g.texts[c.sqlHandle] = true
	}
	for _, hash := range slices.Sorted(maps.Keys(byHash)) {
		g := byHash[hash]
		if len(g.texts) > manyTexts {
			sec.find(Warn, fmt.Sprintf("One query is cached in %d texts (%s): literals in the text, or parameters declared as long as each value. Every text is compiled, and they push each other out.", len(g.texts), g.label),
				"send values as parameters of one declared length")
		}
	}
}

func judgeForced(list []cachedStatement, sec *Section) {
	for _, c := range list {
		if c.options >= 0 && c.options&bitForced != 0 {
			sec.find(Warn, "Plans were compiled under forced parameterization: it turns a literal status into a parameter, which no filtered index matches, in statements without a variable or RECOMPILE.",
				"ALTER DATABASE CURRENT SET PARAMETERIZATION SIMPLE;")
			return
		}
	}
}

func shortHash(hash string) string {
	if len(hash) > 8 {
		return hash[:8]
	}
	return hash
}
