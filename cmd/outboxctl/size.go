package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance/sizing"
)

type sizeCmd struct {
	EventsPerSecond float64       `env:"-" required:"" placeholder:"N" help:"Events a second at the peak."`
	Average         *float64      `env:"-" placeholder:"N" help:"Events a second over a whole retention, for storage. Default: the peak."`
	Payload         int           `env:"-" required:"" placeholder:"BYTES" help:"An average payload, in bytes of UTF-8."`
	Headers         int           `env:"-" placeholder:"BYTES" help:"What the headers column holds on average. Default 0."`
	Retention       time.Duration `env:"-" default:"72h" help:"How long sent events stay until the purge takes them."`
	Outage          time.Duration `env:"-" default:"1h" help:"How long the broker or the workers may be away so that what waits is still in memory."`
	Tier            string        `env:"-" default:"gp" help:"Service tier of Azure SQL: gp (General Purpose), bc (Business Critical) or hyperscale."`
	Unicode         bool          `env:"-" help:"Payload and headers are NVARCHAR: two bytes a character."`
	Slim            bool          `env:"-" help:"The claim index does not include the payload (schema print --slim)."`
	Subscriptions   int           `env:"-" placeholder:"N" help:"Subscriptions of the topic that each event goes to. Default 0: a queue."`
}

// tiers are the names of --tier.
var tiers = map[string]sizing.Tier{
	"gp": sizing.GeneralPurpose, "bc": sizing.BusinessCritical,
	"hyperscale": sizing.Hyperscale, "hs": sizing.Hyperscale,
}

// Run prints what a workload needs. It asks no database.
func (c *sizeCmd) Run(a *app) error {
	tier, known := tiers[strings.ToLower(c.Tier)]
	w := sizing.Workload{
		EventsPerSecond: c.EventsPerSecond,
		PayloadBytes:    c.Payload, HeaderBytes: c.Headers, Retention: c.Retention, Outage: c.Outage,
		Tier: tier, Unicode: c.Unicode, SlimClaimIndex: c.Slim, Subscriptions: c.Subscriptions,
	}
	if c.Average != nil {
		w.AverageEventsPerSecond = *c.Average
	}
	switch {
	case c.Average != nil && *c.Average == 0: // below, 0 is the peak
		return usageError{errors.New("--average is 0, must be above 0")}
	case !known:
		return usageError{fmt.Errorf("--tier is %q, must be gp, bc or hyperscale", c.Tier)}
	case c.Retention == 0:
		return usageError{errors.New("--retention is 0, must be at least 1m")}
	case c.Outage == 0:
		return usageError{errors.New("--outage is 0, must be at least 1m")}
	}
	plan, err := sizing.Size(w)
	if err != nil {
		return usageError{err}
	}
	if err := a.result(plan, func(out io.Writer) error { return writeSize(out, c, plan) }); err != nil {
		return err
	}
	if !plan.Fits {
		return errFound
	}
	return nil
}

// limitingWords say what decided about the vCores.
var limitingWords = map[string]string{
	sizing.FactorLog: "the log rate decides", sizing.FactorMemory: "the memory for the hot part decides",
	sizing.FactorCPU: "the CPU decides", sizing.FactorStorage: "the storage decides",
	sizing.FactorSmallest: "the smallest size is enough",
}

// noSize says whether the tier has no size for one of the factors.
func noSize(p sizing.Plan) bool {
	return slices.ContainsFunc(p.Factors, func(f sizing.Factor) bool { return f.VCores == 0 })
}

// brokerText says what of a Service Bus tier is needed, and why that tier.
func brokerText(p sizing.Plan) string {
	units := quantity.Of(p.MessagingUnits, "messaging unit")
	if p.Namespaces > 1 {
		units += fmt.Sprintf(" in each of %d namespaces", p.Namespaces)
	}
	if p.ServiceBusTier == sizing.Standard {
		return fmt.Sprintf("%.4g of %s credits/s; Premium would take %s", p.CreditsPerSecond, quantity.Grouped(sizing.StandardCredits), units)
	}
	why := "a message is too large for Standard"
	if p.CreditsPerSecond > sizing.StandardCredits*sizing.Utilization {
		why = fmt.Sprintf("%s credits/s are too many for Standard", quantity.Grouped(int64(p.CreditsPerSecond)))
	}
	return fmt.Sprintf("%s for %.4g MB/s in plus out; %s", units, p.BrokerMBPerSecond, why)
}

func writeSize(out io.Writer, c *sizeCmd, p sizing.Plan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%v events/s of %s, sent ones kept for %s, in %s:\n\n", c.EventsPerSecond, quantity.Of(int64(c.Payload), "byte"), quantity.Span(c.Retention), p.Tier)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if noSize(p) {
		fmt.Fprintf(t, "vCores\t-\tno size of %s is enough: %s\n", p.Tier, limitingWords[p.LimitingFactor])
	} else {
		fmt.Fprintf(t, "vCores\t%d\t%s: %s\n", p.VCores, p.Objective, limitingWords[p.LimitingFactor])
	}
	fmt.Fprintf(t, "log\t%.4g MB/s\t%s bytes an event, from its insert to its purge\n", p.LogMBPerSecond, quantity.Grouped(int64(p.LogBytesPerEvent)))
	fmt.Fprintf(t, "storage\t%.4g GB\t%s of %s bytes; %.3g GB of it hot\n", p.StorageGB, quantity.Of(p.Rows, "row"), quantity.Grouped(int64(p.RowBytes)), p.HotGB)
	fmt.Fprintf(t, "Service Bus\t%s\t%s\n", p.ServiceBusTier, brokerText(p))
	if c.Subscriptions > 1 {
		copies := c.EventsPerSecond * float64(c.Subscriptions)
		text := fmt.Sprintf("%.3g", copies)
		if copies >= 1000 {
			text = quantity.Grouped(int64(copies))
		}
		fmt.Fprintf(t, "\t\t%s copies/s, one of each event for each of %s\n", text, quantity.Of(c.Subscriptions, "subscription"))
	}
	replica := fmt.Sprintf("%s events/s each, and one to spare", quantity.Grouped(int64(p.ReplicaEventsPerSecond)))
	if p.ReplicaRate > 0 {
		replica += fmt.Sprintf("; OUTBOX_SERVICEBUS_RATE=%v leaves the receivers their credits", p.ReplicaRate)
		if rest := p.ReplicaRate * float64(p.Replicas-1); rest < c.EventsPerSecond {
			replica += fmt.Sprintf("; with a replica away that is %.4g events/s, below the peak", rest)
		}
	}
	fmt.Fprintf(t, "replicas\t%d\t%s\n", p.Replicas, replica)
	_ = t.Flush() // into memory

	b.WriteString("\nWhat each alone would take:\n\n")
	t = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, f := range p.Factors {
		cores := "no size has it"
		if f.VCores > 0 {
			cores = quantity.Of(f.VCores, "vCore")
		}
		fmt.Fprintf(t, "%s\t%.4g of %.4g %s\t%s\n", strings.ReplaceAll(f.Name, "_", " "), f.Need, f.Limit, f.Unit, cores)
	}
	_ = t.Flush()
	if p.WholeInMemory > 0 {
		fmt.Fprintf(&b, "\nAll rows would be in memory with %s.\n", quantity.Of(p.WholeInMemory, "vCore"))
	} else {
		b.WriteString("\nNo size of the tier holds all rows in memory.\n")
	}
	for _, problem := range p.Problems {
		fmt.Fprintf(&b, "\nProblem: %s.\n", problem)
	}
	b.WriteString("\nIt assumes that\n")
	for _, assumed := range p.Assumptions {
		fmt.Fprintf(&b, "* %s\n", assumed)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
