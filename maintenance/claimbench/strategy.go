package claimbench

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/sqlserver"
)

// The names of the strategies.
const (
	// Pipeline is the worker's own claim: a SELECT that locks, a flip by key and
	// the receipt, in the Store's own statements.
	Pipeline = "pipeline"
	// UpdateOutput locks, marks and returns in one ordered UPDATE … OUTPUT.
	UpdateOutput = "update-output"
	// UpdateTop is UPDATE TOP … OUTPUT, without an order and without a keyset.
	UpdateTop = "update-top"
	// DeleteOutput takes the rows out. It is a limit and no replacement: the event
	// is gone with the commit, so it must have gone out before.
	DeleteOutput = "delete-output"
)

// Insert is no strategy. It is measured beside them because it is where the form
// of the index costs, or saves, its other half: the entry is written when the event
// comes, and again when it is claimed.
const Insert = "insert"

// Strategies are all of them, in the order of a report.
var Strategies = []string{Pipeline, UpdateOutput, UpdateTop, DeleteOutput}

// The pattern that articles recommend: one statement that locks, marks and
// returns. It reads and writes status in one index, for which the server needs
// Halloween protection. The hints are those of the claim but for its index: that
// is how it is written. (sql-docs, update-transact-sql.md, for UPDATE of a CTE;
// output-clause-transact-sql.md.)
const updateOutputSQL = `WITH /* outbox:BenchUpdateOutput */ batch AS (
    SELECT TOP (@batch) e.id, e.payload, e.headers, e.event_type, e.aggregate_type, e.aggregate_id, e.created_at, e.retry_count, e.status, e.processed_at
    FROM   {events} AS e WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
    WHERE  e.event_type = CAST(@event_type AS {event_type_t})
    AND    e.status = 0
    AND    e.id >= CAST(@from AS {id_t})
    ORDER BY e.id
)
UPDATE batch
SET    status = 1,
       processed_at = SYSUTCDATETIME()
OUTPUT inserted.id, CONVERT({payload_read_t}, inserted.payload) AS payload, CONVERT({headers_read_t}, inserted.headers) AS headers,
       inserted.event_type, inserted.aggregate_type, inserted.aggregate_id, inserted.created_at, inserted.retry_count;`

// The form of many queue libraries: no order, no keyset, whatever is free. (TOP in
// an UPDATE takes no ORDER BY: sql-docs, top-transact-sql.md.)
const updateTopSQL = `UPDATE /* outbox:BenchUpdateTop */ TOP (@batch) e
SET    status = 1,
       processed_at = SYSUTCDATETIME()
OUTPUT inserted.id, CONVERT({payload_read_t}, inserted.payload) AS payload, CONVERT({headers_read_t}, inserted.headers) AS headers,
       inserted.event_type, inserted.aggregate_type, inserted.aggregate_id, inserted.created_at, inserted.retry_count
FROM   {events} AS e WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE  e.event_type = CAST(@event_type AS {event_type_t})
AND    e.status = 0;`

// A DELETE of the same CTE (sql-docs, delete-transact-sql.md).
const deleteOutputSQL = `WITH /* outbox:BenchDeleteOutput */ batch AS (
    SELECT TOP (@batch) e.id, e.payload, e.headers, e.event_type, e.aggregate_type, e.aggregate_id, e.created_at, e.retry_count
    FROM   {events} AS e WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK)
    WHERE  e.event_type = CAST(@event_type AS {event_type_t})
    AND    e.status = 0
    AND    e.id >= CAST(@from AS {id_t})
    ORDER BY e.id
)
DELETE FROM batch
OUTPUT deleted.id, CONVERT({payload_read_t}, deleted.payload) AS payload, CONVERT({headers_read_t}, deleted.headers) AS headers,
       deleted.event_type, deleted.aggregate_type, deleted.aggregate_id, deleted.created_at, deleted.retry_count;`

// sends are the names that a strategy's requests begin with, and what of each has
// to be in the plan cache for its figures to be whole: name and verb.
var sends = map[string][]string{
	Pipeline:     {"BenchClaimEvents SELECT", "BenchFlipClaim UPDATE", "BenchFlipClaim INSERT"},
	UpdateOutput: {"BenchUpdateOutput UPDATE"},
	UpdateTop:    {"BenchUpdateTop UPDATE"},
	DeleteOutput: {"BenchDeleteOutput DELETE"},
	Insert:       {"BenchInsert INSERT"},
}

// verbs tell the statements of a request apart; a CTE is called by what it does.
var verbs = []string{"UPDATE", "INSERT", "DELETE", "SELECT"}

// declaration is what the plan cache puts in front of a text that has parameters.
var declaration = regexp.MustCompile(`^\(@(?:[^()]|\([^()]*\))*\)`)

// label is how a statement of the plan cache is called: by the name of its
// request and the first of its lines that begins with a verb. Lines inside of a
// CTE are indented.
func label(name, statement string) string {
	for line := range strings.Lines(declaration.ReplaceAllString(statement, "")) {
		word := line
		if end := strings.IndexFunc(line, func(r rune) bool { return r < 'A' || r > 'Z' }); end >= 0 {
			word = line[:end]
		}
		if slices.Contains(verbs, word) {
			return name + " " + word
		}
	}
	return name
}

// claimer claims batch by batch with one strategy, from an event type of its own;
// or inserts, behind all the others.
type claimer struct {
	strategy  string
	eventType string
	batch     int
	// insert and its payload are those of Insert.
	insert, payload string
	// read returns the events, id first; flip is empty where that was all.
	read, flip string
	keyset     bool
	from       int64
	// requests counts what was sent to the server, begin and commit included.
	requests int
}

// bench gives a statement of the Store's a name that tells it from a worker's.
func bench(text string) string { return strings.ReplaceAll(text, "/* outbox:", "/* outbox:Bench") }

// newInserter inserts from the id first on.
func newInserter(s *scratch, eventType, payload string, batch int, first int64) *claimer {
	text := strings.Replace(s.render(fillScratchSQL), "/* outbox:BenchFillScratch */", "/* outbox:BenchInsert */", 1)
	return &claimer{strategy: Insert, eventType: eventType, batch: batch, insert: text, payload: payload, from: first}
}

func newClaimer(strategy, eventType string, batch int, r *sqlserver.Rendering) *claimer {
	c := &claimer{strategy: strategy, eventType: eventType, batch: batch, from: firstID, keyset: true}
	switch strategy {
	case Pipeline:
		c.read, c.flip = bench(r.ClaimEvents()), bench(r.FlipClaim())
	case UpdateOutput:
		c.read = r.Replace(updateOutputSQL)
	case UpdateTop:
		c.read, c.keyset = r.Replace(updateTopSQL), false
	case DeleteOutput:
		c.read = r.Replace(deleteOutputSQL)
	}
	return c
}

// do inserts or claims one batch in tx.
func (c *claimer) do(ctx context.Context, tx *sql.Tx) error {
	if c.insert == "" {
		return c.claim(ctx, tx)
	}
	c.requests++
	if _, err := tx.ExecContext(ctx, c.insert, fillArgs(c.eventType, c.payload, c.from, int64(c.batch))...); err != nil {
		return fmt.Errorf("%s: %w", c.strategy, err)
	}
	c.from += int64(c.batch)
	return nil
}

// claim takes one batch in tx. It is an error when that is not a whole one.
func (c *claimer) claim(ctx context.Context, tx *sql.Tx) error {
	args := []any{sql.Named("batch", c.batch), sql.Named("event_type", mssql.VarCharMax(c.eventType))}
	if c.keyset {
		args = append(args, sql.Named("from", c.from))
	}
	if c.flip != "" {
		args = append(args, sql.Named("max_bytes", int64(math.MaxInt32)))
	}
	ids, err := c.fetch(ctx, tx, args)
	if err != nil {
		return fmt.Errorf("%s: %w", c.strategy, err)
	}
	if len(ids) != c.batch {
		return fmt.Errorf("%s claimed %d of %s: somebody else works on the scratch table", c.strategy, len(ids), quantity.Of(c.batch, "event"))
	}
	c.from = slices.Max(ids) + 1
	if c.flip == "" {
		return nil
	}
	c.requests++
	var flipped int
	var claimedAt, leaseUntil any
	err = tx.QueryRowContext(ctx, c.flip,
		sql.Named("ids", idsJSON(ids)), sql.Named("claim_id", mssql.VarCharMax(uuid.NewString())), sql.Named("owner", mssql.VarCharMax("outboxctl bench claim")),
		sql.Named("event_type", mssql.VarCharMax(c.eventType)), sql.Named("lease_ms", int64(60_000))).Scan(&flipped, &claimedAt, &leaseUntil)
	switch {
	case err != nil:
		return fmt.Errorf("%s: flip: %w", c.strategy, err)
	case flipped != len(ids):
		return fmt.Errorf("%s flipped %d of %s: somebody else works on the scratch table", c.strategy, flipped, quantity.Of(len(ids), "event"))
	}
	return nil
}

// fetch reads every row to its end, as a worker does, and keeps the ids.
func (c *claimer) fetch(ctx context.Context, tx *sql.Tx, args []any) ([]int64, error) {
	c.requests++
	rows, err := tx.QueryContext(ctx, c.read, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	ids := make([]int64, 0, c.batch)
	var id int64
	into := make([]any, len(columns))
	for i := range into {
		into[i] = new(sql.RawBytes)
	}
	into[0] = &id
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// idsJSON is an array of numbers.
func idsJSON(ids []int64) mssql.VarCharMax {
	b := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return mssql.VarCharMax(append(b, ']'))
}
