package diagnose

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"azsqloutbox/internal/quantity"
)

// statementFacts are what section 1 judges.
type statementFacts struct {
	statements []cachedStatement
	// capped: there were more than cacheLimit.
	capped bool
	top    int
	now    time.Time
	// logBytes is the log of one execution by query hash, from Query Store.
	logBytes map[string]float64
	// logReason is why there is none.
	logReason string
}

func statementsSection(ctx context.Context, s *source, sec Section) (Section, error) {
	list, err := s.cached.read(ctx)
	if err != nil {
		return sec, err
	}
	f := statementFacts{statements: list, capped: len(list) >= cacheLimit, top: s.top, now: s.env.now}
	store, err := s.store.read(ctx)
	switch {
	case err != nil:
		f.logReason = s.optional("log bytes per statement", ofDatabase, err)
	case !store.on():
		f.logReason = "No log bytes per statement: " + store.whyNot()
	default:
		f.logBytes = store.logBytes()
	}
	return judgeStatements(f, sec), nil
}

// Thresholds of section 1. A seek of a clustered index of this size reads three
// or four pages. A claimed event costs its share of the claim's pages (a page of
// the covering index holds several rows) and one seek for the flip, and each
// index that the flip touches one more.
const (
	readsPerEventWarn = 30
	readsPerEventBad  = 200
	// dearerThanClaim is when another statement that claims is called bad: the
	// article of Azure SQL measured 50.
	dearerThanClaim = 5
)

var (
	updateOutput = regexp.MustCompile(`(?is)\bUPDATE\b.*\bSET\b.*\bstatus\b.*\bOUTPUT\b`)
	offsetPaging = regexp.MustCompile(`(?is)\bOFFSET\s+\S+\s+ROWS?\b`)
	countAll     = regexp.MustCompile(`(?is)\bCOUNT(_BIG)?\s*\(`)
)

func judgeStatements(f statementFacts, sec Section) Section {
	if len(f.statements) == 0 {
		return sec.unknown("No statement in the plan cache names this table: nothing ran since the cache was last emptied by a restart, a failover or a change of the service objective.", "run diagnose while a worker runs")
	}
	all := byLabel(f.statements, f.now)
	var total int64
	for i := range all {
		total += all[i].worker
		for _, h := range all[i].queryHashes {
			if b, ok := f.logBytes[h]; ok {
				all[i].logBytes, all[i].logKnown = b, true
			}
		}
	}
	claimed := f.perEvent(all, &sec)
	judgeOthers(all, &sec)
	if len(claimed) > 0 && sec.Verdict == OK && len(sec.Evidence.Findings) == 0 {
		sec.find(OK, claimed, "")
	} else if len(claimed) > 0 {
		sec.note(claimed)
	}
	sec.table(statementsTable(all, total, f.top))
	oldest := f.now
	for _, c := range f.statements {
		if c.created.Before(oldest) {
			oldest = c.created
		}
	}
	sec.note(fmt.Sprintf("Sums since each plan was compiled, the oldest %s; durations contain waits, CPU does not.", format(oldest, Moment)))
	sec.note(f.logReason)
	if f.capped {
		sec.note(fmt.Sprintf("More than %s statements name the table; those without a name and with the least CPU are left out.", quantity.Grouped(cacheLimit)))
	}
	if len(all) > f.top {
		sec.note("Not shown: " + quantity.Of(len(all)-f.top, "statement") + "; --top shows more.")
	}
	return sec
}

// ofWorker are the statements of a worker by their names. Others that are named
// are of writers and of people with outboxctl: no event costs them.
var ofWorker = map[string]bool{
	"SessionSetup": true, "DatabaseState": true, "OpenJSON": true, "Edition": true, "TableColumns": true, "TableIndexes": true,
	"Pending": true, "DiscoverPending": true, "ClaimEvents": true, "ClaimUnlocked": true, "FlipClaim": true, "FindClaim": true,
	"SettleSent": true, "Settle": true, "RetryDue": true, "OverdueClaims": true, "ReapClaim": true, "Heartbeat": true,
	"EqualKeys": true, "LostKeys": true,
	"BacklogTotal": true, "BacklogTypes": true, "BacklogFailed": true, "OpenReceipts": true,
}

// perEvent gives the figures of one claimed event and says what they mean.
func (f statementFacts) perEvent(all []costs, sec *Section) string {
	var events int64
	var n, claimReads, flipReads, namedReads, namedWorker, logBytes float64 // a second
	logged := false
	for _, c := range all {
		if !ofWorker[c.name] {
			continue
		}
		namedReads += c.pace.reads
		namedWorker += c.pace.worker
		if c.logKnown {
			logBytes += c.logBytes * c.pace.executions
			logged = true
		}
		switch c.name {
		case "ClaimEvents", "ClaimUnlocked":
			claimReads += c.pace.reads
			if verb(c.text) == "SELECT" {
				events += c.got
				n += c.pace.got
			}
		case "FlipClaim":
			flipReads += c.pace.reads
		}
	}
	if events == 0 {
		sec.note("No event was claimed by outbox:ClaimEvents since its plan was compiled, so there is no cost per event.")
		return ""
	}
	sec.figure("events claimed", events, Count)
	sec.figure("pages read per claimed event", claimReads/n, Pages)
	sec.figure("pages read per flipped event", flipReads/n, Pages)
	sec.figure("pages read per event, all of the worker's statements", namedReads/n, Pages)
	sec.figure("CPU per event, all of the worker's statements", namedWorker/1000/n, Milliseconds)
	if logged {
		sec.figure("log per event, all of the worker's statements", logBytes/n, Bytes)
	}
	per := (claimReads + flipReads) / n
	text := fmt.Sprintf("An event costs %s to claim and %s to flip, and %s of CPU over all of the worker's statements.",
		counted(claimReads/n, "page"), quantity.Short(flipReads/n), duration(namedWorker/1000/n))
	switch {
	case per > readsPerEventBad:
		sec.find(Bad, text+" A seek of this table reads three or four pages: something scans.", "look at the section on the claim's plan, then at ghosts and unread indexes")
	case per > readsPerEventWarn:
		sec.find(Warn, text+" That is more than a few seeks.", "look at the section on the claim's plan, then at ghosts and unread indexes")
	default:
		return text
	}
	return ""
}

// judgeOthers looks at statements that are not of this project.
func judgeOthers(all []costs, sec *Section) {
	var claim costs
	for _, c := range all {
		if c.name == "ClaimEvents" && c.got > 0 && verb(c.text) == "SELECT" {
			claim = c
		}
	}
	for _, c := range all {
		if c.name != "" {
			continue
		}
		what := oneLine(leading.ReplaceAllString(c.text, ""), 60)
		switch {
		case updateOutput.MatchString(c.text):
			text := fmt.Sprintf("An UPDATE … OUTPUT claims in one statement: %s of CPU and %s each time (“%s”). It reads and writes status in the same index, so it pays an eager spool, and READPAST spoils its row goal.",
				duration(c.perWorker/1000), counted(c.perReads, "page"), what)
			verdict := Warn
			if times := ratio(c.perWorker, claim.perWorker); times >= dearerThanClaim {
				verdict = Bad
				text += fmt.Sprintf(" outbox:ClaimEvents takes %s: that is %s times cheaper.", duration(claim.perWorker/1000), quantity.Short(times))
			}
			sec.find(verdict, text, "claim by a SELECT with UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK and flip by primary key, as the worker does")
		case offsetPaging.MatchString(c.text) && c.perReads > readsPerEventBad:
			sec.find(Warn, fmt.Sprintf("OFFSET pages through the table: %s pages each time (“%s”). It reads what it skips, so the cost grows with the backlog.", quantity.Short(c.perReads), what),
				"page by keyset: id > the last one read")
		case countAll.MatchString(c.text) && c.perReads > 1000:
			sec.find(Warn, fmt.Sprintf("A COUNT reads %s pages each time, %s so far (“%s”).", quantity.Short(c.perReads), quantity.Of(c.executions, "time"), what),
				"take counts from sys.partitions, or from the worker's metrics")
		}
	}
}

func statementsTable(all []costs, total int64, top int) Table {
	t := Table{
		Title: "Statements that touch the outbox, by CPU",
		Columns: []Column{
			{"statement", Text},
			{"runs", Count},
			{"of all CPU", Percent},
			{"CPU each", Milliseconds},
			{"time each", Milliseconds},
			{"pages each", Pages},
			{"rows each", Count},
			{"log each", Bytes},
			{"from disk", Pages},
			{"plans", Count},
		},
	}
	for _, c := range slices.Clip(all[:min(top, len(all))]) {
		n := float64(c.executions)
		var logged any
		if c.logKnown {
			logged = c.logBytes
		}
		t.Rows = append(t.Rows, []any{
			c.label, c.executions, 100 * ratio(float64(c.worker), float64(total)), c.perWorker / 1000, c.perElapsed / 1000,
			c.perReads, ratio(float64(c.got), n), logged, ratio(float64(c.physical), n), int64(c.plans),
		})
	}
	return t
}
