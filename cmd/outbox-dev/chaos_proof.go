package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/servicebus"
	busemulator "azsqloutbox/servicebus/emulator"
)

// storedEvent is a row as it lies in the table at the end: whatever a writer was
// told, this is what was committed.
type storedEvent struct {
	id       int64
	n        int
	status   int64
	attempts int64
	created  time.Time
	failed   string
}

const (
	// trickle is what is written a second while poison is still undecided: only
	// what passes beside it gives it away.
	trickle  = 20
	calmPoll = 200 * time.Millisecond
)

// calmDown waits until all poison has been found out, then until all else is
// sent, and stops the workers.
func (c *chaosRun) calmDown(ctx context.Context) (took time.Duration, err error) {
	begun := time.Now()
	writing, stopWriting := context.WithCancel(ctx)
	defer stopWriting()
	written := make(chan error, 1)
	go func() { written <- c.write(writing, trickle) }()
	decided, err := c.await(ctx, begun, anyReceipts, func(e storedEvent) bool {
		return c.poisonOf(e.n) == sound || e.status == 2 || e.attempts > 0 // PROCESSED it may be in flight only
	})
	stopWriting()
	if err := errors.Join(err, <-written); err != nil {
		return 0, err
	}
	if !decided {
		c.problem("not all poison was found out in time")
	}
	// A claimed row is PROCESSED before it is sent; only its receipt tells.
	_, err = c.await(ctx, begun, 0, func(e storedEvent) bool { return c.poisonOf(e.n) != sound || e.status == 1 })
	if err != nil {
		return 0, err
	}
	took = time.Since(begun)
	for _, w := range c.workers {
		w.mu.Lock()
		w.over = true
		w.stop()
		w.mu.Unlock()
	}
	return took, nil
}

// anyReceipts is more than there can be.
const anyReceipts = 1 << 30

// await looks at the table until every row is as wanted and there are not more
// receipts; false when the time is over.
func (c *chaosRun) await(ctx context.Context, begun time.Time, receipts int, wanted func(storedEvent) bool) (bool, error) {
	for time.Since(begun) < chaosCalm {
		events, open, err := c.stored(ctx)
		if err != nil {
			return false, err
		}
		if open <= receipts && !slices.ContainsFunc(events, func(e storedEvent) bool { return !wanted(e) }) {
			return true, nil
		}
		if !wait(ctx, calmPoll) {
			return false, errors.New("interrupted before the proof")
		}
	}
	return false, nil
}

// One statement, so that rows and receipts are of the same moment.
const storedSQL = `SELECT /* outbox:ChaosStored */ e.id, LEFT(e.payload, 40) AS head, e.status, e.created_at, ISNULL(e.last_error, '') AS last_error, e.retry_count
FROM   dbo.outbox_event AS e
UNION ALL
SELECT NULL, '', 0, r.claimed_at, '', 0
FROM   dbo.outbox_event_claim AS r;`

// stored reads the rows, and counts the receipts, past the network and the
// faults.
func (c *chaosRun) stored(ctx context.Context) (events []storedEvent, receipts int, err error) {
	sets, err := c.stack.SQL.Exec(ctx, storedSQL)
	if err != nil {
		return nil, 0, err
	}
	events = make([]storedEvent, 0, len(sets[0].Rows))
	for _, row := range sets[0].Rows {
		if row[0] == nil {
			receipts++
			continue
		}
		n, err := number([]byte(row[1].(string)))
		if err != nil {
			return nil, 0, fmt.Errorf("row %v: %w", row[0], err)
		}
		events = append(events, storedEvent{
			id: row[0].(int64), n: n, status: row[2].(int64), created: row[3].(time.Time), failed: row[4].(string), attempts: row[5].(int64),
		})
	}
	return events, receipts, nil
}

// prove compares every row with every message.
func (c *chaosRun) prove(ctx context.Context) (chaosResult, error) {
	events, receipts, err := c.stored(ctx)
	if err != nil {
		return chaosResult{}, err
	}
	byNumber := make(map[int]storedEvent, len(events))
	for _, e := range events {
		byNumber[e.n] = e
	}
	c.mu.Lock()
	r := chaosResult{Faults: c.faults, RolledBack: len(c.rolledBack), BadExits: c.badExits}
	c.mu.Unlock()
	arrived, end := c.arrivals(byNumber, &r), time.Now()
	for _, e := range events {
		if c.poisonOf(e.n) != sound {
			r.Poison++
			switch {
			case e.status == 2:
				r.PoisonFailed++
			case e.status == 1 && len(arrived[e.n]) == 0:
				r.Lost++
				c.problem(fmt.Sprintf("poison %d (row %d) is PROCESSED and was never received", e.n, e.id))
			}
			continue
		}
		r.Events++
		if e.status != 1 {
			r.LeftBehind++
			c.problem(fmt.Sprintf("event %d (row %d) has status %d at the end: %s", e.n, e.id, e.status, e.failed))
		}
		times := arrived[e.n]
		if len(times) == 0 {
			r.Lost++
			c.problem(fmt.Sprintf("event %d (row %d, written %s) was never received", e.n, e.id, e.created.Format(time.RFC3339Nano)))
			continue
		}
		r.Received++
		r.Duplicates += len(times) - 1
		entity := chaosEntityOf[chaosSamples.event(e.n).EventType]
		for i, again := range times[1:] {
			if !c.explained(entity, times[:i+1], again) {
				r.UnexplainedDuplicates++
				c.problem(fmt.Sprintf("event %d was received from %s at %s and at %s, and no fault explains it",
					e.n, entity, times[i].Format(time.RFC3339Nano), again.Format(time.RFC3339Nano)))
			}
		}
		if !c.explained(entity, times[:1], end) {
			r.Quiet++
		}
	}
	if receipts > 0 {
		r.LeftBehind += receipts
		c.problem(fmt.Sprintf("left in the end: %s", quantity.Of(receipts, "receipt")))
	}
	r.Problems = slices.Clone(c.problems)
	if r.Problems == nil {
		r.Problems = []string{}
	}
	return r, nil
}

// arrivals are the times at which each event was received, in order.
func (c *chaosRun) arrivals(events map[int]storedEvent, r *chaosResult) map[int][]time.Time {
	arrived := make(map[int][]time.Time, len(events))
	for _, entity := range []string{chaosOrders, chaosPayments} {
		for _, m := range c.stack.Bus.Messages(entity) {
			n, err := c.checkMessage(events, m, entity)
			if err != nil {
				r.Altered++
				c.problem(fmt.Sprintf("message %s of %s: %v", m.MessageID, entity, err))
				continue
			}
			arrived[n] = append(arrived[n], m.EnqueuedAt)
		}
	}
	for _, times := range arrived {
		slices.SortFunc(times, time.Time.Compare)
	}
	return arrived
}

func (c *chaosRun) checkMessage(events map[int]storedEvent, m busemulator.Message, entity string) (int, error) {
	n, err := number(m.Body)
	if err != nil {
		return 0, err
	}
	stored, committed := events[n]
	want := chaosSamples.event(n)
	switch {
	case !committed:
		return 0, fmt.Errorf("event %d was never committed", n)
	case !bytes.Equal(m.Body, want.Payload):
		return 0, fmt.Errorf("the payload of event %d was altered", n)
	case m.Subject != want.EventType || chaosEntityOf[m.Subject] != entity:
		return 0, fmt.Errorf("event %d has the subject %q", n, m.Subject)
	case m.MessageID != servicebus.MessageID(source, stored.id, stored.created):
		return 0, fmt.Errorf("event %d has another id than %s", n, servicebus.MessageID(source, stored.id, stored.created))
	case m.ApplicationProperties["tenant"] != tenant(n) || m.ApplicationProperties["sequence"] != int64(n):
		return 0, fmt.Errorf("event %d has the properties %v", n, m.ApplicationProperties)
	}
	return n, nil
}
