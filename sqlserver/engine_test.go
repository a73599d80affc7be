package sqlserver_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"go.uber.org/zap/zaptest"

	"azsqloutbox/scripts"
	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

// The suite runs on the embedded engine, and on any other that
// OUTBOX_TEST_SQL_DSN names. It never asks which engine it is on: what one
// cannot do is found out by trying, and skipped with that as the reason.

func testDSN(t testing.TB) string {
	if dsn := os.Getenv("OUTBOX_TEST_SQL_DSN"); dsn != "" {
		return dsn
	}
	return embeddedDSN(t)
}

func testCollation() string {
	return cmp.Or(os.Getenv("OUTBOX_TEST_COLLATION"), "Latin1_General_100_BIN2_UTF8")
}

// outbox is an event table of one test, with what belongs to it.
type outbox struct {
	t       testing.TB
	db      *sql.DB
	names   sqlserver.Names
	options scripts.Options
	nextID  int64
}

// newOutbox runs the schema script under names of its own and drops what it
// made when the test ends.
func newOutbox(t testing.TB, o scripts.Options) *outbox {
	t.Helper()
	return newOutboxOn(t, testDSN(t), o)
}

func newOutboxOn(t testing.TB, dsn string, o scripts.Options) *outbox {
	t.Helper()
	db, err := sqlserver.Open(dsn, sqlserver.Options{AppName: "outbox-test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	o.Table = cmp.Or(o.Table, "outbox test") + fmt.Sprintf("_%x", rand.Uint64())
	o.Collation = cmp.Or(o.Collation, testCollation())
	b := &outbox{t: t, db: db, options: o, nextID: 1, names: sqlserver.Names{
		Schema: o.Schema, Table: o.Table, ClaimIndex: o.ClaimIndex, RetryIndex: o.RetryIndex,
	}}
	b.create()
	t.Cleanup(b.drop)
	return b
}

func (b *outbox) create() {
	b.t.Helper()
	script, err := scripts.Outbox(b.options)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, batch := range scripts.Batches(script) {
		b.exec(batch)
	}
}

// recreate makes the tables anew from a script in which one piece is another.
func (b *outbox) recreate(old, piece string) {
	b.t.Helper()
	b.drop()
	script, err := scripts.Outbox(b.options)
	if err != nil {
		b.t.Fatal(err)
	}
	if strings.Count(script, old) != 1 {
		b.t.Fatalf("the script has %q %d times", old, strings.Count(script, old))
	}
	for _, batch := range scripts.Batches(strings.Replace(script, old, piece, 1)) {
		b.exec(batch)
	}
}

func (b *outbox) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, drop := range []string{
		"DROP TABLE IF EXISTS " + b.names.Events(),
		"DROP TABLE IF EXISTS " + b.names.Receipts(),
		"DROP TABLE IF EXISTS " + b.names.Workers(),
		"DROP TABLE IF EXISTS " + b.names.Controls(),
		"DROP SEQUENCE IF EXISTS " + b.names.Sequence(),
	} {
		if _, err := b.db.ExecContext(ctx, drop); err != nil {
			b.t.Errorf("%s: %v", drop, err)
		}
	}
}

// sql fills {events}, {receipts}, {workers}, {controls} and {sequence} into a text.
func (b *outbox) sql(text string) string {
	return strings.NewReplacer(
		"{events}", b.names.Events(), "{receipts}", b.names.Receipts(),
		"{workers}", b.names.Workers(), "{sequence}", b.names.Sequence(),
		"{controls}", b.names.Controls(),
		"{business}", b.names.Workers()[:len(b.names.Workers())-1]+" business]",
	).Replace(text)
}

func (b *outbox) exec(text string, args ...any) {
	b.t.Helper()
	if _, err := b.db.ExecContext(testContext(b.t), b.sql(text), args...); err != nil {
		b.t.Fatalf("%v in\n%s", err, b.sql(text))
	}
}

// number is the only value of a query.
func (b *outbox) number(text string, args ...any) int64 {
	b.t.Helper()
	var n int64
	if err := b.db.QueryRowContext(testContext(b.t), b.sql(text), args...).Scan(&n); err != nil {
		b.t.Fatalf("%v in\n%s", err, b.sql(text))
	}
	return n
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// add inserts n pending events of a type and returns their ids.
func (b *outbox) add(eventType string, n int) []int64 {
	b.t.Helper()
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = b.addEvent(eventType, fmt.Sprintf(`{"n":%d}`, i), nil)
	}
	return ids
}

// addEvent inserts one; headers is a string or nil.
func (b *outbox) addEvent(eventType, payload string, headers any) int64 {
	b.t.Helper()
	text, ok := headers.(string)
	id := b.nextID
	b.nextID++
	b.exec(`INSERT INTO {events} (id, aggregate_type, aggregate_id, event_type, payload, headers)
VALUES (@id, 'order', @aggregate_id, @event_type, @payload, @headers)`,
		sql.Named("id", id), sql.Named("aggregate_id", fmt.Sprint(id)), sql.Named("event_type", eventType),
		sql.Named("payload", payload), sql.Named("headers", sql.NullString{String: text, Valid: ok}))
	return id
}

// row is what the tests look at in an event.
type row struct {
	Status     int
	Processed  bool
	RetryCount int
	Retry      bool
	LastError  string
}

func (b *outbox) row(id int64) row {
	b.t.Helper()
	var r row
	var processed, retry sql.NullTime
	var lastError sql.NullString
	err := b.db.QueryRowContext(testContext(b.t), b.sql(`SELECT status, processed_at, retry_count, retry_at, last_error FROM {events} WHERE id = @id`),
		sql.Named("id", id)).Scan(&r.Status, &processed, &r.RetryCount, &retry, &lastError)
	if err != nil {
		b.t.Fatalf("row %d: %v", id, err)
	}
	r.Processed, r.Retry, r.LastError = processed.Valid, retry.Valid, lastError.String
	return r
}

var (
	pending   = row{Status: 0}
	processed = row{Status: 1, Processed: true}
)

func (b *outbox) wantRows(want row, ids ...int64) {
	b.t.Helper()
	for _, id := range ids {
		if got := b.row(id); got != want {
			b.t.Errorf("event %d is %+v, want %+v", id, got, want)
		}
	}
}

func (b *outbox) receipts() int64 {
	b.t.Helper()
	return b.number("SELECT COUNT(*) FROM {receipts}")
}

// expire ends every lease.
func (b *outbox) expire() {
	b.t.Helper()
	b.exec("UPDATE {receipts} SET lease_until = DATEADD(SECOND, -1, SYSUTCDATETIME())")
}

func (b *outbox) config() sqlserver.Config {
	return sqlserver.Config{
		DB: b.db, Names: b.names, Owner: "test-worker", Source: "test",
		Lease: time.Minute, LockTimeout: 2 * time.Second, MaxAttempts: 3,
		Logger: zaptest.NewLogger(b.t),
	}
}

func (b *outbox) store(change ...func(*sqlserver.Config)) *sqlserver.Store {
	b.t.Helper()
	cfg := b.config()
	for _, f := range change {
		f(&cfg)
	}
	s, err := sqlserver.New(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(s.Close)
	return s
}

func claim(t testing.TB, s *sqlserver.Store, eventType string, batch int) worker.Claim {
	t.Helper()
	c, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: eventType, Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ids(c worker.Claim) []int64 {
	var list []int64
	for _, e := range c.Events {
		list = append(list, e.ID)
	}
	return list
}

// begin opens a transaction that the test ends, or its cleanup.
func (b *outbox) begin() *sql.Tx {
	b.t.Helper()
	tx, err := b.db.BeginTx(testContext(b.t), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// needSkipping skips the test where locked rows are not skipped.
func (b *outbox) needSkipping() {
	b.t.Helper()
	id := b.addEvent("probe of READPAST", "{}", nil)
	const read = `SELECT COUNT(*) FROM (SELECT TOP (10) id FROM {events} WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK) WHERE id = @id) AS r`
	first, second := b.begin(), b.begin()
	var mine, theirs int
	if err := first.QueryRowContext(testContext(b.t), b.sql(read), sql.Named("id", id)).Scan(&mine); err != nil {
		b.t.Fatal(err)
	}
	if err := second.QueryRowContext(testContext(b.t), b.sql(read), sql.Named("id", id)).Scan(&theirs); err != nil {
		b.t.Fatal(err)
	}
	if err := errors.Join(first.Rollback(), second.Rollback()); err != nil {
		b.t.Fatal(err)
	}
	b.exec("DELETE FROM {events} WHERE id = @id", sql.Named("id", id))
	if theirs != 0 {
		b.t.Skip("this engine does not skip locked rows for READPAST")
	}
}

// needHints skips the test where an index hint is not obeyed.
func (b *outbox) needHints() {
	b.t.Helper()
	_, err := b.db.ExecContext(testContext(b.t), b.sql("SELECT id FROM {events} WITH (INDEX(no_such_index))"))
	if err == nil {
		b.t.Skip("this engine ignores index hints")
	}
}

// needNumbers skips the test where errors do not have SQL Server's numbers.
func (b *outbox) needNumbers() {
	b.t.Helper()
	_, err := b.db.ExecContext(testContext(b.t), "SELECT id FROM no_such_table_of_this_name")
	var server mssql.Error
	if !errors.As(err, &server) || server.Number != 208 {
		b.t.Skipf("this engine has error numbers of its own: %v instead of 208", err)
	}
}

// needCatalog skips the test where sys.indexes does not show a filtered index
// under its name.
func (b *outbox) needCatalog() {
	b.t.Helper()
	n := b.number(`SELECT COUNT(*) FROM sys.indexes WHERE object_id = OBJECT_ID(@table) AND name = @name AND has_filter = 1`,
		sql.Named("table", b.names.Events()), sql.Named("name", cmp.Or(b.names.ClaimIndex, "IX_outbox_claim")))
	if n != 1 {
		b.t.Skip("sys.indexes of this engine does not show filtered indexes by their names")
	}
}

// needSequences skips the test where sys.sequences does not show the sequence.
func (b *outbox) needSequences() {
	b.t.Helper()
	n := b.number(`SELECT COUNT(*) FROM sys.sequences WHERE object_id = OBJECT_ID(@sequence)`, sql.Named("sequence", b.names.Sequence()))
	if n != 1 {
		b.t.Skip("sys.sequences of this engine is empty")
	}
}

// needRestoring skips the test where a SET of a request outlives the request.
func (b *outbox) needRestoring() {
	b.t.Helper()
	tx := b.begin()
	var timeout int
	if _, err := tx.ExecContext(testContext(b.t), "SET LOCK_TIMEOUT 1234; DECLARE @x INT = @p;", sql.Named("p", 1)); err != nil {
		b.t.Fatal(err)
	}
	if err := tx.QueryRowContext(testContext(b.t), "SELECT @@LOCK_TIMEOUT").Scan(&timeout); err != nil {
		b.t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		b.t.Fatal(err)
	}
	if timeout == 1234 {
		b.t.Skip("this engine does not restore the settings of sp_executesql at its end")
	}
}

// needCollation skips the test where a collation is not known; none is always.
func (b *outbox) needCollation(name string) {
	b.t.Helper()
	if name == "" {
		return
	}
	if _, err := b.db.ExecContext(testContext(b.t), "SELECT CAST('a' AS VARCHAR(10)) COLLATE "+name+" AS a"); err != nil {
		b.t.Skipf("this engine does not have the collation: %v", err)
	}
}
