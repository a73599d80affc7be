package claimbench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance"
)

// Text prints the report for a person. What the catalog says, names above all, is
// made printable.
func (r Report) Text(out io.Writer) error {
	var b strings.Builder
	table := maintenance.Printable(r.Table)
	fmt.Fprintf(&b, "bench claim beside %s on %s\n\n", table, maintenance.Printable(r.Edition))
	fmt.Fprintf(&b, "Two scratch tables %s…, one behind the other, of %s with payloads of %s:\n", maintenance.Printable(r.Scratch), quantity.Of(r.Rows, "row"), quantity.Of(r.Payload, "character"))
	fmt.Fprintf(&b, "%s of %s by %s;\n", quantity.Of(r.Rounds, "batch"), quantity.Of(r.Batch, "event"), maintenance.Printable(strings.Join(r.Strategies, ", ")))
	fmt.Fprintf(&b, "at most about %s written to the log, %s in use at a time. %s itself is not touched.\n",
		quantity.Bytes(r.Log), quantity.Bytes(r.Space), table)
	for _, l := range r.Leftovers {
		what := "is of a run that was killed, or of one that goes on; --execute removes what was killed"
		if r.Executed {
			what = "was left of a run that was killed, and is removed"
		}
		fmt.Fprintf(&b, "%s, %s, %s.\n", maintenance.Printable(l.Name), quantity.Of(l.Rows, "row"), what)
	}
	if len(r.Results) > 0 {
		b.WriteByte('\n')
		r.table(&b)
		r.parts(&b)
	}
	for _, v := range r.Verdict {
		fmt.Fprintf(&b, "\n%s", maintenance.Printable(v))
	}
	if len(r.Verdict) > 0 {
		b.WriteString("\n\nOnly pipeline writes a receipt, so that a crash between claim and send loses nothing.\n")
		if slices.Contains(r.Strategies, DeleteOutput) {
			b.WriteString("delete-output is no replacement: it spares the purge, and what it claims cannot be given back.\n")
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nNote: %s.\n", maintenance.Printable(n))
	}
	if !r.Executed {
		b.WriteString("\nNothing was made or measured; add --execute to do it.\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (r Report) table(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "strategy\tindex\tCPU µs\treads\tlog B\tserver µs\tbatch ms\tstatements\tround trips")
	for _, x := range r.Results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\n", maintenance.Printable(x.Strategy), maintenance.Printable(x.Index),
			known(x.CPU), known(x.Reads), known(x.Log), known(x.Elapsed), short(x.BatchMillis), x.StatementsPerBatch, x.RoundTrips)
	}
	_ = t.Flush() // into memory
	b.WriteString("(CPU, reads, log and server time are for one event; statements and round trips for a batch)\n")
}

// parts is what each request of a strategy takes, where it has several: what the
// receipt costs, above all.
func (r Report) parts(b *strings.Builder) {
	for _, x := range r.Results {
		if len(x.Statements) < 2 {
			continue
		}
		var list []string
		for _, s := range x.Statements {
			list = append(list, fmt.Sprintf("%s %s", maintenance.Printable(strings.TrimPrefix(s.Statement, "Bench")), short(s.CPU/float64(r.Batch))))
		}
		fmt.Fprintf(b, "CPU µs of %s, %s: %s\n", maintenance.Printable(x.Strategy), maintenance.Printable(x.Index), strings.Join(list, ", "))
	}
}

func known(v *float64) string {
	if v == nil {
		return "?"
	}
	return short(*v)
}
