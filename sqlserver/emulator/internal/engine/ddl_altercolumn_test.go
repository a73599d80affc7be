package engine

import "testing"

// What holds a column keeps it from changing; every holder is named, and CATCH
// sees the last error.
func TestAlterColumnIsBlocked(t *testing.T) {
	const table = `CREATE TABLE t (id INT NOT NULL CONSTRAINT PK PRIMARY KEY, p NVARCHAR(20) NOT NULL CONSTRAINT DF DEFAULT N'x', h VARCHAR(10) NULL, s TINYINT NOT NULL, free NVARCHAR(20) NOT NULL,
		CONSTRAINT CK CHECK (LEN(p) > 0)); CREATE INDEX IXK ON t (p); CREATE INDEX IXI ON t (id) INCLUDE (p, h) WHERE s = 0; CREATE STATISTICS ST ON t (p, free)`
	s := open(t, newEngine(t))
	must(t, s, table)
	r := run(t, s, `ALTER TABLE t ALTER COLUMN p VARCHAR(20) NOT NULL WITH (ONLINE = OFF)`)
	want := []string{
		"The index 'IXK' is dependent on column 'p'.", "The index 'IXI' is dependent on column 'p'.", "The statistics 'ST' is dependent on column 'p'.",
		"The object 'CK' is dependent on column 'p'.", "The object 'DF' is dependent on column 'p'.",
		"ALTER TABLE ALTER COLUMN p failed because one or more objects access this column.",
	}
	if len(r.errors) != len(want) {
		t.Fatal(r.lines)
	}
	for i, e := range r.errors {
		if e.Message != want[i] || (e.Number == 4922) != (i == len(want)-1) {
			t.Errorf("%d: %d %s", i, e.Number, e.Message)
		}
	}
	for _, c := range []struct{ name, sql, want string }{
		{"catch", `BEGIN TRY ALTER TABLE t ALTER COLUMN p VARCHAR(20) NOT NULL END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH`, "4922"},
		{"longer, in an index", `ALTER TABLE t ALTER COLUMN p NVARCHAR(30) NOT NULL`, ""},
		{"shorter, in an index", `ALTER TABLE t ALTER COLUMN p NVARCHAR(10) NOT NULL`, "error 5074\nerror 5074\nerror 5074\nerror 4922"},
		{"MAX, included", `ALTER TABLE t ALTER COLUMN h VARCHAR(MAX) NULL`, "error 5074\nerror 4922"},
		{"another collation, included", `ALTER TABLE t ALTER COLUMN h VARCHAR(10) COLLATE Latin1_General_100_BIN2_UTF8 NULL`, "error 5074\nerror 4922"},
		{"NOT NULL, included", `ALTER TABLE t ALTER COLUMN h VARCHAR(10) NOT NULL`, "error 5074\nerror 4922"},
		{"filter", `ALTER TABLE t ALTER COLUMN s INT NOT NULL`, "error 5074\nerror 4922"},
		{"key of the primary key to NULL", `ALTER TABLE t ALTER COLUMN id INT NULL`, "error 5074\nerror 4922"},
		{"the same again", `ALTER TABLE t ALTER COLUMN id INT NOT NULL`, ""},
		{"statistics offline", `ALTER TABLE t ALTER COLUMN free VARCHAR(20) NOT NULL`, "error 5074\nerror 4922"},
		{"statistics online", `ALTER TABLE t ALTER COLUMN free VARCHAR(20) NOT NULL WITH (ONLINE = ON)`, ""},
		{"to NULL online, in an index", `ALTER TABLE t ALTER COLUMN p NVARCHAR(30) NULL WITH (ONLINE = ON)`, "error 50999"},
		{"low priority, which it does not take", `ALTER TABLE t ALTER COLUMN free VARCHAR(20) NOT NULL WITH (ONLINE = ON (WAIT_AT_LOW_PRIORITY (MAX_DURATION = 1, ABORT_AFTER_WAIT = NONE)))`, "error 102"},
		{"an option that is none", `ALTER TABLE t ALTER COLUMN free VARCHAR(20) NOT NULL WITH (ONLINE = ON, NOSUCH = 1)`, "error 102"},
		{"drop", `ALTER TABLE t DROP COLUMN free`, "error 5074\nerror 4922"},
		{"drop of a constraint", `ALTER TABLE t DROP CONSTRAINT nope`, "error 3728\nerror 3727"},
	} {
		if got := run(t, s, c.sql).text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	must(t, s, `DROP STATISTICS t.ST; CREATE STATISTICS STF ON t (id) WHERE free > 'a'`)
	if got := run(t, s, `ALTER TABLE t ALTER COLUMN free NVARCHAR(20) NOT NULL WITH (ONLINE = ON)`).text(); got != "error 5074\nerror 4922" {
		t.Errorf("the filter of statistics, online: %q", got)
	}
}

// What ALTER COLUMN does not restate is lost: NOT NULL, whatever the session's
// ANSI_NULL_DFLT_ON, and the collation.
func TestAlterColumnForgetsWhatIsNotRestated(t *testing.T) {
	play(t, []batch{
		{`CREATE TABLE t (id INT NOT NULL, p VARCHAR(20) COLLATE Latin1_General_100_BIN2_UTF8 NOT NULL CONSTRAINT DF DEFAULT 'x')`, ""},
		{`SET ANSI_NULL_DFLT_ON OFF; ALTER TABLE t ALTER COLUMN p VARCHAR(30) WITH (ONLINE = ON)`, ""},
		{`SELECT is_nullable, collation_name, max_length FROM sys.columns WHERE name = 'p'`, "1|SQL_Latin1_General_CP1_CI_AS|30"},
		{`ALTER TABLE t ALTER COLUMN p VARCHAR(30) COLLATE Latin1_General_100_BIN2_UTF8 NOT NULL; SELECT is_nullable, collation_name FROM sys.columns WHERE name = 'p'`, "0|Latin1_General_100_BIN2_UTF8"},
		{`ALTER TABLE t ALTER COLUMN p NVARCHAR(30) NOT NULL`, "error 5074\nerror 4922"}, // the default
	})
}

func TestStatistics(t *testing.T) {
	play(t, []batch{
		{`CREATE TABLE t (id INT NOT NULL CONSTRAINT PK PRIMARY KEY, a INT NULL, b INT NULL)`, ""},
		{`CREATE STATISTICS st ON t (b, a) WITH FULLSCAN, NORECOMPUTE; CREATE STATISTICS sf ON dbo.t (a) WHERE b > 1`, ""},
		{`CREATE STATISTICS st ON t (a)`, "error 1927"},
		{`CREATE INDEX st ON t (a)`, "error 1913"},
		{`CREATE STATISTICS s2 ON t (nope)`, "error 1911"},
		{`CREATE STATISTICS s2 ON nope (a)`, "error 1088"},
		{`CREATE STATISTICS s2 ON t (a) WITH NOSUCH`, "error 102"},
		{
			`SELECT name, stats_id, auto_created, user_created, no_recompute, filter_definition FROM sys.stats WHERE object_id = OBJECT_ID('t') ORDER BY stats_id`,
			"PK|1|0|0|0|NULL\nst|2|0|1|1|NULL\nsf|3|0|1|0|([b]>(1))",
		},
		{`SELECT stats_id, stats_column_id, column_id FROM sys.stats_columns WHERE object_id = OBJECT_ID('t') ORDER BY stats_id, stats_column_id`, "1|1|1\n2|1|3\n2|2|2\n3|1|2"},
		{`UPDATE STATISTICS t st WITH FULLSCAN; UPDATE STATISTICS t`, ""},
		{`UPDATE STATISTICS t nope`, "error 2767"},
		{`DROP STATISTICS t.nope`, "error 3701"},
		{`DROP STATISTICS t.PK`, "error 3739"},
		{`BEGIN TRAN; DROP STATISTICS dbo.t.st; ROLLBACK; SELECT COUNT(*) FROM sys.stats`, "began\nrolled back\n3"},
		{`DROP STATISTICS t.st, dbo.t.sf; SELECT COUNT(*) FROM sys.stats`, "1"},
	})
}

func TestCreateIndexDropExisting(t *testing.T) {
	play(t, []batch{
		{`CREATE TABLE t (id INT NOT NULL CONSTRAINT PK PRIMARY KEY, a INT NULL, b INT NULL) ON [PRIMARY]; INSERT t VALUES (1, 1, 5), (2, 1, 6)`, ""},
		{`CREATE INDEX ix ON t (a) WITH (DROP_EXISTING = ON)`, "error 7999"},
		{`CREATE INDEX ix ON t (a) ON [PRIMARY]; CREATE INDEX other ON t (b) ON nowhere`, "error 1921"},
		{`CREATE INDEX ix ON t (a)`, "error 1913"},
		{`CREATE UNIQUE INDEX ix ON t (a) WITH (DROP_EXISTING = ON)`, "error 1505"},
		{`SELECT index_id, is_unique FROM sys.indexes WHERE name = 'ix'; SELECT b FROM t WITH (INDEX(ix)) WHERE a = 1`, "2|0\n5\n6"},
		{`CREATE INDEX ix ON t (b) INCLUDE (a) WHERE b > 5 WITH (DROP_EXISTING = ON, ONLINE = ON) ON [PRIMARY]`, ""},
		{`SELECT index_id, filter_definition FROM sys.indexes WHERE name = 'ix'; SELECT a FROM t WITH (INDEX(ix)) WHERE b > 5`, "2|([b]>(5))\n1"},
		{`CREATE INDEX PK ON t (a) WITH (DROP_EXISTING = ON)`, "error 50999"},
		{`BEGIN TRAN; CREATE INDEX ix ON t (a) WITH (DROP_EXISTING = ON); ROLLBACK; SELECT a FROM t WITH (INDEX(ix)) WHERE b > 5`, "began\nrolled back\n1"},
	})
}

// DDL waits no longer than LOCK_TIMEOUT, and what it waited for may have changed
// meanwhile; TABLOCKX keeps everybody away.
func TestDDLWaits(t *testing.T) {
	e := newEngine(t)
	a, b := open(t, e), open(t, e)
	must(t, a, `CREATE TABLE t (id INT NOT NULL CONSTRAINT PK PRIMARY KEY, p VARCHAR(10) NULL, n INT NULL, CONSTRAINT CK CHECK (n > 0)); CREATE INDEX ix ON t (n)`)
	must(t, a, `BEGIN TRAN; SELECT COUNT(*) FROM t WITH (TABLOCKX, HOLDLOCK)`)
	for _, sql := range []string{
		`ALTER TABLE t ALTER COLUMN p VARCHAR(20) NULL WITH (ONLINE = ON)`, `ALTER TABLE t ADD z INT NULL`, `ALTER TABLE t DROP CONSTRAINT CK`, `ALTER TABLE t NOCHECK CONSTRAINT CK`,
		`ALTER INDEX ix ON t REBUILD WITH (ONLINE = ON)`, `ALTER INDEX ix ON t DISABLE`, `CREATE INDEX ix2 ON t (p)`, `DROP INDEX ix ON t`, `TRUNCATE TABLE t`, `DROP TABLE t`,
		`INSERT t (id) VALUES (1)`, `SELECT id FROM t WITH (READCOMMITTEDLOCK)`, `SELECT id FROM t WITH (READPAST, READCOMMITTEDLOCK)`,
	} {
		if got := run(t, b, `SET LOCK_TIMEOUT 0; `+sql).text(); got != "error 1222" {
			t.Errorf("%s: %q, want 1222", sql, got)
		}
	}
	must(t, a, `COMMIT; BEGIN TRAN; ALTER TABLE t ADD z INT NULL`)
	waits := make(chan *recorder)
	go func() { waits <- run(t, b, `SET LOCK_TIMEOUT -1; ALTER TABLE t ADD y INT NULL`) }()
	untilWaiting(t, e)
	must(t, a, `COMMIT`)
	if r := <-waits; r.text() != "" {
		t.Error(r.text())
	}
	if got := run(t, a, `SELECT STRING_AGG(name, ',') FROM sys.columns WHERE object_id = OBJECT_ID('t')`).text(); got != "id,p,n,z,y" {
		t.Error(got)
	}
}
