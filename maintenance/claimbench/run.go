package claimbench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/maintenance"
	"azsqloutbox/sqlserver"
)

// aftermath is what dropping a scratch table may take when the run is over,
// whatever ended it: below the 30 s that a job has from SIGTERM to SIGKILL. Tests
// shorten it.
var aftermath = 15 * time.Second

// Run makes the scratch tables, measures, and drops them again, one form of the
// index behind the other. One run at a time beside a table. When ctx ends it stops
// within seconds; the tables are dropped all the same. An error of the database
// ends it: a measurement across a failover is worth nothing.
func (b Bench) Run(ctx context.Context) (Report, error) {
	if err := b.Validate(); err != nil {
		return Report{}, fmt.Errorf("bench claim: %w", err)
	}
	b = b.withDefaults()
	d := sqlserver.NewDedicated(b.DB, b.LockTimeout, b.Hold("bench claim"))
	defer d.Close()
	p, err := b.plan(ctx, d)
	if err != nil {
		return p.Report, unwrapRefusal(err)
	}
	p.Executed = true
	b.Logger.Info("bench claim begins", zap.String("beside", p.Table), zap.String("log_at_most", quantity.Bytes(p.Log)), zap.String("space", quantity.Bytes(p.Space)))
	if err := b.clear(ctx, p.Leftovers); err != nil {
		return p.Report, err
	}
	for _, index := range p.Indexes {
		results, err := b.measure(ctx, d, &p, index)
		if err != nil {
			return p.Report, err
		}
		p.Results = append(p.Results, results...)
	}
	judge(&p.Report)
	return p.Report, nil
}

// unwrapRefusal takes a Refusal out of the error of the connection that it kept
// from being made: it says itself what was tried.
func unwrapRefusal(err error) error {
	var refusal *maintenance.Refusal
	if errors.As(err, &refusal) {
		return refusal
	}
	return err
}

// clear drops what earlier runs have left.
func (b Bench) clear(ctx context.Context, leftovers []Leftover) error {
	for _, l := range leftovers {
		n := b.Names
		n.Table = l.Name
		if err := b.drop(ctx, n); err != nil {
			return err
		}
		b.Logger.Info("it was left of a run that was killed", zap.String("table", l.Name), zap.Int64("rows", l.Rows))
	}
	return nil
}

// measure runs every strategy on a scratch table with one form of the index. The
// table is dropped before it returns.
func (b Bench) measure(ctx context.Context, d *sqlserver.Dedicated, p *plan, index string) (results []Result, err error) {
	s := newScratch(b.Names, p.list, index)
	b.Logger.Info("create a scratch table", zap.String("table", s.names.String()), zap.String("index", index), zap.Int("rows", p.Rows))
	defer func() { err = errors.Join(err, b.drop(context.WithoutCancel(ctx), s.names)) }()
	m := meter{Bench: b, scratch: s, plan: p, index: index}
	err = d.Use(ctx, "bench claim beside "+b.Names.String(), func(conn *sql.Conn) error {
		results, err = m.all(ctx, conn)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("bench claim beside %s was stopped: %w", b.Names, context.Cause(ctx))
	}
	return results, err
}

// drop drops a scratch table on a connection of its own, and tries for a while:
// what was broken off may hold its locks until the server has rolled it back.
func (b Bench) drop(ctx context.Context, n sqlserver.Names) error {
	ctx, cancel := context.WithTimeout(ctx, aftermath)
	defer cancel()
	d := sqlserver.NewDedicated(b.DB, b.LockTimeout, nil)
	defer d.Close()
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		err := d.Use(ctx, "drop the scratch table "+n.String(), func(conn *sql.Conn) error { return dropScratch(ctx, conn, n) })
		if err == nil {
			b.Logger.Info("dropped the scratch table", zap.String("table", n.String()))
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("the scratch table %s is still there: the next run with --execute removes it, or DROP TABLE %s, %s: %w", n, n.Events(), n.Receipts(), err)
		}
	}
}

// meter measures on one scratch table.
type meter struct {
	Bench
	scratch *scratch
	plan    *plan
	index   string
}

// sample is what one batch cost beside what the plan cache says.
type sample struct {
	took     time.Duration
	log      sql.NullInt64
	requests int
}

func (m *meter) all(ctx context.Context, conn *sql.Conn) ([]Result, error) {
	if err := m.scratch.create(ctx, conn); err != nil {
		return nil, err
	}
	types, err := m.fill(ctx, conn)
	if err != nil {
		return nil, err
	}
	if err := m.scratch.index(ctx, conn); err != nil {
		return nil, err
	}
	r, err := sqlserver.ReadRendering(ctx, conn, m.scratch.names)
	if err != nil {
		return nil, err
	}
	claimers := []*claimer{m.inserter()}
	for i, s := range m.plan.Strategies {
		claimers = append(claimers, newClaimer(s, types[i], m.plan.Batch, r))
	}
	for _, c := range claimers {
		// Its plans are made, and its rows in the cache's views, before anything counts.
		if _, err := m.batch(ctx, conn, c); err != nil {
			return nil, err
		}
	}
	name := quoted(m.scratch.names.Table)
	before, err := readStats(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	samples := make([][]sample, len(claimers))
	for round := range m.plan.Rounds {
		for turn := range claimers {
			at := (turn + round) % len(claimers) // nobody is always first
			one, err := m.batch(ctx, conn, claimers[at])
			if err != nil {
				return nil, err
			}
			samples[at] = append(samples[at], one)
		}
		m.Progress(maintenance.Progress{Stage: "claim by the " + m.index + " index", Done: int64(round + 1), Total: int64(m.plan.Rounds), Unit: "rounds"})
	}
	after, err := readStats(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	costs := between(before, after)
	results := make([]Result, len(claimers))
	for i, c := range claimers {
		results[i] = m.result(c.strategy, samples[i], costs)
	}
	return results, nil
}

// inserter inserts behind the rows that are there, events of a type that nobody
// claims.
func (m *meter) inserter() *claimer {
	return newInserter(m.scratch, eventType(len(m.plan.Strategies), m.plan.columns["event_type"]),
		payloadOf(m.plan.Payload, m.plan.columns["payload"]), m.plan.Batch, int64(firstID+m.plan.Rows))
}

// fill makes the rows, each strategy's behind those of the one before, and says
// which event types they have.
func (m *meter) fill(ctx context.Context, conn *sql.Conn) (types []string, err error) {
	payload := payloadOf(m.plan.Payload, m.plan.columns["payload"])
	first, left := int64(firstID), m.plan.Rows
	for i := range m.plan.Strategies {
		types = append(types, eventType(i, m.plan.columns["event_type"]))
		share := left / (len(m.plan.Strategies) - i)
		left -= share
		for share > 0 {
			count := min(share, fillRows)
			if err := m.scratch.fill(ctx, conn, types[i], payload, first, int64(count)); err != nil {
				return nil, err
			}
			first, share = first+int64(count), share-count
			m.Progress(maintenance.Progress{Stage: "fill for the " + m.index + " index", Done: first - firstID, Total: int64(m.plan.Rows), Unit: "rows"})
		}
	}
	return types, nil
}

// eventType is one of the scratch table's: short enough for any column, and good
// for a whole number too.
func eventType(i int, column sqlserver.ColumnType) string {
	const text = "bench.event-type."
	if number := fmt.Sprint(i + 1); column.Highest > 0 || column.Bytes < 2*(len(text)+len(number)) {
		return number
	}
	return fmt.Sprint(text, i+1)
}

// batch claims, or inserts, one batch and commits it. What reading the log takes is not
// counted.
func (m *meter) batch(ctx context.Context, conn *sql.Conn, c *claimer) (s sample, err error) {
	c.requests = 0
	begun := time.Now()
	c.requests++
	// The transaction ends here and nowhere else: a context that is over would have
	// database/sql roll it back beside the statement that it breaks off.
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return s, fmt.Errorf("%s: begin: %w", c.strategy, err)
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // a connection with an open transaction cannot be closed
		}
	}()
	if err := c.do(ctx, tx); err != nil {
		return s, err
	}
	s.took = time.Since(begun)
	if m.plan.sawLog {
		if s.log, err = readLogBytes(ctx, tx); err != nil {
			return s, fmt.Errorf("read the log of the transaction: %w", err)
		}
	}
	committing := time.Now()
	c.requests++
	if err := tx.Commit(); err != nil {
		return s, fmt.Errorf("%s: commit: %w", c.strategy, err)
	}
	s.took += time.Since(committing)
	s.requests = c.requests
	return s, nil
}

// result puts together what a strategy cost.
func (m *meter) result(strategy string, samples []sample, costs []StatementCost) Result {
	r := Result{
		Strategy: strategy, Index: m.index, Batches: len(samples), Events: len(samples) * m.plan.Batch,
		RoundTrips: samples[0].requests, Statements: []StatementCost{},
	}
	names := make(map[string]bool)
	for _, s := range sends[strategy] {
		name, _, _ := strings.Cut(s, " ")
		names[name] = true
	}
	var cpu, elapsed, reads float64
	for _, c := range costs {
		if name, _, _ := strings.Cut(c.Statement, " "); !names[name] {
			continue
		}
		r.Statements = append(r.Statements, c)
		cpu, elapsed, reads = cpu+c.CPU, elapsed+c.Elapsed, reads+c.Reads
	}
	r.StatementsPerBatch = len(r.Statements)
	batch := float64(m.plan.Batch)
	if forgotten := missing(sends[strategy], r.Statements, int64(len(samples))); forgotten == "" {
		cpu, elapsed, reads = cpu/batch, elapsed/batch, reads/batch
		r.CPU, r.Elapsed, r.Reads = &cpu, &elapsed, &reads
	} else {
		m.plan.note("%s with the %s index: the plan cache has lost %s before it was read; its figures are unknown, run it again", strategy, m.index, forgotten)
	}
	if log, ok := logPerEvent(samples, m.plan.Batch); ok {
		r.Log = &log
	}
	took := make([]time.Duration, len(samples))
	for i, s := range samples {
		took[i] = s.took
	}
	slices.Sort(took)
	r.BatchMillis = float64((took[(len(took)-1)/2]+took[len(took)/2])/2) / float64(time.Millisecond)
	return r
}

// missing is the first statement that the plan cache knew too few executions of:
// a plan that was thrown out, or compiled again, begins anew. Half of them are
// good for an average.
func missing(want []string, got []StatementCost, batches int64) string {
	for _, w := range want {
		at := slices.IndexFunc(got, func(c StatementCost) bool { return c.Statement == w })
		if at < 0 || 2*got[at].Executions < batches {
			return w
		}
	}
	return ""
}

// logPerEvent is false where the server did not say for every batch.
func logPerEvent(samples []sample, batch int) (float64, bool) {
	total := int64(0)
	for _, s := range samples {
		if !s.log.Valid {
			return 0, false
		}
		total += s.log.Int64
	}
	return float64(total) / float64(len(samples)*batch), true
}
