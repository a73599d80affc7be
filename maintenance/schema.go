package maintenance

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
)

// Schema compares the tables of an outbox with what worker and writers need,
// and adds what is missing. It drops nothing and changes nothing that is there.
type Schema struct {
	Target
	// Types, BlockSize and ScanStatus are those of sqlserver.InspectOptions.
	Types      scripts.Options
	BlockSize  int64
	ScanStatus bool
}

// SchemaReport is what was found.
type SchemaReport struct {
	Table   string `json:"table"`
	Edition string `json:"edition"`
	// Rows of the event table, by the catalog.
	Rows     int64               `json:"rows"`
	Must     int                 `json:"must"`
	Should   int                 `json:"should"`
	Findings []sqlserver.Finding `json:"findings"`
	// Notes are sentences about what needs no mending.
	Notes []string `json:"notes"`
}

// SchemaChange is what Apply does, or did.
type SchemaChange struct {
	Table string `json:"table"`
	// Executed says that the steps were taken, and not only planned.
	Executed bool         `json:"executed"`
	Steps    []SchemaStep `json:"steps"`
	// Left are the findings that a person has to mend.
	Left []sqlserver.Finding `json:"left"`
	Must int                 `json:"must"`
	// Notes are those of the report.
	Notes []string `json:"notes"`
}

// SchemaStep adds one thing.
type SchemaStep struct {
	Object string `json:"object"`
	SQL    string `json:"sql"`
	// Advice is what to know about it.
	Advice  string  `json:"advice,omitempty"`
	Done    bool    `json:"done"`
	Seconds float64 `json:"seconds"`
}

// Check finds everything that must or should be mended. It changes nothing.
func (s Schema) Check(ctx context.Context) (SchemaReport, error) {
	s.Target = s.withDefaults()
	d := sqlserver.NewDedicated(s.DB, s.LockTimeout, nil)
	defer d.Close()
	return s.inspect(ctx, d)
}

func (s Schema) inspect(ctx context.Context, d *sqlserver.Dedicated) (SchemaReport, error) {
	r := SchemaReport{Table: s.Names.String(), Findings: []sqlserver.Finding{}, Notes: []string{}}
	err := d.Use(ctx, "look at the schema of "+r.Table, func(conn *sql.Conn) error {
		found, err := sqlserver.Inspect(ctx, conn, sqlserver.InspectOptions{
			Names: s.Names, Types: s.Types, BlockSize: s.BlockSize, ScanStatus: s.ScanStatus,
		})
		r.Edition, r.Rows = found.Edition.String(), found.Rows
		r.Findings = append(r.Findings, found.Findings...)
		r.Notes = append(r.Notes, found.Notes...)
		return err
	})
	r.Must, r.Should = count(r.Findings)
	return r, err
}

func count(findings []sqlserver.Finding) (must, should int) {
	for _, f := range findings {
		if f.Severity == sqlserver.Must {
			must++
		} else {
			should++
		}
	}
	return must, should
}

// Plan says what Apply would add and what it would leave to a person.
func (s Schema) Plan(ctx context.Context) (SchemaChange, error) {
	report, err := s.Check(ctx)
	return planned(report), err
}

func planned(r SchemaReport) SchemaChange {
	c := SchemaChange{Table: r.Table, Steps: []SchemaStep{}, Left: []sqlserver.Finding{}, Notes: r.Notes}
	for _, f := range r.Findings {
		if f.Adds {
			c.Steps = append(c.Steps, SchemaStep{Object: f.Object, SQL: f.SQL, Advice: f.Advice})
		} else {
			c.Left = append(c.Left, f)
		}
	}
	c.Must, _ = count(c.Left)
	return c
}

// Apply adds what is missing, one statement after another, and stops at the
// first that fails: what was added before stays, and the next call goes on
// behind it. One at a time on a table. A statement waits LockTimeout for its
// locks and not longer, so that nobody queues behind it.
func (s Schema) Apply(ctx context.Context) (SchemaChange, error) {
	s.Target = s.withDefaults()
	d := sqlserver.NewDedicated(s.DB, s.LockTimeout, func(ctx context.Context, conn *sql.Conn) error {
		return s.takeAppLock(ctx, conn, "schema")
	})
	defer d.Close()
	report, err := s.inspect(ctx, d)
	if err != nil {
		return planned(report), err
	}
	c := planned(report)
	c.Executed = true
	for i := range c.Steps {
		step := &c.Steps[i]
		s.Progress(Progress{Stage: "add " + step.Object, Done: int64(i), Total: int64(len(c.Steps)), Unit: "steps"})
		begun := time.Now()
		err := d.Use(ctx, fmt.Sprintf("add %s (step %d of %d; what was added before stays, run it again to go on)", step.Object, i+1, len(c.Steps)), func(conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, step.SQL)
			return err
		})
		step.Seconds = time.Since(begun).Seconds()
		if err != nil {
			return c, err
		}
		step.Done = true
		s.Logger.Info("added", zap.String("object", step.Object), zap.String("sql", step.SQL))
	}
	// What is left is looked for again: an index over a column that is new, say.
	after, err := s.inspect(ctx, d)
	if err != nil {
		return c, err
	}
	c.Left = append(c.Left[:0], after.Findings...)
	c.Must, _ = count(c.Left)
	return c, nil
}
