package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver/emulator"
	"azsqloutbox/sqlserver/statementtest"
)

// mutation is a mistake in one of the project's own statements, and SQL Server's
// answer to it.
type mutation struct {
	statement, old, new string
	number              int32
}

var mutations = []mutation{
	// names
	{"claimEventsSQL", "e.created_at,", "e.created,", 207},
	{"claimEventsSQL", "e.retry_count", "x.retry_count", 4104},
	{"claimEventsSQL", "INDEX({claim_index})", "INDEX(IX_outbox_claims)", 308},
	{"claimEventsSQL", "INDEX({claim_index})", "INDEX({retry_index})", 8622},
	{"claimEventsSQL", "{events} AS e", "dbo.outbox_events AS e", 208},
	{"claimEventsSQL", "{events} AS e", "{events} AS e, {receipts} AS e", 1011},
	{"claimEventsSQL", "ORDER BY e.id", "ORDER BY e.ids", 207},
	{"claimEventsSQL", "e.status = 0", "status = 0 AND withheld_bytes = 0", 207},
	{"flipClaimSQL", "UPDATE /* outbox:FlipClaim */ e", "UPDATE /* outbox:FlipClaim */ x", 208},
	{"flipClaimSQL", "SET    status = 1", "SET    c.status = 1", 4104},
	{"flipClaimSQL", "ON e.id = c.id", "ON id = c.id", 209},
	{"flipClaimSQL", "event_count, event_ids)", "event_count, event_id)", 207},
	{"settleSQL", "ELSE e.retry_count END", "ELSE e.retry_counts END", 207},
	{"overdueClaimsSQL", "{receipts} AS r", "{receipts}", 4104},
	{"backlogTotalSQL", "sys.partitions", "sys.partition", 208},
	{"purgeDeleteSQL", "DELETE /* outbox:PurgeDelete */ e", "DELETE /* outbox:PurgeDelete */ {events}", 0},
	{"purgeLookSQL", "AS text_bytes\n", "AS bytes_of_text\n", 207},
	{"purgeLookSQL", "ORDER BY e.id) AS w", "ORDER BY e.id)", 102},

	// variables and parameters
	{"claimEventsSQL", "TOP (@batch)", "TOP (@batches)", 137},
	{"claimEventsSQL", "TOP (@batch)", "TOP @batch", 102},
	{"claimEventsSQL", "TOP (@batch)", "TOP (@event_type)", 1060},
	{"claimEventsSQL", "TOP (@batch)", "TOP (e.id)", 4115},
	{"flipClaimSQL", "DECLARE @flipped INT", "DECLARE @now INT", 134},
	{"flipClaimSQL", "SET @flipped = @@ROWCOUNT", "SET @flip = @@ROWCOUNT", 137},
	{"flipClaimSQL", "SET @flipped = @@ROWCOUNT", "SET @flipped = @@ROW_COUNT", 137},
	{"settleSQL", "SELECT /* outbox:Settle */ @fence = r.claimed_at", "SELECT /* outbox:Settle */ @fence = r.claimed_at, r.owner", 141},
	{"enqueueSQL", "@sequence_name      = @sequence", "@sequence = @sequence", 8145},
	{"enqueueSQL", "THROW 50000, N'outbox: not every event was written', 1", "THROW 5000, N'outbox: not every event was written', 1", 0},
	{"enqueueSQL", "IF @increment IS NULL OR @increment < 1\n    THROW 50000,", "IF @increment > 0\n    THROW 5000,", 35100},
	{"enqueueSQL", "THROW 50000, N'outbox: not every", "THROW 50000, N'outbox: ' + N'not every", 102},

	// types
	{"claimEventsSQL", "CAST(@from AS {id_t})", "CAST(@from AS UNIQUEIDENTIFIER)", 529},
	{"claimEventsSQL", "CAST(@event_type AS {event_type_t})", "CAST(@event_type AS VARCHARS(100))", 243},
	{"claimEventsSQL", "CAST(@event_type AS {event_type_t})", "CAST(@event_type AS VARCHAR(100)", 102},
	{"claimEventsSQL", "CAST(@event_type AS {event_type_t})", "CAST(@event_type AS INT(4))", 2716},
	{"claimEventsSQL", "e.id >=", "e.created_at >=", 206},
	{"claimEventsSQL", "e.event_type = CAST(@event_type AS {event_type_t})", "e.created_at = CAST(@event_type AS {event_type_t})", 8622},
	{"retryDueSQL", "CAST(@now AS {retry_at_t})", "@owner", 241},
	{"claimEventsSQL", "e.event_type = CAST", "e.event_type + e.payload = CAST", 468},
	{"flipClaimSQL", "WITH (id {id_t} '$')", "WITH (id DATETIME2 '$')", 206},
	{"flipClaimSQL", "WITH (id {id_t} '$')", "WITH (id {id_t} 'id')", 13607},
	{"flipClaimSQL", "CAST(@claim_id AS UNIQUEIDENTIFIER), @owner", "@owner, @owner", 8169},
	{"flipClaimSQL", "@now, @lease_until, @flipped, @ids", "@now, @flipped, @flipped, @ids", 206},
	{"flipClaimSQL", "DECLARE @now DATETIME2(3)", "DECLARE @now DATETIME2(9)", 1002},
	{"settleSQL", "status = 2,", "status = 256,", 220},
	{"settleSQL", "status = 2,", "status = 3,", 547},
	{"settleSQL", "last_error = c.error", "last_error = REPLICATE(c.error, 401)", 2628},
	{"settleSQL", "spend INT '$.spend'", "spend TINYINT '$.retry_ms'", 244},
	{"settleSQL", "DATEADD(MILLISECOND, c.retry_ms, @now)", "DATEADD(MILLISECONDS, c.retry_ms, @now)", 155},
	{"settleSQL", "DATEADD(MILLISECOND, c.retry_ms, @now)", "DATEADD(YEAR, c.retry_ms * 10, @now)", 517},
	{"purgeLookSQL", "DATEDIFF_BIG(MILLISECOND, e.processed_at, e.created_at)", "DATEDIFF(MILLISECOND, '1900-01-01', e.created_at)", 535},
	{"purgeLookSQL", "MIN(w.id) AS first_id", "SUM(w.created_at) AS first_id", 8117},

	// grouping and subqueries
	{"purgeLookSQL", "MIN(w.id) AS first_id", "w.id AS first_id", 8120},
	{"purgeLookSQL", "MIN(w.id) AS first_id", "MIN(COUNT(w.id)) AS first_id", 130},
	{"purgeLookSQL", "SELECT TOP (@rows)", "SELECT", 1033},
	{"purgeLookSQL", "e.created_at,\n", "e.created_at,\n               e.created_at,\n", 8156},
	{"purgeLookSQL", "{text_bytes} AS text_bytes", "{text_bytes}", 8155},
	{"backlogTypesSQL", "(SELECT COUNT(*)\n", "(SELECT COUNT(*), 1\n", 116},
	{"backlogTypesSQL", "SELECT TOP (1) DATEDIFF_BIG", "SELECT DATEDIFF_BIG", 1033},
	{"backlogFailedSQL", "(SELECT COUNT(*) FROM {receipts} AS r)", "(SELECT r.owner FROM {receipts} AS r, {events} AS e)", 512},
	{"flipClaimSQL", "WHERE  e.status = 0", "WHERE  e.status = 0 AND COUNT(*) > 0", 147},
	{"flipClaimSQL", "processed_at = @now", "processed_at = MAX(e.created_at)", 157},
	{"enqueueSQL", "HAVING COUNT(*) = 5", "HAVING COUNT(*) = 5 AND c.name = N'x'", 8121},

	// lists
	{"flipClaimSQL", "@now, @lease_until, @flipped, @ids", "@now, @lease_until, @flipped", 109},
	{"flipClaimSQL", "@now, @lease_until, @flipped, @ids", "@now, @lease_until, @flipped, @ids, @ids", 110},
	{"flipClaimSQL", "claimed_at, lease_until,", "claimed_at, claimed_at,", 264},
	{"flipClaimSQL", "event_count, event_ids)\nVALUES", "event_count)\nVALUES", 110},
	{"flipClaimSQL", "       processed_at = @now", "       status = 2", 264},
	{"enqueueSQL", "e.payload, e.headers\n", "e.payload\n", 120},
	{"enqueueSQL", "event_type, payload, headers)", "event_type, payload)", 121},
	{"enqueueSQL", "INTO {events} (id, aggregate_type,", "INTO {events} (aggregate_type,", 121},
	{"settleSQL", "processed_at = NULL\n", "processed_at = NULL,\n", 156},

	// rows
	{"flipClaimSQL", "VALUES (CAST(@claim_id AS UNIQUEIDENTIFIER)", "VALUES (CAST(@open_claim AS UNIQUEIDENTIFIER)", 2627},
	{"flipClaimSQL", "VALUES (CAST(@claim_id AS UNIQUEIDENTIFIER)", "VALUES (NULL", 515},
	{"settleSQL", "status = 0,", "status = NULL,", 515},
	{"enqueueSQL", "e.event_type, e.payload", "NULL, e.payload", 515},
	{"enqueueSQL", "SELECT @first + e.n", "SELECT 1", 2627},
	{"retryDueSQL", "retry_at = NULL", "retry_count = 1 / (e.retry_count - e.retry_count)", 8134},

	// hints
	{"claimEventsSQL", "UPDLOCK, ROWLOCK", "NOLOCK, ROWLOCK", 1047},
	{"claimEventsSQL", "READPAST, READCOMMITTEDLOCK", "READPAST, SERIALIZABLE", 650},
	{"claimEventsSQL", "READPAST, READCOMMITTEDLOCK", "READPAST, READCOMMITEDLOCK", 321},
	{"claimEventsSQL", "UPDLOCK,", "UPDLOCK, XLOCK,", 1047},
	{"claimEventsSQL", "FORCESEEK,", "FORCESEEK, FORCESCAN,", 10746},
	{"claimEventsSQL", "AND    e.status = 0", "AND    e.status = CAST(@from AS TINYINT)", 8622},
	{"claimEventsSQL", "AND    e.status = 0", "AND    e.status IN (0, 1)", 8622},
	{"claimEventsSQL", "WHERE  e.event_type = CAST", "WHERE  UPPER(e.event_type) = CAST", 8622},
	{"flipClaimSQL", "OPTION (MAXDOP 1)", "OPTION (MAXDOP 1, MAXDOP 2)", 1042},
	{"flipClaimSQL", "OPTION (MAXDOP 1)", "OPTION (MAXDOP 1, HASH JOIN)", 1042},
	{"flipClaimSQL", "OPTION (MAXDOP 1)", "OPTION (MAX_DOP 1)", 102},
	{"flipClaimSQL", "INNER LOOP JOIN", "INNER NESTED JOIN", 102},
	{"flipClaimSQL", "ON e.id = c.id", "ON e.retry_count = c.id", 8622},
	{"settleSQL", "DELETE /* outbox:Settle */ FROM {receipts} WITH (ROWLOCK)", "DELETE /* outbox:Settle */ FROM {receipts} WITH (FORCESEEK)", 10724},
	{"settleSQL", "DELETE /* outbox:Settle */ FROM {receipts} WITH (ROWLOCK)", "DELETE /* outbox:Settle */ FROM {receipts} WITH (NOLOCK)", 1065},
	{"flipClaimSQL", "INTO {receipts} (", "INTO {receipts} WITH (READPAST) (", 4102},

	// clauses
	{"claimEventsSQL", "ORDER BY e.id\n", "ORDER BY\n", 156},
	{"claimEventsSQL", "AND    e.id >=", "AND AND e.id >=", 156},
	{"overdueClaimsSQL", "ORDER BY r.lease_until, r.claim_id\n", "", 102},
	{"overdueClaimsSQL", "ORDER BY r.lease_until, r.claim_id", "ORDER BY r.lease_until, r.lease_until", 169},
	{"flipClaimSQL", "ON e.id = c.id\n", "\n", 156},
	{"retryDueSQL", "OPTION (MAXDOP 1)", "ORDER BY e.id OPTION (MAXDOP 1)", 156},
	{"settleSQL", "END;\n", "", 102},
	{"settleSQL", "IF @fence IS NOT NULL", "IF @fence", 4145},
	{"flipClaimSQL", "'$') AS c\n", "'$'\n", 102},
}

// parameterValues are the parameters of the statements.
var parameterValues = map[string]any{
	"batch": 10, "max_bytes": 1000, "event_type": mssql.VarCharMax("a"), "from": int64(1), "to": int64(5), "ids": "[1,2]", "owner": mssql.VarCharMax("w"), "lease_ms": 60_000,
	"claim_id": mssql.VarCharMax(openClaim), "open_claim": mssql.VarCharMax(openClaim), "returned": "[11]", "failed": `[{"id":12,"spend":1,"retry_ms":1000,"error":"x"}]`,
	"skip": 0, "limit": 10, "types": `["a"]`, "cap": 100, "claim_index": "IX_outbox_claim", "table": "[dbo].[outbox_event]", "sequence": "[dbo].[outbox_event_seq]",
	"events": `[{"n":0,"a":"x","i":"1","t":"a","p":"p"},{"n":1,"a":"x","i":"2","t":"a","p":"p"}]`, "count": 2, "written": 0,
	"rows": 100, "skew_ms": 1000, "zones_ms": 1000,
	"cutoff": mssql.VarCharMax("2026-01-01"), "shifted_cutoff": mssql.VarCharMax("2026-01-01"),
}

const openClaim = "11111111-1111-1111-1111-111111111111"

// Mistakes in the statements that the project sends are refused as SQL Server refuses
// them, whatever they would do to the rows. Those of number 0 are none, and here to
// show that the others are not refused for nothing.
func TestMutationsOfTheStatements(t *testing.T) {
	texts := statementtest.Constants(t, ".")
	for name, text := range statementtest.Constants(t, "../maintenance") {
		texts[name] = text
	}
	db := outboxTables(t)
	table, err := readTable(t.Context(), db, Names{}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	render := Names{}.renderer(table)
	tried := make(map[string]bool)
	for _, m := range mutations {
		text := texts[m.statement]
		if !tried[m.statement] {
			tried[m.statement] = true
			if err := tryStatement(t, db, render, m.statement, text); err != nil {
				t.Errorf("%s as it is: %v", m.statement, err)
			}
		}
		if n := strings.Count(text, m.old); n == 0 {
			t.Errorf("%s has no %q: change the mutation with the statement", m.statement, m.old)
			continue
		}
		err := tryStatement(t, db, render, m.statement, strings.Replace(text, m.old, m.new, 1))
		var e mssql.Error
		if errors.As(err, &e); e.Number != m.number || (err == nil) != (m.number == 0) {
			t.Errorf("%s, %q instead of %q: got %v, want %d", m.statement, m.new, m.old, err, m.number)
		}
	}
}

// outboxTables makes the project's tables, with an event of each kind.
func outboxTables(t *testing.T) *sql.DB {
	t.Helper()
	s, err := emulator.Start(emulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlserver", s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = db.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	script, err := scripts.Outbox(scripts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range append(scripts.Batches(script), `ALTER SEQUENCE dbo.outbox_event_seq RESTART WITH 1001;
		DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
		INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, processed_at, retry_at)
		VALUES (1, 'x', '1', 'a', 'p', 0, NULL, NULL), (2, 'x', '1', 'a', 'p', 0, NULL, NULL), (11, 'x', '1', 'a', 'p', 1, @now, NULL), (12, 'x', '1', 'a', 'p', 1, @now, NULL),
		       (21, 'x', '1', 'a', 'p', 2, NULL, DATEADD(MINUTE, -1, @now)), (22, 'x', '1', 'a', 'p', 2, NULL, NULL);
		INSERT INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
		VALUES ('`+openClaim+`', 'w', 'a', @now, DATEADD(MINUTE, -1, @now), 2, '[11,12]')`) {
		if _, err := db.Exec(batch); err != nil {
			t.Fatalf("%v in\n%s", err, batch)
		}
	}
	return db
}

// tryStatement sends a statement, reads all that it answers and takes it back.
func tryStatement(t *testing.T, db *sql.DB, render *strings.Replacer, name, text string) error {
	t.Helper()
	text = render.Replace(strings.ReplaceAll(text, "{text_bytes}", "DATALENGTH(e.payload)"))
	var args []any
	for p, v := range parameterValues {
		if name == "flipClaimSQL" && p == "claim_id" {
			v = mssql.VarCharMax("22222222-2222-2222-2222-222222222222")
		}
		args = append(args, sql.Named(p, v))
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	return readAll(t.Context(), tx, text, args)
}

func readAll(ctx context.Context, tx *sql.Tx, text string, args []any) error {
	rows, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			if cols, err := rows.Columns(); err != nil || len(cols) == 0 {
				return fmt.Errorf("%q, %w", cols, err)
			}
		}
	}
	return rows.Err()
}
