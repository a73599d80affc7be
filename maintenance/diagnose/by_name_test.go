package diagnose_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"azsqloutbox/sqlserver/statementtest"
)

// The query that docs/operations.md tells operators to run.
func TestCostByNameOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for _, block := range strings.Split(string(page), "```sql\n")[1:] {
		if block, _, _ = strings.Cut(block, "```"); strings.Contains(block, "CostByName") {
			text = block
		}
	}
	statementtest.Request(t, text, "Declare Select")

	// Of the flip two intervals are of the last day; the other texts have no name.
	sets, err := article(t).server.Exec(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	set := sets[len(sets)-1]
	if diff := cmp.Diff([]string{"name", "verb", "executions", "cpu_ms", "elapsed_ms", "pages_read", "log_mb"}, set.Columns); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]any{{"FlipClaim", "UPDATE", int64(400), "600.0", "760.0", int64(288_000), "110.6"}}, set.Rows); diff != "" {
		t.Error(diff)
	}
}
