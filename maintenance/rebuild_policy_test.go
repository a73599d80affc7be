package maintenance

import (
	"strings"
	"testing"
	"time"
)

func yes(b bool) *bool { return &b }

// article is the clustered index of the article: 45 million rows of 1.3 KB in
// pages built at 85 %, five a page.
func article() rebuildState {
	return rebuildState{
		name: "PK", kind: clusteredType, leadingID: true, sequential: yes(true), fillFactor: 85, rows: 45_000_000,
		measured: true, pages: 9_000_000, density: 80.4, row: 1300,
	}
}

func TestRebuildPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*rebuildState)
		force, named bool
		action       RebuildAction
		set          bool
		because      string
		frees        int64 // in pages, at least
	}{
		"fill factor 85":                 {action: RebuildWhole, because: "80 % full and would be about 90 %", frees: 900_000},
		"dense":                          {change: func(s *rebuildState) { s.density = 91 }, action: RebuildNone, because: "91 % full and would be about 90 %"},
		"a little empty":                 {change: func(s *rebuildState) { s.density = 87 }, action: RebuildNone, because: "87 % full"},
		"a little empty, forced":         {change: func(s *rebuildState) { s.density = 87 }, force: true, action: RebuildWhole, because: "forced"},
		"fragmented only":                {change: func(s *rebuildState) { s.density, s.fragmentation = 91, 99 }, action: RebuildNone},
		"small":                          {change: func(s *rebuildState) { s.pages, s.density = 999, 10 }, action: RebuildNone, because: "too small"},
		"ghosts of a drained backlog":    {change: func(s *rebuildState) { s.pages, s.density, s.row = 50_000, 3, 700 }, action: RebuildWhole, frees: 47_000},
		"option only":                    {change: func(s *rebuildState) { s.density, s.sequential = 91, yes(false) }, action: RebuildSet, set: true},
		"option and rebuild":             {change: func(s *rebuildState) { s.sequential = yes(false) }, action: RebuildWhole, set: true},
		"option of another key":          {change: func(s *rebuildState) { s.density, s.sequential, s.leadingID = 91, yes(false), false }, action: RebuildNone},
		"option unknown to the server":   {change: func(s *rebuildState) { s.density, s.sequential = 91, nil }, action: RebuildNone},
		"density not seen, 85":           {change: func(s *rebuildState) { s.measured = false }, action: RebuildWhole, because: "about 13 % of it is nothing"},
		"density not seen, 98":           {change: func(s *rebuildState) { s.measured, s.fillFactor = false, 98 }, action: RebuildNone, because: "no reason"},
		"density not seen, no rows":      {change: func(s *rebuildState) { s.measured, s.rows = false, 0 }, action: RebuildNone},
		"disabled":                       {change: func(s *rebuildState) { s.disabled = true }, action: RebuildNone, because: "disabled"},
		"disabled and forced":            {change: func(s *rebuildState) { s.disabled = true }, force: true, action: RebuildNone},
		"disabled and named":             {change: func(s *rebuildState) { s.disabled = true }, named: true, action: RebuildWhole},
		"disabled, and the worker's":     {change: func(s *rebuildState) { s.disabled, s.byHint = true, true }, action: RebuildWhole},
		"columnstore":                    {change: func(s *rebuildState) { s.kind = 6 }, force: true, action: RebuildNone, because: "no rowstore"},
		"paused":                         {change: func(s *rebuildState) { s.operation = &ResumableOperation{State: "PAUSED", PercentComplete: 43} }, action: RebuildResume, because: "paused at 43 %"},
		"paused, and the option":         {change: func(s *rebuildState) { s.operation, s.sequential = &ResumableOperation{State: "PAUSED"}, yes(false) }, action: RebuildResume},
		"rebuilt by somebody else":       {change: func(s *rebuildState) { s.operation = &ResumableOperation{State: "RUNNING"} }, force: true, action: RebuildWait},
		"rows of half a page stay alone": {change: func(s *rebuildState) { s.row, s.density = 4500, 55.6 }, action: RebuildNone},
		"rows of a page":                 {change: func(s *rebuildState) { s.row, s.density = 8000, 98.8 }, action: RebuildNone},
	} {
		s := article()
		if c.change != nil {
			c.change(&s)
		}
		d := decideRebuild(s, 98, c.force, c.named)
		if d.action != c.action || d.set != c.set || !strings.Contains(d.reason, c.because) || d.reason == "" || c.frees > 0 && *d.frees < c.frees*pageBytes {
			t.Errorf("%s: %+v", name, d)
		}
		if (d.frees == nil || d.log == nil) != (!s.measured && (d.action == RebuildWhole || d.action == RebuildResume)) {
			t.Errorf("%s: %+v says what it cannot know, or does not say what it can", name, d)
		}
		if (d.frees != nil && *d.frees != 0 || d.log != nil && *d.log != 0) && d.action != RebuildWhole && d.action != RebuildResume {
			t.Errorf("%s: %+v frees or logs something", name, d)
		}
	}
}

// What was rebuilt a moment ago gains nothing, whatever its rows.
func TestRebuildPolicyRests(t *testing.T) {
	for _, fillFactor := range []int{50, 70, 85, 98, 100} {
		for _, row := range []float64{20, 90, 400, 700, 1300, 2600, 4100, 8060} {
			s := article()
			s.row, s.pages = row, 100_000
			s.density = s.densityAfter(fillFactor)
			if d := decideRebuild(s, fillFactor, false, false); d.action != RebuildNone || s.density <= 0 || s.density > 100 {
				t.Errorf("fill factor %d, rows of %.0f bytes: density %.1f, then %+v", fillFactor, row, s.density, d)
			}
		}
	}
}

func TestRebuildOptions(t *testing.T) {
	const low = "WAIT_AT_LOW_PRIORITY (MAX_DURATION = 3 MINUTES, ABORT_AFTER_WAIT = SELF)"
	r := Rebuild{FillFactor: 98, MaxDuration: 90 * time.Minute, LowPriorityWait: 3 * time.Minute}
	filtered := article()
	filtered.filtered = true
	odd := article()
	odd.unresumableKey = true
	for want, got := range map[string]string{
		"FILLFACTOR = 98, ONLINE = ON (" + low + "), RESUMABLE = ON, MAX_DURATION = 90 MINUTES": r.rebuildHow(article(), true),
		"FILLFACTOR = 98, ONLINE = ON (" + low + "), RESUMABLE = OFF":                           r.rebuildHow(filtered, true),
		"FILLFACTOR = 98, ONLINE = OFF":                                                         r.rebuildHow(article(), false),
		"MAX_DURATION = 90 MINUTES, " + low:                                                     r.resumeHow(),
		"MAX_DURATION = 90 MINUTES, MAXDOP = 2":                                                 Rebuild{MaxDuration: r.MaxDuration, MaxDOP: 2}.resumeHow(),
		"FILLFACTOR = 98, ONLINE = ON, RESUMABLE = OFF, MAXDOP = 2":                             Rebuild{FillFactor: 98, MaxDuration: r.MaxDuration, MaxDOP: 2}.rebuildHow(odd, true),
	} {
		if got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

func TestRebuildValidates(t *testing.T) {
	for _, r := range []Rebuild{
		{FillFactor: 101},
		{FillFactor: -1},
		{MaxDuration: 90 * time.Second},
		{MaxDuration: 169 * time.Hour},
		{LowPriorityWait: time.Second},
		{LowPriorityWait: -time.Minute},
		{MaxDOP: 65},
		{},
	} {
		if err := r.Validate(); err == nil || !strings.HasPrefix(err.Error(), "field ") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func init() {
	kinds["rebuildUserSQL"] = "Declare Select"
	kinds["rebuildIndexesSQL"] = "Declare Select"
	kinds["indexPhysicalStatsSQL"] = "Select"
	kinds["resumableOperationsSQL"] = "Select"
	kinds["logRateSQL"] = "Declare Select"
	kinds["logSpaceSQL"] = "Select"
	kinds["logReuseSQL"] = "Declare Select"
	kinds["longTransactionsSQL"] = "Select"
	kinds["sessionIDSQL"] = "Declare Select"
	kinds["rebuildRequestSQL"] = "Select"
	r := Rebuild{FillFactor: 98, MaxDuration: time.Hour, LowPriorityWait: time.Minute, MaxDOP: 4}
	short := Rebuild{FillFactor: 100, MaxDuration: time.Hour}
	filtered := rebuildState{filtered: true}
	for name, hows := range map[string][]string{
		"setSequentialKeySQL": {""},
		"pauseRebuildSQL":     {""},
		"abortRebuildSQL":     {""},
		"resumeRebuildSQL":    {r.resumeHow(), short.resumeHow()},
		"rebuildIndexSQL": {
			r.rebuildHow(rebuildState{}, true), r.rebuildHow(filtered, true), r.rebuildHow(rebuildState{}, false), short.rebuildHow(rebuildState{}, true),
		},
	} {
		kinds[name] = "AlterIndex"
		renderings[name] = func(text string) (filled []string) {
			for _, how := range hows {
				filled = append(filled, strings.NewReplacer("{index}", "[IX]]a'b]", "{how}", how).Replace(text))
			}
			return filled
		}
	}
}
