package sqlserver_test

import (
	"database/sql"
	"slices"
	"testing"
	"time"

	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

// A row that someone has locked in the table alone, where the read of a covering
// index does not look: the flip waits for it once, and the others are claimed.
func TestClaimGetsPastARowThatSomeoneHolds(t *testing.T) {
	for name, hold := range map[string]string{
		"an open UPDATE of a column without an index": "UPDATE {events} SET last_error = 'looked at' WHERE id = @id",
		"a SELECT WITH (UPDLOCK)":                     "SELECT id FROM {events} WITH (UPDLOCK) WHERE id = @id",
		"a row read under REPEATABLE READ":            "SELECT id FROM {events} WITH (REPEATABLEREAD) WHERE id = @id",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, server := onEmulator(t)
			s := b.store(func(c *sqlserver.Config) { c.LockTimeout = 50 * time.Millisecond })
			all := b.add("a", 50)
			held := all[4]
			tx := b.begin()
			if _, err := tx.ExecContext(testContext(t), b.sql(hold), sql.Named("id", held)); err != nil {
				t.Fatal(err)
			}

			cycle := func() (got []int64) {
				t.Helper()
				for after := (worker.Cursor{}); ; {
					c, err := s.Claim(testContext(t), worker.ClaimRequest{EventType: "a", Batch: 10, After: after})
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, ids(c)...)
					if !c.More {
						return got
					}
					after = worker.After(c.Events[len(c.Events)-1].ID)
				}
			}
			free := slices.DeleteFunc(slices.Clone(all), func(id int64) bool { return id == held })
			if got := cycle(); !slices.Equal(got, free) {
				t.Errorf("claimed %v beside a row that is held, want %v", got, free)
			}
			// Five batches, and the one that waited.
			if n := server.StatementCount("FlipClaim"); n != 6 {
				t.Errorf("%d flips, want 6", n)
			}
			if got := cycle(); len(got) != 0 || server.StatementCount("FlipClaim") != 6 {
				t.Errorf("claimed %v of one row that is held, after %d flips", got, server.StatementCount("FlipClaim"))
			}
			b.wantRows(processed, free...)
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			if got := cycle(); !slices.Equal(got, []int64{held}) {
				t.Errorf("claimed %v once it was free, want %d", got, held)
			}
		})
	}
}
