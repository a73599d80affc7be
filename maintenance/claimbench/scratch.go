package claimbench

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
)

// The two forms of the claim index.
const (
	// Covering holds all that a claim reads: no lookups, and every payload in the
	// log twice more.
	Covering = "covering"
	// Slim has the keys alone: one lookup an event.
	Slim = "slim"
)

// Indexes are both, in the order of a report.
var Indexes = []string{Covering, Slim}

// firstID is the lowest id of a scratch table.
const firstID = 1

// The scratch table. Its columns are those that the statements use, with the
// types of the event table; the ids are given, whatever makes them there.
const createScratchSQL = `/* outbox:BenchCreateScratch */
CREATE TABLE {events} (
    {columns},
    CONSTRAINT {primary_key} PRIMARY KEY CLUSTERED (id)
);`

// It is made after the rows, so that its statistics know them.
const createIndexSQL = `/* outbox:BenchCreateIndex */
CREATE NONCLUSTERED INDEX {claim_index}
    ON {events} (event_type, id)
    {include}
    WHERE status = 0;`

// What the covering form holds is what scripts/001_outbox.sql says.
const includeClause = "INCLUDE (aggregate_type, aggregate_id, payload, headers, created_at, retry_count)"

// fillRows is the most that one statement fills in, so that progress shows and
// Ctrl-C need not wait.
const fillRows = 5000

// The rows are the server's own work: only one payload travels. OPENJSON's key is
// the position in a list, from 0 on (sql-docs, openjson-transact-sql.md), and it is
// there wherever the worker's statements are; GENERATE_SERIES needs a higher
// compatibility level.
const fillScratchSQL = `INSERT /* outbox:BenchFillScratch */ INTO {events} (id, aggregate_type, aggregate_id, event_type, payload, headers, status, created_at, processed_at, retry_at, retry_count, last_error)
SELECT CAST(@first + n.n AS {id_t}),
       CAST('order' AS {aggregate_type_t}),
       CAST(CONCAT('order/', @first + n.n) AS {aggregate_id_t}),
       CAST(@event_type AS {event_type_t}),
       CAST(@payload AS {payload_t}),
       NULL, 0, SYSUTCDATETIME(), NULL, NULL, 0, NULL
FROM   (SELECT CAST(j.[key] AS INT) AS n
        FROM   OPENJSON(CONCAT('[0', REPLICATE(CAST(',0' AS VARCHAR(MAX)), @count - 1), ']')) AS j) AS n;`

// IF EXISTS is for each of the two (sql-docs, drop-table-transact-sql.md): what made
// them may have ended in between.
const dropScratchSQL = `/* outbox:BenchDropScratch */
DROP TABLE IF EXISTS {receipts}, {events};`

// What an earlier run has left: by the name, and by the name of the primary key, which
// nothing else gives one. The name alone could be that of an outbox with the day
// behind it, and what is found here is dropped. The receipts go with their table, and
// are never there without it: they are made after it and dropped before. The catalog
// shows a table to whoever has a right on it (sql-docs,
// metadata-visibility-configuration.md).
const leftoversSQL = `SELECT /* outbox:BenchLeftovers */ t.name,
       (SELECT ISNULL(SUM(p.rows), 0) FROM sys.partitions AS p WHERE p.object_id = t.object_id AND p.index_id < 2) AS total
FROM   sys.tables AS t
WHERE  t.schema_id = SCHEMA_ID(@schema)
AND    LEFT(t.name, LEN(@prefix)) = @prefix
AND    EXISTS (SELECT 1 FROM sys.indexes AS i WHERE i.object_id = t.object_id AND i.is_primary_key = 1 AND i.name = CONCAT(@key, t.name))
ORDER BY t.name;`

// Leftover is a table that an earlier run did not drop.
type Leftover struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
}

const (
	randomBytes = 4
	// keyPrefix is what the name of a scratch table's primary key has before the
	// table's own. No script of ours and no habit makes a key of such a name.
	keyPrefix = "PK_scratch_of_"
	// longestBase leaves room in the 128 characters of an identifier for what is
	// put behind a table's name and in front of it.
	longestBase = 96
)

// prefix is what the names of an outbox's scratch tables begin with. A name that
// is too long is cut, and told from its like by a hash.
func prefix(table string) string {
	if runes := []rune(table); len(runes) > longestBase {
		h := fnv.New32a()
		h.Write([]byte(table))
		table = fmt.Sprintf("%s_%08x", string(runes[:longestBase-9]), h.Sum32())
	}
	return table + "_bench_"
}

// scratchNames are those of a new scratch table, which no other can have.
func scratchNames(n sqlserver.Names) sqlserver.Names {
	random := make([]byte, randomBytes)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	n.Table = prefix(n.WithDefaults().Table) + hex.EncodeToString(random)
	return n
}

// ours says whether a name is one that scratchNames makes.
func ours(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	return ok && scratchEnd.MatchString(rest)
}

var scratchEnd = regexp.MustCompile(fmt.Sprintf(`^[0-9a-f]{%d}$`, 2*randomBytes))

// readLeftovers finds what earlier runs have left.
func readLeftovers(ctx context.Context, conn *sql.Conn, n sqlserver.Names) ([]Leftover, error) {
	n = n.WithDefaults()
	begin := prefix(n.Table)
	rows, err := conn.QueryContext(ctx, leftoversSQL, sql.Named("schema", n.Schema), sql.Named("prefix", begin), sql.Named("key", keyPrefix))
	if err != nil {
		return nil, fmt.Errorf("look for tables that an earlier run left: %w", err)
	}
	defer rows.Close()
	list := []Leftover{}
	for rows.Next() {
		var l Leftover
		if err := rows.Scan(&l.Name, &l.Rows); err != nil {
			return nil, err
		}
		if ours(l.Name, begin) {
			list = append(list, l)
		}
	}
	return list, rows.Err()
}

// scratch is one scratch table with its receipts.
type scratch struct {
	names   sqlserver.Names
	columns []sqlserver.ColumnType
	slim    bool
}

func newScratch(n sqlserver.Names, columns []sqlserver.ColumnType, index string) *scratch {
	return &scratch{names: scratchNames(n), columns: columns, slim: index == Slim}
}

// render fills a text in, in one pass: no name is taken for a placeholder.
func (s *scratch) render(text string) string {
	quote := mssql.TSQLQuoter{}
	include := includeClause
	if s.slim {
		include = ""
	}
	pairs := []string{
		"{events}", s.names.Events(), "{receipts}", s.names.Receipts(),
		"{primary_key}", quote.ID(keyPrefix + s.names.Table), "{claim_index}", quote.ID(s.names.WithDefaults().ClaimIndex),
		"{include}", include, "{columns}", strings.Join(definitions(s.columns), ",\n    "),
	}
	for _, c := range s.columns {
		pairs = append(pairs, "{"+c.Name+"_t}", c.Declaration)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// definitions are the columns as CREATE TABLE takes them. What a fresh event has
// not is NULL, whatever the event table says.
func definitions(columns []sqlserver.ColumnType) []string {
	list := make([]string, len(columns))
	for i, c := range columns {
		text := c.Name + " " + c.Declaration
		if c.Collation != "" {
			text += " COLLATE " + c.Collation
		}
		switch c.Name {
		case "headers", "processed_at", "retry_at", "last_error":
			text += " NULL"
		default:
			text += " NOT NULL"
		}
		list[i] = text
	}
	return list
}

// create makes the table and its receipts, empty.
func (s *scratch) create(ctx context.Context, conn *sql.Conn) error {
	script, err := scripts.Define(scripts.Options{Schema: s.names.Schema, Table: s.names.Table})
	if err != nil {
		return err
	}
	for _, text := range []string{s.render(createScratchSQL), script.Receipts.Create} {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("create the scratch table %s: %w", s.names, err)
		}
	}
	return nil
}

// fill adds rows of an event type, from the id first on.
func (s *scratch) fill(ctx context.Context, conn *sql.Conn, eventType, payload string, first, count int64) error {
	if _, err := conn.ExecContext(ctx, s.render(fillScratchSQL), fillArgs(eventType, payload, first, count)...); err != nil {
		return fmt.Errorf("fill the scratch table %s: %w", s.names, err)
	}
	return nil
}

func fillArgs(eventType, payload string, first, count int64) []any {
	return []any{
		sql.Named("first", first), sql.Named("count", count),
		sql.Named("event_type", mssql.VarCharMax(eventType)), sql.Named("payload", mssql.VarCharMax(payload)),
	}
}

func (s *scratch) index(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, s.render(createIndexSQL)); err != nil {
		return fmt.Errorf("create the claim index of the scratch table %s: %w", s.names, err)
	}
	return nil
}

// dropScratch drops a table and its receipts, as far as they are there.
func dropScratch(ctx context.Context, conn *sql.Conn, n sqlserver.Names) error {
	if _, err := conn.ExecContext(ctx, n.Replacer().Replace(dropScratchSQL)); err != nil {
		return fmt.Errorf("drop the scratch table %s: %w", n, err)
	}
	return nil
}

// payloadOf is a payload of n characters, or of as many as the column has room
// for.
func payloadOf(n int, c sqlserver.ColumnType) string {
	room := c.Bytes
	if c.Unicode && room != math.MaxInt {
		room /= 2
	}
	return strings.Repeat("x", min(n, room))
}
