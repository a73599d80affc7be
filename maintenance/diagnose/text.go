package diagnose

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance"
)

// textWidth is what a line may take.
const textWidth = 100

// WriteText writes the report for a terminal of 100 columns, in colour where
// asked for.
func (r *Report) WriteText(w io.Writer, color bool) error {
	t := &textReport{color: color}
	t.line(0, t.bold("outbox "+maintenance.Printable(r.Table))+"   "+r.tally())
	t.line(0, fmt.Sprintf("%s   %s UTC", maintenance.Printable(r.headline()), format(r.At, Moment)))
	t.blank()
	for _, s := range r.Sections {
		text := s.first()
		t.line(2, t.verdict(s.Verdict)+pad(s.Title, 34)+oneLine(text, textWidth-2-9-34))
	}
	for _, s := range r.Sections {
		t.section(s)
	}
	t.blank()
	for _, n := range r.Notes {
		t.wrap(0, "", n)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// first is the sentence that decides a section.
func (s Section) first() string {
	if len(s.Evidence.Findings) == 0 {
		return ""
	}
	return s.Evidence.Findings[0].Text
}

// tally counts the sections by verdict: "2 bad, 1 warn, 4 ok".
func (r *Report) tally() string {
	var parts []string
	for _, v := range []Verdict{Bad, Warn, OK, Unknown} {
		n := 0
		for _, s := range r.Sections {
			if s.Verdict == v {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	return strings.Join(parts, ", ")
}

type textReport struct {
	b     strings.Builder
	color bool
}

func (t *textReport) section(s Section) {
	t.blank()
	t.line(0, t.verdict(s.Verdict)+t.bold(s.Title))
	for _, f := range s.Evidence.Findings {
		t.wrap(2, t.mark(f.Verdict)+" ", f.Text)
		if f.Remedy != "" {
			t.wrap(4, "→ ", f.Remedy)
		}
	}
	if len(s.Evidence.Figures) > 0 {
		t.blank()
		widest := 0
		for _, f := range s.Evidence.Figures {
			widest = max(widest, utf8.RuneCountInString(f.Name))
		}
		for _, f := range s.Evidence.Figures {
			t.line(4, maintenance.Printable(pad(f.Name, widest+2)+format(f.Value, f.Unit)))
		}
	}
	for _, g := range s.Evidence.Gauges {
		t.gauge(g)
	}
	if len(s.Evidence.Charts) > 0 {
		t.blank()
	}
	for _, c := range s.Evidence.Charts {
		t.chart(c)
	}
	for _, table := range s.Evidence.Tables {
		t.table(table)
	}
	if len(s.Evidence.Notes) > 0 {
		t.blank()
	}
	for _, n := range s.Evidence.Notes {
		t.wrap(4, "", n)
	}
}

// gauge draws a bar; past the limit it is full.
func (t *textReport) gauge(g Gauge) {
	const width = 24
	full := int(min(1, max(0, g.share()))*width + 0.5)
	t.line(4, fmt.Sprintf("%s  %s%s  %s of %s, %s", pad(maintenance.Printable(g.Title), 24), strings.Repeat("█", full), strings.Repeat("░", width-full),
		format(g.Value, g.Unit), format(g.Limit, g.Unit), format(100*g.share(), Percent)))
}

func (t *textReport) chart(c Chart) {
	if len(c.Points) == 0 {
		return
	}
	values := make([]float64, len(c.Points))
	sum := 0.0
	for i, p := range c.Points {
		values[i] = p.Value
		sum += p.Value
	}
	t.line(4, fmt.Sprintf("%s %s  average %s, highest %s", pad(maintenance.Printable(c.Title), 12), sparkline(values, c.Top, 40),
		format(sum/float64(len(values)), c.Unit), format(slices.Max(values), c.Unit)))
}

// sparkline draws values as one line of blocks, no wider than width; each block
// is the highest of its part.
func sparkline(values []float64, top float64, width int) string {
	const blocks = "▁▂▃▄▅▆▇█"
	runes := []rune(blocks)
	width = min(width, len(values))
	out := make([]rune, width)
	for i := range out {
		part := values[i*len(values)/width : max((i+1)*len(values)/width, i*len(values)/width+1)]
		level := slices.Max(part) / max(top, 1)
		out[i] = runes[min(len(runes)-1, max(0, int(level*float64(len(runes)))))]
	}
	return string(out)
}

const (
	gap = 2
	// narrowest is what a text column is cut down to at most, and the first one
	// less: it says what the row is about.
	narrowest      = 24
	narrowestFirst = 28
)

// table writes columns side by side. Text gives way first, then the columns at
// the right, which JSON has.
func (t *textReport) table(table Table) {
	cells := make([][]string, 0, len(table.Rows)+1)
	head := make([]string, len(table.Columns))
	for i, c := range table.Columns {
		head[i] = c.Name
	}
	cells = append(cells, head)
	for _, row := range table.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = oneLine(format(v, table.Columns[i].Unit), 200)
		}
		cells = append(cells, line)
	}
	widths := columnWidths(cells, table.Columns, textWidth-4)
	t.blank()
	title := maintenance.Printable(table.Title)
	if left := len(table.Columns) - len(widths); left > 0 {
		title += fmt.Sprintf(" (%s more in --json and --html)", quantity.Of(left, "column"))
	}
	t.line(4, t.bold(title))
	for i, row := range cells {
		var b strings.Builder
		for c, width := range widths {
			if c > 0 {
				b.WriteString(strings.Repeat(" ", gap))
			}
			text := oneLine(row[c], width)
			if table.Columns[c].Unit == Text || table.Columns[c].Unit == Moment {
				b.WriteString(pad(text, width))
			} else {
				b.WriteString(strings.Repeat(" ", width-utf8.RuneCountInString(text)) + text)
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if i == 0 {
			line = t.dim(line)
		}
		t.line(4, line)
	}
}

func columnWidths(cells [][]string, columns []Column, room int) []int {
	widths := make([]int, len(columns))
	for _, row := range cells {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	least := func(i int) int {
		if i == 0 {
			return narrowestFirst
		}
		return narrowest
	}
	for {
		total := gap * (len(widths) - 1)
		widest := -1
		for i, w := range widths {
			total += w
			if columns[i].Unit == Text && w > least(i) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		switch {
		case total <= room:
			return widths
		case widest >= 0:
			widths[widest]-- // the widest gives way until another is as wide
		default:
			widths = widths[:len(widths)-1]
		}
	}
}

func pad(text string, width int) string {
	if n := utf8.RuneCountInString(text); n < width {
		return text + strings.Repeat(" ", width-n)
	}
	return text
}

func (t *textReport) blank() {
	if !strings.HasSuffix(t.b.String(), "\n\n") {
		t.b.WriteByte('\n')
	}
}

func (t *textReport) line(indent int, text string) {
	t.b.WriteString(strings.Repeat(" ", indent) + text + "\n")
}

// wrap breaks text at blanks; lines after the first stand under its first word.
func (t *textReport) wrap(indent int, mark, text string) {
	hang := utf8.RuneCountInString(stripColor(mark))
	room := textWidth - indent - hang
	line, first := "", true
	flush := func() {
		lead := strings.Repeat(" ", hang)
		if first {
			lead = mark
		}
		t.line(indent, strings.TrimRight(lead+line, " "))
		line, first = "", false
	}
	for _, word := range strings.Fields(text) {
		word = maintenance.Printable(word)
		for utf8.RuneCountInString(word) > room {
			if line != "" {
				flush()
			}
			runes := []rune(word)
			line, word = string(runes[:room]), string(runes[room:])
			flush()
		}
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > room {
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		flush()
	}
}

var colors = map[Verdict]string{OK: "\x1b[32m", Warn: "\x1b[33m", Bad: "\x1b[31m", Unknown: "\x1b[36m"}

const plain = "\x1b[0m"

func (t *textReport) verdict(v Verdict) string {
	text := pad(strings.ToUpper(string(v)), 9)
	if !t.color {
		return text
	}
	return colors[v] + text + plain
}

func (t *textReport) mark(v Verdict) string {
	mark := map[Verdict]string{OK: "✓", Warn: "!", Bad: "✗", Unknown: "?"}[v]
	if !t.color {
		return mark
	}
	return colors[v] + mark + plain
}

func (t *textReport) bold(text string) string {
	if !t.color {
		return text
	}
	return "\x1b[1m" + text + plain
}

func (t *textReport) dim(text string) string {
	if !t.color {
		return text
	}
	return "\x1b[2m" + text + plain
}

func stripColor(text string) string {
	for _, c := range append(slices.Collect(maps.Values(colors)), plain) {
		text = strings.ReplaceAll(text, c, "")
	}
	return text
}
