package diagnose

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed report.gohtml
var reportTemplate string

var reportHTML = template.Must(template.New("report").Funcs(template.FuncMap{
	"format":  format,
	"numeric": func(u Unit) bool { return u != Text && u != Moment },
	"plot":    newPlot,
	"first":   Section.first,
	"column": func(t Table, i int) Column {
		return t.Columns[i]
	},
	"bar": func(t Table, i int, v any) float64 {
		share, ok := v.(float64)
		if !ok || t.Columns[i].Unit != Percent {
			return -1
		}
		return min(100, max(0, share))
	},
}).Parse(reportTemplate))

// WriteHTML writes the report as one file: styles and charts are in it, nothing
// is loaded when it is opened, and text from the database is escaped.
func (r *Report) WriteHTML(w io.Writer) error {
	return reportHTML.Execute(w, r)
}

// Headline and Tally are for the template.
func (r *Report) Headline() string { return r.headline() }

// Tally counts the sections by verdict.
func (r *Report) Tally() string { return r.tally() }

// share is how much of the limit is used; 1 is all.
func (g Gauge) share() float64 { return ratio(g.Value, g.Limit) }

// Width is the share in percent for a bar; Limit's mark stands at Mark where the
// value is beyond it.
func (g Gauge) Width() float64 {
	if g.share() > 1 {
		return 100
	}
	return 100 * max(0, g.share())
}

// Mark is where the limit stands on the bar, in percent.
func (g Gauge) Mark() float64 {
	if s := g.share(); s > 1 {
		return 100 / s
	}
	return 100
}

// Over says that the value is beyond its limit.
func (g Gauge) Over() bool { return g.share() > 1 }

// Percent is the share for people.
func (g Gauge) Percent() string { return format(100*g.share(), Percent) }

// plot is a chart in the coordinates of its drawing.
type plot struct {
	Title                     string
	Average, Highest          string
	Line, Area                string
	From, To                  string
	Width, Height, Left, Base float64
	Right                     float64
	Grid                      []gridLine
}

type gridLine struct {
	Y    float64
	Text string
}

const (
	plotWidth  = 330.0
	plotHeight = 126.0
	plotLeft   = 40.0
	plotTop    = 8.0
	plotBase   = 104.0
)

// newPlot places the points of a chart between the axes.
func newPlot(c Chart) plot {
	p := plot{Title: c.Title, Width: plotWidth, Height: plotHeight, Left: plotLeft, Base: plotBase, Right: plotWidth - 6}
	if len(c.Points) == 0 {
		return p
	}
	values := make([]float64, len(c.Points))
	sum := 0.0
	for i, pt := range c.Points {
		values[i] = pt.Value
		sum += pt.Value
	}
	top := max(c.Top, slices.Max(values))
	y := func(v float64) float64 { return plotBase - (plotBase-plotTop)*ratio(v, top) }
	from, to := c.Points[0].At, c.Points[len(c.Points)-1].At
	x := func(i int) float64 {
		if span := to.Sub(from).Seconds(); span > 0 {
			return plotLeft + (p.Right-plotLeft)*c.Points[i].At.Sub(from).Seconds()/span
		}
		return plotLeft
	}
	var line strings.Builder
	for i, v := range values {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&line, "%s%.1f %.1f", command, x(i), y(v))
	}
	p.Line = line.String()
	p.Area = fmt.Sprintf("%sL%.1f %.1fL%.1f %.1fZ", p.Line, x(len(values)-1), plotBase, x(0), plotBase)
	p.Average, p.Highest = format(sum/float64(len(values)), c.Unit), format(slices.Max(values), c.Unit)
	p.From, p.To = from.UTC().Format("15:04"), to.UTC().Format("15:04")
	for _, part := range []float64{0, 0.5, 1} {
		p.Grid = append(p.Grid, gridLine{y(part * top), format(part*top, c.Unit)})
	}
	return p
}
