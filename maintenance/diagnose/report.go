package diagnose

import (
	"slices"
	"time"
)

// Verdict is what a section or a finding comes to.
type Verdict string

// The verdicts, from good to worst; Unknown stands apart: the database did not
// say.
const (
	OK      Verdict = "ok"
	Warn    Verdict = "warn"
	Bad     Verdict = "bad"
	Unknown Verdict = "unknown"
)

var severity = map[Verdict]int{OK: 0, Unknown: 1, Warn: 2, Bad: 3}

func worst(a, b Verdict) Verdict {
	if severity[b] > severity[a] {
		return b
	}
	return a
}

// Report is what a run of Run found.
type Report struct {
	// Table is the outbox as a person writes it.
	Table string `json:"table"`
	Database
	// At is the database's clock, UTC.
	At time.Time `json:"at"`
	// Since is the start of what Query Store was asked for; the other counters
	// cannot be cut at a time, Notes says what each counts from.
	Since time.Time `json:"since"`
	// Seconds is how long the run took.
	Seconds float64 `json:"seconds"`
	// Verdict is the worst of the sections'; one that is not known counts only
	// where all are.
	Verdict  Verdict   `json:"verdict"`
	Notes    []string  `json:"notes"`
	Sections []Section `json:"sections"`
}

// Section is one subject.
type Section struct {
	ID      string  `json:"id"`
	Title   string  `json:"title"`
	Verdict Verdict `json:"verdict"`
	// Reason is why a section is unknown, with the GRANT where a right is missing.
	Reason   string   `json:"reason,omitempty"`
	Evidence Evidence `json:"evidence"`
	// Remedy is what to do, the most urgent first.
	Remedy []string `json:"remedy"`
}

// Evidence is what a verdict rests on.
type Evidence struct {
	Findings []Finding `json:"findings"`
	Figures  []Figure  `json:"figures"`
	Gauges   []Gauge   `json:"gauges"`
	Tables   []Table   `json:"tables"`
	Charts   []Chart   `json:"charts"`
	// Notes are what the figures do not say: what was not to be had, and what they
	// count from.
	Notes []string `json:"notes"`
}

// Finding is one sentence about one thing, and what to do about it.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	Remedy  string  `json:"remedy,omitempty"`
	// Foreign: it is about a statement that is not the worker's.
	Foreign bool `json:"-"`
}

// Unit says what a number counts; the renderings write it.
type Unit string

// The units of figures and columns.
const (
	Text         Unit = "text"
	Count        Unit = "count"
	Pages        Unit = "pages"
	Milliseconds Unit = "ms"
	Bytes        Unit = "bytes"
	BytesPerSec  Unit = "bytes/s"
	PerSecond    Unit = "per second"
	Percent      Unit = "percent"
	Ratio        Unit = "ratio"
	Moment       Unit = "time"
)

// Figure is one number with its name. Value is a number, a string, a time, or
// nil where the database did not say.
type Figure struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
	Unit  Unit   `json:"unit"`
}

// Gauge is a value held against its limit.
type Gauge struct {
	Title string  `json:"title"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	Unit  Unit    `json:"unit"`
}

// Table is rows of figures.
type Table struct {
	Title   string   `json:"title"`
	Columns []Column `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

// Column is a column of a Table.
type Column struct {
	Name string `json:"name"`
	Unit Unit   `json:"unit"`
}

// Chart is one series over time.
type Chart struct {
	Title string `json:"title"`
	Unit  Unit   `json:"unit"`
	// Top is the value at the upper edge, such as 100 percent.
	Top    float64 `json:"top"`
	Points []Point `json:"points"`
}

// Point is one value of a Chart; At is UTC.
type Point struct {
	At    time.Time `json:"at"`
	Value float64   `json:"value"`
}

// section begins one with every list there, so that JSON has no null in their
// place.
func newSection(id, title string) Section {
	return Section{
		ID: id, Title: title, Verdict: OK,
		Evidence: Evidence{Findings: []Finding{}, Figures: []Figure{}, Gauges: []Gauge{}, Tables: []Table{}, Charts: []Chart{}, Notes: []string{}},
		Remedy:   []string{},
	}
}

// unknown is a section that could not be judged: why not, and what would change
// that.
func (s Section) unknown(reason, remedy string) Section {
	s.Reason = reason
	s.find(Unknown, reason, remedy)
	return s
}

func (s *Section) find(v Verdict, text, remedy string) {
	if f := (Finding{Verdict: v, Text: text, Remedy: remedy}); !slices.Contains(s.Evidence.Findings, f) {
		s.Evidence.Findings = append(s.Evidence.Findings, f)
	}
	s.Verdict = worst(s.Verdict, v)
}

func (s *Section) figure(name string, value any, unit Unit) {
	s.Evidence.Figures = append(s.Evidence.Figures, Figure{name, rounded(value), unit})
}

func (s *Section) note(text string) {
	if text != "" && !slices.Contains(s.Evidence.Notes, text) {
		s.Evidence.Notes = append(s.Evidence.Notes, text)
	}
}

// table adds one that has rows, without the columns in which no row has a value.
func (s *Section) table(t Table) {
	if len(t.Rows) == 0 {
		return
	}
	var keep []int
	for i := range t.Columns {
		if slices.ContainsFunc(t.Rows, func(row []any) bool { return row[i] != nil && row[i] != "" }) {
			keep = append(keep, i)
		}
	}
	kept := Table{Title: t.Title}
	for _, i := range keep {
		kept.Columns = append(kept.Columns, t.Columns[i])
	}
	for _, row := range t.Rows {
		cells := make([]any, len(keep))
		for n, i := range keep {
			cells[n] = rounded(row[i])
		}
		kept.Rows = append(kept.Rows, cells)
	}
	s.Evidence.Tables = append(s.Evidence.Tables, kept)
}

// sorted puts the worst findings first and gathers their remedies.
func (s Section) sorted() Section {
	slices.SortStableFunc(s.Evidence.Findings, func(a, b Finding) int { return severity[b.Verdict] - severity[a.Verdict] })
	s.Remedy = []string{}
	for _, f := range s.Evidence.Findings {
		if f.Remedy != "" && !slices.Contains(s.Remedy, f.Remedy) {
			s.Remedy = append(s.Remedy, f.Remedy)
		}
	}
	return s
}
