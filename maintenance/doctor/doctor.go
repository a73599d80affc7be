// Package doctor says whether an outbox can go live: every condition that the
// worker relies on, checked where it can be checked, with what to do where it
// does not hold. It changes nothing; the claim and the event that it tries are
// rolled back.
package doctor

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance"
	"azsqloutbox/sqlserver"
)

// Verdict is what a check came to.
type Verdict string

const (
	OK Verdict = "ok"
	// Warn: it works, and something is worth knowing.
	Warn Verdict = "warn"
	// NoGo: do not start a worker before this is mended.
	NoGo Verdict = "no-go"
	// Unknown: it could not be checked, and Found says why.
	Unknown Verdict = "unknown"
)

// Finding is the outcome of one check.
type Finding struct {
	// Check names it in a few words; Found is what was seen; Remedy is what to do,
	// empty where there is nothing to do.
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"`
	Remedy  string  `json:"remedy"`
}

// Report is all findings, of the database first.
type Report struct {
	Table string `json:"table"`
	// Go is true when no finding says no-go.
	Go       bool      `json:"go"`
	NoGo     int       `json:"no_go"`
	Warnings int       `json:"warnings"`
	Unknown  int       `json:"unknown"`
	Findings []Finding `json:"findings"`
	// Grants is the script that gives a worker what it needs and no more.
	Grants string `json:"grants"`
	// EventsPerSecond is what the living workers send; nil where that could not be
	// read.
	EventsPerSecond *float64 `json:"-"`
}

// Add joins findings of other parts of the set-up to the report.
func (r *Report) Add(findings ...Finding) {
	for _, f := range findings {
		r.Findings = append(r.Findings, f)
		switch f.Verdict {
		case NoGo:
			r.NoGo++
		case Warn:
			r.Warnings++
		case Unknown:
			r.Unknown++
		}
	}
	r.Go = r.NoGo == 0
}

// Text prints the report for a person.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-8s%s: %s\n", maintenance.Printable(strings.ToUpper(string(f.Verdict))), maintenance.Printable(f.Check), maintenance.Printable(strings.ReplaceAll(f.Found, "\n", "; ")))
		if f.Remedy != "" {
			for line := range strings.Lines(f.Remedy) {
				fmt.Fprintf(&b, "        > %s\n", maintenance.Printable(strings.TrimRight(line, "\n")))
			}
		}
	}
	verdict := "GO"
	if !r.Go {
		verdict = "NO-GO"
	}
	fmt.Fprintf(&b, "\n%s for %s: %d no-go, %s, %d could not be checked\n", verdict, maintenance.Printable(r.Table), r.NoGo, quantity.Of(r.Warnings, "warning"), r.Unknown)
	_, err := io.WriteString(w, b.String())
	return err
}

// Config says which outbox is looked at, and how its workers are set.
type Config struct {
	DB *sql.DB
	sqlserver.Names
	// Lease, PublishDeadline and SendTimeout are the workers' settings.
	Lease, PublishDeadline, SendTimeout time.Duration
	// BlockSize is how many ids a writer takes with one value of the sequence.
	BlockSize int64
	Logger    *zap.Logger
}

func (c Config) withDefaults() Config {
	c.BlockSize = cmp.Or(c.BlockSize, 50)
	c.Logger = cmp.Or(c.Logger, zap.NewNop())
	return c
}

// patience bounds one check.
const patience = 30 * time.Second

// check is one look at the database.
type check struct {
	name string
	run  func(*visit, context.Context) ([]Finding, error)
}

var checks = []check{
	{"connection", (*visit).connection},
	{"session options", (*visit).options},
	{"database", (*visit).database},
	{"table and indexes", (*visit).table},
	{"rights", (*visit).rights},
	{"rehearsal", (*visit).rehearsal},
	{"claims beside writers", (*visit).besideWriters},
	{"plan of the claim", (*visit).plan},
	{"triggers and modules", (*visit).modules},
	{"paused rebuilds", (*visit).rebuilds},
	{"lease and deadlines", (*visit).deadlines},
	{"workers", (*visit).workers},
	{"builds", (*visit).builds},
}

// visit is a look at one outbox: its connection as an application has it, with
// nothing set.
type visit struct {
	Config
	conn *sql.Conn
	// facts that more than one check needs; the first finds them.
	facts  databaseFacts
	report *Report
}

// Examine runs all checks of the database. It fails only where there is no
// connection at all; a check that cannot be made is a finding.
func Examine(ctx context.Context, c Config) (*Report, error) {
	c = c.withDefaults()
	r := &Report{Table: c.String(), Go: true}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	conn, err := c.DB.Conn(ctx)
	if err != nil {
		return nil, sqlserver.Classify("connect to the database", err)
	}
	defer conn.Close()
	v := &visit{Config: c, conn: conn, report: r}
	if r.Grants, err = grants(c.Names); err != nil {
		return nil, err
	}
	for _, check := range checks {
		call, cancel := context.WithTimeout(ctx, patience)
		found, err := check.run(v, call)
		cancel()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("doctor of %s: %w", c.String(), context.Cause(ctx))
		}
		if err != nil {
			found = append(found, Finding{Check: check.name, Verdict: Unknown, Found: sqlserver.Classify("could not be checked", err).Error()})
		}
		r.Add(slices.Clip(found)...)
	}
	return r, nil
}

func one(check string, verdict Verdict, found, remedy string) []Finding {
	return []Finding{{Check: check, Verdict: verdict, Found: found, Remedy: remedy}}
}
