package diagnose

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// cachedStatement is a row of sys.dm_exec_query_stats whose text touches the
// outbox: one statement of one cached plan. Times are microseconds, reads and
// writes pages of 8 KB, all of them sums since created.
type cachedStatement struct {
	// name is what stands behind "/* outbox:" in its batch, empty for others'.
	name      string
	text      string // of the statement
	sqlHandle string // the same for the same batch, whatever its SET options
	plan      []byte // its plan handle
	start     int
	end       int
	queryHash string
	planHash  string
	options   int // set_options; -1 where the server did not say
	created   time.Time
	last      time.Time

	executions                               int64
	worker, elapsed                          int64
	reads, physicalReads, logicalWrites, got int64
}

// cacheLimit is how many rows of the plan cache are looked at: named statements
// first, then the others by their CPU.
const cacheLimit = 2000

// sys-dm-exec-query-stats-transact-sql.md, sys-dm-exec-sql-text-transact-sql.md,
// sys-dm-exec-plan-attributes-transact-sql.md; VIEW SERVER STATE, on Azure SQL
// Database VIEW DATABASE STATE. dm_exec_sql_text has no database for ad hoc
// texts, so that it is the plan's attribute that tells this one from others of a
// server.
const diagnoseStatementsSQL = `SELECT /* outbox:DiagnoseStatements */ TOP (@limit)
       qs.sql_handle,
       qs.plan_handle,
       qs.statement_start_offset,
       qs.statement_end_offset,
       qs.creation_time,
       qs.last_execution_time,
       qs.execution_count,
       qs.total_worker_time,
       qs.total_elapsed_time,
       qs.total_logical_reads,
       qs.total_physical_reads,
       qs.total_logical_writes,
       qs.total_rows,
       qs.query_hash,
       qs.query_plan_hash,
       LEFT(st.text, 1000) AS batch_head,
       SUBSTRING(st.text, qs.statement_start_offset / 2 + 1,
                 CASE WHEN qs.statement_end_offset < 0 OR qs.statement_end_offset - qs.statement_start_offset > 8000 THEN 4000
                      ELSE (qs.statement_end_offset - qs.statement_start_offset) / 2 + 1 END) AS statement_text,
       CONVERT(INT, so.value) AS set_options,
       CASE WHEN CONVERT(INT, db.value) = DB_ID() THEN 1 ELSE 0 END AS here
FROM   sys.dm_exec_query_stats AS qs
CROSS APPLY sys.dm_exec_sql_text(qs.sql_handle) AS st
OUTER APPLY (SELECT a.value FROM sys.dm_exec_plan_attributes(qs.plan_handle) AS a WHERE a.attribute = 'set_options') AS so
OUTER APPLY (SELECT b.value FROM sys.dm_exec_plan_attributes(qs.plan_handle) AS b WHERE b.attribute = 'dbid') AS db
WHERE  CHARINDEX(@name, st.text) > 0
AND    CHARINDEX(N'/* outbox:Diagnose', st.text) = 0
ORDER BY CASE WHEN CHARINDEX(N'/* outbox:', st.text) > 0 THEN 0 ELSE 1 END, qs.total_worker_time DESC;`

func (s *source) readCache(ctx context.Context) ([]cachedStatement, error) {
	bare := s.bareTable()
	var list []cachedStatement
	err := s.each(ctx, "read the plan cache for statements", diagnoseStatementsSQL,
		[]any{sql.Named("limit", cacheLimit), sql.Named("name", doubled(bare))},
		func(rows *sql.Rows) error {
			var c cachedStatement
			var handle, queryHash, planHash []byte
			var head, text sql.NullString
			var options sql.NullInt64
			var writes sql.NullInt64
			var here bool
			err := rows.Scan(&handle, &c.plan, &c.start, &c.end, &c.created, &c.last, &c.executions, &c.worker, &c.elapsed,
				&c.reads, &c.physicalReads, &writes, &c.got, &queryHash, &planHash, &head, &text, &options, &here)
			if err != nil {
				return err
			}
			// Ids of databases differ between the views of Azure SQL Database, and there
			// is but one.
			if !here && !s.env.database() || !mentionsOutbox(head.String+text.String, bare) {
				return nil
			}
			c.sqlHandle, c.queryHash, c.planHash = hex.EncodeToString(handle), hex.EncodeToString(queryHash), hex.EncodeToString(planHash)
			c.created, c.last = s.env.utc(c.created), s.env.utc(c.last)
			c.text, c.options, c.logicalWrites = text.String, -1, writes.Int64
			c.name = cmp.Or(statementName(c.text), statementName(head.String))
			if options.Valid {
				c.options = int(options.Int64)
			}
			list = append(list, c)
			return nil
		})
	return list, err
}

// bareTable is the event table's own name, unquoted.
func (s *source) bareTable() string { return s.name("{table}") }

// doubled is a name as it stands between brackets.
func doubled(name string) string { return strings.ReplaceAll(name, "]", "]]") }

var outboxName = regexp.MustCompile(`/\* outbox:([A-Za-z]+) \*/`)

// statementName is the name that a text carries: one a batch, in each of its
// statements.
func statementName(batch string) string {
	if m := outboxName.FindStringSubmatch(batch); m != nil {
		return m[1]
	}
	return ""
}

// mentionsOutbox says whether a text names the event table or something made from
// its name.
func mentionsOutbox(text, table string) bool {
	return Mentions(text, table, "_claim", "_worker", "_control", "_seq", "_enqueue")
}

// Mentions says whether a T-SQL text names the table, which is unquoted, alone or
// with one of the suffixes behind it, and not only a longer name that contains it.
func Mentions(text, table string, suffixes ...string) bool {
	lower, name := strings.ToLower(text), strings.ToLower(doubled(table))
	for from := 0; ; {
		at := strings.Index(lower[from:], name)
		if at < 0 {
			return false
		}
		at += from
		from = at + len(name)
		if before, _ := utf8.DecodeLastRuneInString(lower[:at]); partOfName(before) {
			continue
		}
		rest := lower[from:]
		for _, suffix := range suffixes {
			if after, ok := strings.CutPrefix(rest, suffix); ok {
				rest = after
				break
			}
		}
		if behind, _ := utf8.DecodeRuneInString(rest); !partOfName(behind) {
			return true
		}
	}
}

func partOfName(r rune) bool {
	return r == '_' || r == '$' || r == '#' || r == '@' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// leading is what stands before the first keyword: blanks, comments, and the
// declaration of parameters that sp_executesql puts in front.
var leading = regexp.MustCompile(`(?s)^(\s+|--[^\n]*(\n|$)|/\*.*?\*/|\(@(?:[^()]|\([^()]*\))*\))+`)

// verb is the keyword that a statement begins with.
func verb(text string) string {
	text = leading.ReplaceAllString(text, "")
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	if end < 0 {
		end = len(text)
	}
	return strings.ToUpper(text[:end])
}

// label is how a report calls the statement: its name and verb, or its text.
func (c cachedStatement) label() string {
	if c.name == "" {
		return oneLine(leading.ReplaceAllString(c.text, ""), 400)
	}
	if v := verb(c.text); v != "" {
		return c.name + " " + v
	}
	return c.name
}

// say is how a sentence calls the statement.
func (c cachedStatement) say() string { return say(c.name != "", c.label()) }

// say is a name as it is, and a text in quotes, cut.
func say(named bool, label string) string {
	if named {
		return label
	}
	return "“" + oneLine(label, 60) + "”"
}

// costs are what some statements came to together.
type costs struct {
	label, name, text               string
	executions, worker, elapsed     int64
	reads, physical, writes, got    int64
	last                            time.Time
	plans                           int
	queryHashes                     []string
	logBytes                        float64 // an execution, by Query Store
	logKnown                        bool
	perWorker, perElapsed, perReads float64
	// pace is what it comes to in a second, each plan over its own life: a plan
	// that was compiled again counts from then on, so that sums of two statements
	// cannot be divided by each other.
	pace pace
}

type pace struct{ executions, worker, reads, got float64 }

// shortLife is the least that a pace is taken over, in seconds.
const shortLife = 60

func (p *pace) add(c cachedStatement, now time.Time) {
	life := max(shortLife, now.Sub(c.created).Seconds())
	p.executions += float64(c.executions) / life
	p.worker += float64(c.worker) / life
	p.reads += float64(c.reads) / life
	p.got += float64(c.got) / life
}

// byLabel adds up the plans of each statement, dearest in CPU first.
func byLabel(list []cachedStatement, now time.Time) []costs {
	index := make(map[string]int)
	var out []costs
	for _, c := range list {
		label := c.label()
		i, ok := index[label]
		if !ok {
			i = len(out)
			index[label] = i
			out = append(out, costs{label: label, name: c.name, text: c.text})
		}
		o := &out[i]
		o.executions += c.executions
		o.worker += c.worker
		o.elapsed += c.elapsed
		o.reads += c.reads
		o.physical += c.physicalReads
		o.writes += c.logicalWrites
		o.got += c.got
		o.plans++
		o.pace.add(c, now)
		if c.last.After(o.last) {
			o.last = c.last
		}
		if !slices.Contains(o.queryHashes, c.queryHash) {
			o.queryHashes = append(o.queryHashes, c.queryHash)
		}
	}
	for i := range out {
		o := &out[i]
		n := float64(o.executions)
		o.perWorker, o.perElapsed, o.perReads = ratio(float64(o.worker), n), ratio(float64(o.elapsed), n), ratio(float64(o.reads), n)
	}
	slices.SortStableFunc(out, func(a, b costs) int { return int(min(1, max(-1, b.worker-a.worker))) })
	return out
}
