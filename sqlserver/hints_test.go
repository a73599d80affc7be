package sqlserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tsql "github.com/sqlc-dev/teesql/ast"

	"azsqloutbox/sqlserver/statementtest"
)

// hints are what each statement tells the server, in the order of its text: of a
// table, of a join, and of the query. Their reasons stand beside the statements. One
// that is not here has none.
var hints = map[string][]string{
	"claimEventsSQL": {"outbox_event: INDEX(IX_outbox_claim) ForceSeek UpdLock Rowlock ReadPast ReadCommittedLock", "MaxDop 1"},
	"claimUnlockedSQL": {
		"Loop join", "outbox_event: INDEX(IX_outbox_claim) ForceSeek XLock Rowlock ReadPast ReadCommittedLock",
		"outbox_event: ForceSeek XLock Rowlock ReadPast ReadCommittedLock", "MaxDop 1",
	},
	"flipClaimSQL":  {"Loop join", "outbox_event: ForceSeek Rowlock", "MaxDop 1"},
	"findClaimSQL":  {"outbox_event_claim: ReadCommittedLock"},
	"settleSentSQL": {"Loop join", "outbox_event_claim: ForceSeek Rowlock", "MaxDop 1"},
	"settleSQL": {
		"outbox_event_claim: UpdLock Rowlock", "outbox_event_claim: Rowlock",
		"Loop join", "outbox_event: ForceSeek Rowlock", "MaxDop 1",
		"Loop join", "outbox_event: ForceSeek Rowlock", "MaxDop 1",
	},
	"overdueClaimsSQL": {
		"outbox_event_claim: ReadPast ReadCommittedLock",
		"outbox_event: INDEX(IX_outbox_retry) ForceSeek ReadPast ReadCommittedLock",
	},
	"reapClaimSQL": {
		"outbox_event_claim: UpdLock Rowlock ReadPast ReadCommittedLock", "outbox_event_claim: Rowlock",
		"outbox_event: ForceSeek", "MaxDop 1",
		"Loop join", "outbox_event: ForceSeek Rowlock", "MaxDop 1",
		"Loop join", "outbox_event: ForceSeek Rowlock", "MaxDop 1",
	},
	"retryDueSQL": {"outbox_event: INDEX(IX_outbox_retry) ForceSeek Rowlock ReadPast ReadCommittedLock", "MaxDop 1"},
	"pendingSQL":  {"outbox_event: INDEX(IX_outbox_claim) ForceSeek", "MaxDop 1"},
	"discoverPendingSQL": {
		"outbox_event: INDEX(IX_outbox_claim)", "outbox_event: INDEX(IX_outbox_claim) ForceSeek",
		"outbox_event: INDEX(IX_outbox_claim) ForceSeek", "outbox_event: INDEX(IX_outbox_claim) ForceSeek",
	},
	"backlogTypesSQL": {
		"outbox_event: INDEX(IX_outbox_claim) ForceSeek", "outbox_event: INDEX(IX_outbox_claim) ForceSeek", "MaxDop 1",
	},
	"backlogFailedSQL":   {"outbox_event: INDEX(IX_outbox_retry)", "outbox_event: INDEX(IX_outbox_retry)", "MaxDop 1"},
	"openReceiptsSQL":    {"Recompile"},
	"heartbeatSQL":       {"outbox_event_worker: Rowlock ReadPast ReadCommittedLock"},
	"highestIDSQL":       {"Recompile"},
	"enqueueSQL":         {"ForceOrder", "MaxDop 1"},
	"enqueueIdentitySQL": {"ForceOrder", "MaxDop 1"},
	"fitsCollationSQL":   {"MaxDop 1"},
}

func TestHints(t *testing.T) {
	for name, text := range statementtest.Constants(t, ".") {
		text = strings.ReplaceAll(Names{}.renderer(shapes["default"]).Replace(text), "%d", "5")
		var got []string
		statementtest.Visit(statementtest.Parse(t, text), func(n any) {
			switch n := n.(type) {
			case *tsql.NamedTableReference:
				if list := statementtest.HintNames(n.TableHints); len(list) > 0 {
					got = append(got, n.SchemaObject.BaseIdentifier.Value+": "+strings.Join(list, " "))
				}
			case *tsql.QualifiedJoin:
				if n.JoinHint != "" && n.JoinHint != "None" {
					got = append(got, n.JoinHint+" join")
				}
			case *tsql.OptimizerHint:
				got = append(got, n.HintKind)
			case *tsql.LiteralOptimizerHint:
				got = append(got, fmt.Sprintf("%s %s", n.HintKind, n.Value.(*tsql.IntegerLiteral).Value))
			}
		})
		if !slices.Equal(got, hints[name]) {
			t.Errorf("%s has the hints\n%q, want\n%q", name, got, hints[name])
		}
	}
}
