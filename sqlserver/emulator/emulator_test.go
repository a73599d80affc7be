package emulator

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mssql "github.com/microsoft/go-mssqldb"
)

func Example() {
	server, err := Start(Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	db, err := sql.Open("sqlserver", server.DSN())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	var n int
	err = db.QueryRow("-- outbox:Add\nSELECT @a + @b", sql.Named("a", 40), sql.Named("b", 2)).Scan(&n)
	fmt.Println(n, err, server.StatementCount("Add"))
	// Output: 42 <nil> 1
}

func TestLoginIsChecked(t *testing.T) {
	s, _ := start(t, Config{User: "app", Password: "p@ss/wörd", Database: "orders"})
	connect := func(change func(u *url.URL, q url.Values)) error {
		u, err := url.Parse(s.DSN())
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		change(u, q)
		u.RawQuery = q.Encode()
		db, err := sql.Open("sqlserver", u.String())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		return db.Ping()
	}
	if err := connect(func(*url.URL, url.Values) {}); err != nil {
		t.Errorf("the right login: %v", err)
	}
	wantNumber(t, connect(func(u *url.URL, _ url.Values) { u.User = url.UserPassword("app", "wrong") }), 18456)
	wantNumber(t, connect(func(u *url.URL, _ url.Values) { u.User = url.UserPassword("nobody", "p@ss/wörd") }), 18456)
	wantNumber(t, connect(func(_ *url.URL, q url.Values) { q.Set("database", "elsewhere") }), 4060)
	for _, encrypt := range []string{"disable", "false", "true"} {
		if err := connect(func(_ *url.URL, q url.Values) { q.Set("encrypt", encrypt) }); err != nil {
			t.Errorf("encrypt=%s: %v", encrypt, err)
		}
	}
}

func TestStatementsAreLoggedByName(t *testing.T) {
	s, db := start(t, Config{})
	createTable(t, s)
	for n := range 20 {
		if err := insert(t.Context(), db, n); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := db.QueryRow(countRows, sql.Named("above", 9)).Scan(&n); err != nil || n != 10 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := db.Exec("SELECT 1"); err != nil {
		t.Error(err)
	}
	want := []Statement{
		{Name: "CountRows", Count: 1, Texts: []string{countRows}},
		{Name: "InsertRow", Count: 20, Texts: []string{insertRow}},
	}
	if diff := cmp.Diff(want, s.Statements()); diff != "" {
		t.Errorf("wrong log (-want +got):\n%s", diff)
	}
}

func TestNameOf(t *testing.T) {
	for text, want := range map[string]string{
		"-- outbox:Claim\nSELECT 1":                               "Claim",
		"SET NOCOUNT ON;\r\n  -- outbox:Claim \r\nSEL":            "Claim",
		"SELECT '-- outbox:No'\n-- outbox:Yes":                    "Yes",
		"SELECT 1":                                                "",
		"-- outbox:":                                              "",
		"SELECT /* outbox:Claim */ TOP (1) 1":                     "Claim",
		"/* outbox:Set */\nSET NOCOUNT ON":                        "Set",
		"DECLARE @n INT;\nUPDATE /* outbox:Flip */ e":             "Flip",
		"SELECT '/* outbox:No */' /* outbox:Yes */":               "Yes",
		"SELECT /* outbox:Open":                                   "",
		strings.Repeat(" ", nameSearchArea) + "-- outbox:TooLate": "",
	} {
		if got := nameOf(text); got != want {
			t.Errorf("%.60q has name %q, want %q", text, got, want)
		}
	}
}

func TestStatementLogIsBounded(t *testing.T) {
	var log statementLog
	for i := range maxStatements + 10 {
		log.add(fmt.Sprintf("-- outbox:S%d\nSELECT 1", i))
	}
	for i := range keptTexts + 3 {
		log.add(fmt.Sprintf("-- outbox:S0\n%d %s", i, strings.Repeat("x", maxTextBytes)))
	}
	all := log.list()
	if len(all) != maxStatements {
		t.Errorf("%d names are kept, want %d", len(all), maxStatements)
	}
	first := all[0]
	if first.Name != "S0" || first.Count != keptTexts+4 || len(first.Texts) != keptTexts || len(first.Texts[0]) != maxTextBytes {
		t.Errorf("%s: count %d, %d texts", first.Name, first.Count, len(first.Texts))
	}
}

func TestExecReturnsRowsAndErrors(t *testing.T) {
	s, _ := start(t, Config{})
	sets, err := s.Exec(t.Context(), `
		SELECT CAST(1 AS BIGINT) AS a, N'x' AS b, CAST(NULL AS INT) AS c, CAST(12.5 AS DECIMAL(9, 2)) AS d;
		SELECT CAST('2026-01-02T03:04:05.678' AS DATETIME2(3)) AS at, CAST(0x01FF AS VARBINARY(2)) AS bin`)
	if err != nil {
		t.Fatal(err)
	}
	want := []ResultSet{
		{Columns: []string{"a", "b", "c", "d"}, Rows: [][]any{{int64(1), "x", nil, "12.50"}}},
		{Columns: []string{"at", "bin"}, Rows: [][]any{{time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC), []byte{1, 255}}}},
	}
	if diff := cmp.Diff(want, sets); diff != "" {
		t.Errorf("wrong result (-want +got):\n%s", diff)
	}
	var sqlErr *Error
	if _, err := s.Exec(t.Context(), "SELECT 1 FROM nowhere"); !errors.As(err, &sqlErr) || sqlErr.Number != 208 {
		t.Errorf("got %v, want error 208", err)
	}
}

func TestLocksShowWhoHoldsAndWaits(t *testing.T) {
	s, db := start(t, Config{})
	tx := holding(t, s, db)
	waited := make(chan error, 1)
	go func() { waited <- insert(context.WithoutCancel(t.Context()), db, 1) }()
	waitFor(func() bool { return slices.ContainsFunc(s.Locks(), Lock.Waiting) })
	if !slices.ContainsFunc(s.Locks(), func(l Lock) bool { return l.Resource == "KEY" && l.Mode == "X" && l.Status == "GRANT" }) {
		t.Errorf("nobody holds the key that is waited for: %+v", s.Locks())
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	wantNumber(t, <-waited, 2627)
	if locks := s.Locks(); len(locks) != 0 {
		t.Errorf("left behind: %+v", locks)
	}
}

func TestBulkCopy(t *testing.T) {
	s, db := start(t, Config{})
	createTable(t, s)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	stmt, err := tx.Prepare(mssql.CopyIn("t", mssql.BulkOptions{}, "n"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 5000 {
		if _, err := stmt.Exec(n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stmt.Exec(); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := rows(t, s); n != 5000 {
		t.Errorf("%d rows, want 5000", n)
	}
}

func TestConfigIsValidated(t *testing.T) {
	for field, config := range map[string]Config{
		"Addr":      {Addr: "nowhere"},
		"RoundTrip": {RoundTrip: -1},
	} {
		if _, err := Start(config); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
	s, _ := start(t, Config{})
	if _, err := Start(Config{Addr: s.Addr()}); err == nil || !strings.Contains(err.Error(), s.Addr()) {
		t.Errorf("a taken address: got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestCancelWhileWaitingForALock(t *testing.T) {
	s, db := start(t, Config{})
	holding(t, s, db)
	other, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		waitFor(func() bool { return slices.ContainsFunc(s.Locks(), Lock.Waiting) })
		cancel()
	}()
	if err := insert(ctx, other, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if slices.ContainsFunc(s.Locks(), Lock.Waiting) {
		t.Error("the cancelled statement still waits")
	}
	// The connection is as good as before.
	if err := insert(t.Context(), other, 2); err != nil {
		t.Error(err)
	}
	if n := s.Connections(); n != 2 {
		t.Errorf("%d connections, want the same 2", n)
	}
}

func TestTextSurvivesTheWire(t *testing.T) {
	s, db := start(t, Config{})
	if _, err := s.Exec(t.Context(), `CREATE TABLE texts (
		u VARCHAR(2000) COLLATE Latin1_General_100_BIN2_UTF8 NOT NULL,
		m VARCHAR(MAX) COLLATE Latin1_General_100_BIN2_UTF8 NOT NULL,
		l VARCHAR(100) NOT NULL,
		n NVARCHAR(MAX) NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	text := "Grüße, 世界 𝄞"
	long := strings.Repeat(text, 20_000)
	if _, err := db.Exec("INSERT INTO texts (u, m, l, n) VALUES (@t, @long, @l, @long)",
		sql.Named("t", text), sql.Named("long", mssql.NVarCharMax(long)), sql.Named("l", "5 € für Größe")); err != nil {
		t.Fatal(err)
	}
	var u, m, l, n string
	var raw []byte
	if err := db.QueryRow("SELECT u, m, l, n, CONVERT(VARBINARY(MAX), m) FROM texts").Scan(&u, &m, &l, &n, &raw); err != nil {
		t.Fatal(err)
	}
	if u != text || m != long || l != "5 € für Größe" || n != long || string(raw) != long {
		t.Errorf("got %q, %d bytes, %q, %d and %d bytes", u, len(m), l, len(n), len(raw))
	}
}
