package sizing

import (
	"fmt"

	"azsqloutbox/internal/quantity"
)

// assumptions are what a plan rests on, as sentences.
func (w Workload) assumptions() []string {
	text, index := "VARCHAR: one byte a character for ASCII", "covers the claim: the payload is in the log four times"
	if w.Unicode {
		text = "NVARCHAR: two bytes a character"
	}
	if w.SlimClaimIndex {
		index = "is slim: one key lookup an event instead of the payload in the log twice more"
	}
	receive := "one receiver an event"
	if w.Subscriptions > 0 {
		receive = fmt.Sprintf("a topic with %s and a filter each", quantity.Of(w.Subscriptions, "subscription"))
	}
	return []string{
		fmt.Sprintf("limits are planned with to %.0f %%; those of Azure SQL are of single databases on Gen5 as documented, the database's own are in sys.dm_user_db_resource_governance", Utilization*100),
		"the database carries nothing but the outbox: add what your own data takes of log, memory and CPU",
		fmt.Sprintf("payload and headers are %s; aggregates and event type take %d bytes", text, aggregateBytes+eventTypeBytes),
		"the claim index " + index,
		fmt.Sprintf("the purge runs once a day, so rows of %s and a day are there; storage is without row versions, backups and the rest of the database", quantity.Span(w.Retention)),
		fmt.Sprintf("the hot part is the backlog of %s at the peak, row and index entry, and the upper levels of the primary key; what was sent is read once more, by the purge", quantity.Span(w.Outage)),
		fmt.Sprintf("an event takes %.0f µs of the database's CPU, extrapolated from one measured claim: measure it with outboxctl diagnose", cpuPerEvent*1e6),
		fmt.Sprintf("Service Bus: %s; a message is %d bytes with its properties; Standard has %d credits a second, a messaging unit about %.0f MB/s in plus out, less with sessions or duplicate detection", receive, w.messageBytes(), StandardCredits, unitBytesPerSecond/1e6),
		fmt.Sprintf("a replica of %v vCPU moves what docs/performance.md measured with as much, and there is one replica more than that needs", replicaCores),
	}
}
