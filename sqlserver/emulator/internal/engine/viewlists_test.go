package engine

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Every view answers with rows as wide as its columns, on every edition that has
// it; a name that the documentation has and the engine does not model is 50999;
// one that the edition does not have is 208.
func TestEveryViewAnswersOrSaysWhyNot(t *testing.T) {
	for _, edition := range []Edition{AzureSQLDatabase, AzureManagedInstance, Enterprise2022, Standard2022} {
		e := New(Config{Database: "test", Edition: edition})
		s := open(t, e)
		must(t, s, outboxTable)
		must(t, s, `CREATE SEQUENCE q AS BIGINT START WITH 1; CREATE TYPE ty AS TABLE (id INT NOT NULL); CREATE TABLE heap (n INT IDENTITY, CHECK (n > 0)); CREATE STATISTICS st ON e (payload); BEGIN TRAN`)
		must(t, s, `CREATE PROCEDURE p @a INT, @t ty READONLY AS SELECT @a`)
		must(t, s, `CREATE TRIGGER tr ON e AFTER INSERT AS SET NOCOUNT ON`)
		names := slices.AppendSeq(slices.Collect(maps.Keys(viewEditions)), maps.Keys(views))
		for _, name := range names {
			v, modelled := views[name]
			_, isFunction := rowFunctions[strings.ToUpper(name)]
			want := ""
			switch {
			case !e.exists(name):
				want = "error 208"
			case isFunction: // without its arguments
				want = "error 216"
			case !modelled || v.rows == nil:
				want = "error 50999"
			}
			got := run(t, s, "IF (SELECT COUNT_BIG(*) FROM "+name+") >= 0 PRINT ''").text()
			if want == "" && got != "info " || want != "" && got != want && got != want+"\ninfo " {
				t.Errorf("edition %d: %s: got %q, want %q", edition, name, got, want)
			}
			if want != "" {
				continue
			}
			for _, row := range v.rows(s.(*session)) {
				if len(row) != len(v.cols) {
					t.Errorf("%s has %d columns and a row of %d values", name, len(v.cols), len(row))
				}
			}
		}
	}
}

func TestViewsOfOtherDatabases(t *testing.T) {
	for _, c := range []struct {
		edition   Edition
		sql, want string
	}{
		{AzureSQLDatabase, `SELECT COUNT(*) FROM test.sys.tables`, "0"},
		{AzureSQLDatabase, `SELECT name FROM master.sys.databases`, "error 40515"},
		{AzureSQLDatabase, `SELECT name FROM tempdb.sys.tables`, "error 50999"},
		{Enterprise2022, `SELECT name FROM master.sys.databases WHERE database_id = 5`, "test"},
		{Enterprise2022, `SELECT name FROM master.sys.tables`, "error 50999"},
		{AzureManagedInstance, `SELECT sku FROM master.sys.server_resource_stats`, "error 50999"},
	} {
		s := open(t, New(Config{Database: "test", Edition: c.edition}))
		if got := run(t, s, c.sql).text(); got != c.want {
			t.Errorf("%s on edition %d: got %q, want %q", c.sql, c.edition, got, c.want)
		}
	}
}
