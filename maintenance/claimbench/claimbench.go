package claimbench

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/maintenance"
	"azsqloutbox/maintenance/diagnose"
	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

// Bench says what is measured, and on which outbox's database.
type Bench struct {
	maintenance.Target
	// Rows of a scratch table; default 20,000. Each strategy has its share of them.
	Rows int
	// Batch is how many events a claim takes; default the worker's.
	Batch int
	// Rounds is how many batches of each strategy are measured, behind one that is
	// not; default 8.
	Rounds int
	// Payload is in characters; default 600, at most what the column takes.
	Payload int
	// Strategies are names of Strategies; default all.
	Strategies []string
}

func (b Bench) withDefaults() Bench {
	b.Target = b.Target.WithDefaults()
	b.Rows = cmp.Or(b.Rows, 20_000)
	b.Batch = cmp.Or(b.Batch, worker.DefaultBatch)
	b.Rounds = cmp.Or(b.Rounds, 8)
	b.Payload = cmp.Or(b.Payload, 600)
	if len(b.Strategies) == 0 {
		b.Strategies = Strategies
	}
	return b
}

const (
	// mostRows keeps a benchmark from becoming the load of the day.
	mostRows = 2_000_000
	// mostPayload is below the 1 MiB that a worker lets out of the database.
	mostPayload = 500_000
)

// Validate names the field that cannot be.
func (b Bench) Validate() error {
	b = b.withDefaults()
	for i, s := range b.Strategies {
		switch {
		case !slices.Contains(Strategies, s):
			return fmt.Errorf("field Strategies names %q, may name %s", s, strings.Join(Strategies, ", "))
		case slices.Contains(b.Strategies[:i], s):
			return fmt.Errorf("field Strategies names %q twice", s)
		}
	}
	need := len(b.Strategies) * (b.Rounds + 1) * b.Batch
	switch {
	case b.Batch < 1 || b.Batch > sqlserver.MaxBatch:
		return fmt.Errorf("field Batch is %d, must be 1 to %d", b.Batch, sqlserver.MaxBatch)
	case b.Rounds < 1 || b.Rounds > 1000:
		return fmt.Errorf("field Rounds is %d, must be 1 to 1000", b.Rounds)
	case b.Rows < 1 || b.Rows > mostRows:
		return fmt.Errorf("field Rows is %d, must be 1 to %d", b.Rows, mostRows)
	case b.Rows < need:
		return fmt.Errorf("field Rows is %d, and %d strategies of %d rounds, and one to warm up, of %d events claim %d", b.Rows, len(b.Strategies), b.Rounds, b.Batch, need)
	case b.Payload < 1 || b.Payload > mostPayload:
		return fmt.Errorf("field Payload is %d, must be 1 to %d", b.Payload, mostPayload)
	}
	return b.Target.Validate()
}

// Report is the plan, and after Run what was measured.
type Report struct {
	Table    string `json:"table"`
	Edition  string `json:"edition"`
	Executed bool   `json:"executed"`
	// Scratch is what the names of the scratch tables begin with, schema and all.
	Scratch string `json:"scratch"`
	Rows    int    `json:"rows"`
	Batch   int    `json:"batch"`
	Rounds  int    `json:"rounds"`
	// Payload is in characters, cut to the column.
	Payload    int      `json:"payload_characters"`
	Strategies []string `json:"strategies"`
	Indexes    []string `json:"indexes"`
	// Log and Space are arithmetic: what a run writes to the log at most, and what
	// a scratch table takes, in bytes.
	Log   int64 `json:"estimated_log_bytes"`
	Space int64 `json:"estimated_space_bytes"`
	// Leftovers are tables of runs that were killed; Run has removed them.
	Leftovers []Leftover `json:"leftovers"`
	Results   []Result   `json:"results"`
	Cheapest  Cheapest   `json:"cheapest"`
	// Verdict says it in sentences; Notes what could not be seen, or is left out.
	Verdict []string `json:"verdict"`
	Notes   []string `json:"notes"`
}

// Result is what one strategy, or Insert, cost with one form of the claim index.
// What the server did not say, or had forgotten, is nil.
type Result struct {
	Strategy string `json:"strategy"`
	Index    string `json:"index"`
	Events   int    `json:"events"`
	Batches  int    `json:"batches"`
	// CPU and Elapsed are microseconds an event by sys.dm_exec_query_stats, Reads
	// pages.
	CPU     *float64 `json:"cpu_us_per_event"`
	Elapsed *float64 `json:"elapsed_us_per_event"`
	Reads   *float64 `json:"logical_reads_per_event"`
	// Log is bytes an event, the commit's own record left out.
	Log *float64 `json:"log_bytes_per_event"`
	// BatchMillis is the median of a whole transaction as the client saw it.
	BatchMillis float64 `json:"batch_ms"`
	// Statements are those that had a plan, RoundTrips what was sent and answered,
	// begin and commit included, both a batch.
	StatementsPerBatch int             `json:"statements_per_batch"`
	RoundTrips         int             `json:"round_trips_per_batch"`
	Statements         []StatementCost `json:"statements"`
}

// plan is what Run needs beside the report.
type plan struct {
	Report
	columns map[string]sqlserver.ColumnType
	list    []sqlserver.ColumnType
	// sawLog says that the log of a transaction may be read.
	sawLog bool
}

// Plan looks and says what Run would do. It changes nothing. A Refusal comes with
// the plan: Run would meet it.
func (b Bench) Plan(ctx context.Context) (Report, error) {
	if err := b.Validate(); err != nil {
		return Report{}, fmt.Errorf("bench claim: %w", err)
	}
	b = b.withDefaults()
	d := sqlserver.NewDedicated(b.DB, b.LockTimeout, nil)
	defer d.Close()
	p, err := b.plan(ctx, d)
	return p.Report, err
}

func (b Bench) plan(ctx context.Context, d *sqlserver.Dedicated) (plan, error) {
	names := b.Names.WithDefaults()
	p := plan{Report: Report{
		Table: b.Names.String(), Scratch: names.Schema + "." + prefix(names.Table),
		Rows: b.Rows, Batch: b.Batch, Rounds: b.Rounds, Strategies: b.Strategies, Indexes: Indexes,
		Leftovers: []Leftover{}, Results: []Result{}, Verdict: []string{}, Notes: []string{},
	}, columns: make(map[string]sqlserver.ColumnType)}
	var others []string
	var rights rights
	err := d.Use(ctx, "look at the columns of "+p.Table, func(conn *sql.Conn) error {
		edition, err := sqlserver.ReadEdition(ctx, conn)
		if err != nil {
			return err
		}
		r, err := sqlserver.ReadRendering(ctx, conn, b.Names)
		if err != nil {
			return err
		}
		p.Edition, p.list, others = edition.String(), r.Columns(), r.Others()
		if p.Leftovers, err = readLeftovers(ctx, conn, b.Names); err != nil {
			return err
		}
		rights, err = readRights(ctx, conn, b.Names)
		return err
	})
	if err != nil {
		return p, err
	}
	for _, c := range p.list {
		p.columns[c.Name] = c
	}
	p.Payload = len(payloadOf(b.Payload, p.columns["payload"]))
	p.Log, p.Space = estimate(p.Rows+(p.Rounds+1)*p.Batch, p.Payload, p.columns["payload"])
	if len(others) > 0 {
		p.note("the scratch table is without %s, which no statement of the outbox uses: the rows of %s are longer", strings.Join(others, ", "), p.Table)
	}
	if last, highest := int64(p.Rows+(p.Rounds+1)*p.Batch), p.columns["id"].Highest; last > highest {
		return p, fmt.Errorf("field Rows is %d: with what is inserted while it is measured the ids go to %d, and those of the type %s to %d: %w", p.Rows, last, p.columns["id"].Declaration, highest, maintenance.ErrSetting)
	}
	err = b.permitted(ctx, d, &p, rights)
	return p, err
}

func (p *plan) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// permitted is a Refusal where a right is missing that the measurement cannot do
// without. The log can be missing.
func (b Bench) permitted(ctx context.Context, d *sqlserver.Dedicated, p *plan, has rights) error {
	refuse := func(found, remedy string) error {
		return &maintenance.Refusal{Task: "bench claim beside " + p.Table, Found: found, Remedy: remedy}
	}
	if len(has.grants) > 0 {
		return refuse("this login may not make a table in the schema "+b.Names.WithDefaults().Schema+" and work with it",
			"run it as a member of db_owner, or give it the right: "+strings.Join(has.grants, " "))
	}
	answer, err := ask(ctx, d, "see whether the costs of statements can be read", func(conn *sql.Conn) error {
		_, err := readStats(ctx, conn, quoted(scratchNames(b.Names).Table))
		return err
	})
	if remedy, missing := diagnose.MissingRight(ctx, d, b.Names, answer); missing {
		return refuse("sys.dm_exec_query_stats cannot be read, and without it there is nothing to decide by", remedy)
	}
	if err = errors.Join(answer, err); err != nil {
		return err
	}
	answer, err = ask(ctx, d, "see whether the log of a transaction can be read", func(conn *sql.Conn) error {
		_, err := readLogBytes(ctx, conn) // of the statement's own transaction
		return err
	})
	if remedy, missing := diagnose.MissingRight(ctx, d, b.Names, answer); missing {
		p.note("the log is unknown: sys.dm_tran_database_transactions cannot be read: %s", remedy)
		return err
	}
	p.sawLog = true
	return errors.Join(answer, err)
}

// ask runs fn, and keeps the connection, and the application lock with it, where
// the server has answered with an error.
func ask(ctx context.Context, d *sqlserver.Dedicated, op string, fn func(*sql.Conn) error) (answer, err error) {
	err = d.Use(ctx, op, func(conn *sql.Conn) error {
		failed := fn(conn)
		if errors.As(failed, new(mssql.Error)) && ctx.Err() == nil {
			answer = sqlserver.Classify(op, failed)
			return nil
		}
		return failed
	})
	return answer, err
}
