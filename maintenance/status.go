package maintenance

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

const (
	// statusTypes is how many event types one request counts, and statusScans how
	// many such requests a status makes.
	statusTypes = 1000
	statusScans = 20
	// statusReceipts bounds how many claims it names; the oldest come first.
	statusReceipts = 50
	// failedByTypeCap is where counting failed events by type stops: the retry
	// index does not hold the type, so that each costs a key lookup.
	failedByTypeCap = 1000
	// workerLiveFor is how long after its last heartbeat a worker counts as living, and
	// how far ahead of the database's clock that may lie: not at all but for the clock
	// of another replica.
	workerLiveFor = 3 * worker.DefaultHeartbeatEvery
)

// Status is what waits in an outbox, who works on it and what stands in the way.
type Status struct {
	Table string `json:"table"`
	// At is the database's clock.
	At time.Time `json:"at"`
	// Pending is the row count of the claim index by the catalog, approximate.
	Pending int64 `json:"pending"`
	// OldestPendingSeconds is the largest of the event types' ages.
	OldestPendingSeconds float64 `json:"oldest_pending_seconds"`
	// InFlight is claimed and not settled; Waiting is FAILED with a time to come
	// back, Parked is FAILED without. Both are
	// counted up to worker.BacklogCountCap.
	InFlight int64 `json:"in_flight"`
	Waiting  int64 `json:"waiting"`
	Parked   int64 `json:"parked"`
	// EventsPerSecond is what the living workers said of the ten seconds before
	// their last heartbeat.
	EventsPerSecond float64             `json:"events_per_second"`
	EventTypes      []EventTypeStatus   `json:"event_types"`
	Receipts        []ReceiptStatus     `json:"receipts"`
	OpenReceipts    int                 `json:"open_receipts"`
	Workers         []WorkerStatus      `json:"workers"`
	Destinations    []DestinationStatus `json:"destinations"`
	Pauses          []PauseStatus       `json:"pauses"`
	// Warnings are what a person should look at.
	Warnings []string `json:"warnings"`

	faults int
}

// Faults are those of the warnings that are about workers and their settings, not
// about events.
func (s Status) Faults() []string { return s.Warnings[:s.faults] }

// EventTypeStatus is one event type's share. Pending is exact, or, where
// PendingCapped, how many there are at least; Waiting and Parked are of the first
// thousand failed events.
type EventTypeStatus struct {
	EventType       string  `json:"event_type"`
	Pending         int64   `json:"pending"`
	PendingCapped   bool    `json:"pending_capped"`
	OldestSeconds   float64 `json:"oldest_seconds"`
	InFlight        int64   `json:"in_flight"`
	Waiting         int64   `json:"waiting"`
	Parked          int64   `json:"parked"`
	EventsPerSecond float64 `json:"events_per_second"`
}

// ReceiptStatus is one claim that is not settled.
type ReceiptStatus struct {
	ClaimID    string  `json:"claim_id"`
	Owner      string  `json:"owner"`
	EventType  string  `json:"event_type"`
	Events     int     `json:"events"`
	AgeSeconds float64 `json:"age_seconds"`
	// LeaseLeftSeconds is negative once any worker may reap it.
	LeaseLeftSeconds float64 `json:"lease_left_seconds"`
}

// WorkerStatus is one row of the worker table.
type WorkerStatus struct {
	Owner        string  `json:"owner"`
	Version      string  `json:"version"`
	Source       string  `json:"source"`
	LeaseSeconds float64 `json:"lease_seconds"`
	Lanes        int     `json:"lanes"`
	InFlight     int     `json:"in_flight"`
	UpSeconds    float64 `json:"up_seconds"`
	// SeenAt is its last heartbeat. A worker that stops takes its row away, so one
	// that is not Live has been silent since then: killed, or cut off.
	SeenAt         time.Time `json:"seen_at"`
	SeenSecondsAgo float64   `json:"seen_seconds_ago"`
	Live           bool      `json:"live"`
	// Paused says that it was started with --paused and waits for resume --all; a
	// pause by a person is in Pauses.
	Paused          bool    `json:"paused"`
	EventsPerSecond float64 `json:"events_per_second"`
	// Trouble is what of its work in the database it could not do at its last
	// heartbeat; empty where it could.
	Trouble  string           `json:"trouble"`
	Breakers []worker.Breaker `json:"breakers"`
	// Destinations are the queues and topics that its routes lead to; none where it
	// does not say, as a version from before this column.
	Destinations []string `json:"destinations"`

	rates map[string]float64
	// unrouted are event types that it has no route for.
	unrouted []string
	// unreadable says that another version may have written the breakers.
	unreadable bool
}

// DestinationStatus is a queue or topic that some living worker cannot publish
// to. State and Error are of the worker that is worst off.
type DestinationStatus struct {
	Destination string              `json:"destination"`
	State       worker.BreakerState `json:"state"`
	Since       time.Time           `json:"since"`
	Failures    int                 `json:"failures"`
	Error       string              `json:"error"`
	EventTypes  []string            `json:"event_types"`
	Workers     []string            `json:"workers"`
}

// PauseStatus is a pause that is in force.
type PauseStatus struct {
	Scope  worker.Scope `json:"scope"`
	Name   string       `json:"name"`
	By     string       `json:"by"`
	Reason string       `json:"reason"`
	Since  time.Time    `json:"since"`
}

const workersSQL = `DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
SELECT /* outbox:Workers */ w.owner, w.version, w.source, w.lease_ms, w.lanes, w.in_flight, w.breakers, w.rates, w.state, w.seen_at,
       DATEDIFF_BIG(MILLISECOND, w.started_at, @now) AS up_ms,
       DATEDIFF_BIG(MILLISECOND, w.seen_at, @now) AS seen_ms
FROM   {workers} AS w
ORDER BY w.owner;
SELECT /* outbox:Workers */ @now AS now;`

// A row a claim in flight: a page or two.
const receiptsSQL = `DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
SELECT /* outbox:Receipts */ CONVERT(CHAR(36), r.claim_id) AS claim_id, r.owner, CAST(r.event_type AS NVARCHAR(4000)) AS event_type, r.event_count,
       DATEDIFF_BIG(MILLISECOND, r.claimed_at, @now) AS age_ms,
       DATEDIFF_BIG(MILLISECOND, @now, r.lease_until) AS left_ms
FROM   {receipts} AS r
ORDER BY r.claimed_at, r.claim_id;`

const pausesSQL = `SELECT /* outbox:Pauses */ c.scope, c.name, c.changed_by, ISNULL(c.reason, N'') AS reason, c.changed_at
FROM   {controls} AS c
WHERE  c.paused = 1
ORDER BY c.scope, c.name
OPTION (RECOMPILE);`

const failedByTypeSQL = `SELECT /* outbox:FailedByType */ f.event_type,
       SUM(CASE WHEN f.retry_at IS NULL THEN 1 ELSE 0 END) AS parked,
       SUM(CASE WHEN f.retry_at IS NULL THEN 0 ELSE 1 END) AS waiting
FROM   (SELECT TOP (@cap) ISNULL(CAST(e.event_type AS NVARCHAR(4000)), N'') AS event_type, e.retry_at
        FROM   {events} AS e WITH (INDEX({retry_index}))
        WHERE  e.status = 2
        ORDER BY e.retry_at, e.id) AS f
GROUP BY f.event_type
OPTION (MAXDOP 1);`

// ReadStatus asks the table: seeks and capped counts, however much it holds.
func ReadStatus(ctx context.Context, t Target) (Status, error) {
	s := Status{Table: t.Names.String(), EventTypes: []EventTypeStatus{}, Destinations: []DestinationStatus{}, Receipts: []ReceiptStatus{}, Workers: []WorkerStatus{}, Pauses: []PauseStatus{}, Warnings: []string{}}
	if err := t.Validate(); err != nil {
		return s, err
	}
	t = t.withDefaults()
	c := t.connectToRead()
	defer c.close()
	types := make(map[string]*EventTypeStatus)
	for _, read := range []func(context.Context, *sql.Conn, Target, map[string]*EventTypeStatus) error{
		s.readWorkers, s.readReceipts, s.readPauses, s.readFailed,
	} {
		err := c.do(ctx, "read the status of "+t.Names.String(), func(ctx context.Context, conn *sql.Conn) error {
			return read(ctx, conn, t, types)
		})
		if err != nil {
			return s, err
		}
	}
	if err := s.readBacklog(ctx, t, types); err != nil {
		return s, err
	}
	s.conclude(types)
	return s, nil
}

func ofType(types map[string]*EventTypeStatus, eventType string) *EventTypeStatus {
	if types[eventType] == nil {
		types[eventType] = &EventTypeStatus{EventType: eventType}
	}
	return types[eventType]
}

func (s *Status) readWorkers(ctx context.Context, conn *sql.Conn, t Target, types map[string]*EventTypeStatus) error {
	rows, err := conn.QueryContext(ctx, t.Replacer().Replace(workersSQL))
	if err != nil {
		return err
	}
	defer rows.Close()
	s.Workers = s.Workers[:0]
	for rows.Next() {
		var w WorkerStatus
		var leaseMS, upMS, seenMS int64
		var breakers, rates, state sql.NullString
		if err := rows.Scan(&w.Owner, &w.Version, &w.Source, &leaseMS, &w.Lanes, &w.InFlight, &breakers, &rates, &state, &w.SeenAt, &upMS, &seenMS); err != nil {
			return err
		}
		w.LeaseSeconds, w.UpSeconds, w.SeenSecondsAgo = seconds(leaseMS), seconds(upMS), seconds(seenMS)
		w.Live = math.Abs(w.SeenSecondsAgo) <= workerLiveFor.Seconds()
		w.Breakers = []worker.Breaker{}
		// What another version wrote in another form is no reason to fail.
		w.unreadable = breakers.Valid && json.Unmarshal([]byte(breakers.String), &w.Breakers) != nil
		_ = json.Unmarshal([]byte(rates.String), &w.rates)
		var said sqlserver.WorkerState
		_ = json.Unmarshal([]byte(state.String), &said)
		w.Paused, w.Trouble, w.Destinations, w.unrouted = said.Paused, said.Trouble, append([]string{}, said.Destinations...), said.Unrouted
		for _, perSecond := range w.rates {
			w.EventsPerSecond += perSecond
		}
		s.Workers = append(s.Workers, w)
	}
	if !rows.NextResultSet() || !rows.Next() {
		return cmp.Or(rows.Err(), errors.New("the answer ended before the database's clock"))
	}
	return rows.Scan(&s.At)
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }

func (s *Status) readReceipts(ctx context.Context, conn *sql.Conn, t Target, types map[string]*EventTypeStatus) error {
	rows, err := conn.QueryContext(ctx, t.Replacer().Replace(receiptsSQL))
	if err != nil {
		return err
	}
	defer rows.Close()
	s.Receipts, s.OpenReceipts, s.InFlight = s.Receipts[:0], 0, 0
	for _, e := range types {
		e.InFlight = 0
	}
	for rows.Next() {
		var r ReceiptStatus
		var ageMS, leftMS int64
		if err := rows.Scan(&r.ClaimID, &r.Owner, &r.EventType, &r.Events, &ageMS, &leftMS); err != nil {
			return err
		}
		r.AgeSeconds, r.LeaseLeftSeconds = seconds(ageMS), seconds(leftMS)
		s.OpenReceipts++
		s.InFlight += int64(r.Events)
		ofType(types, r.EventType).InFlight += int64(r.Events)
		if len(s.Receipts) < statusReceipts {
			s.Receipts = append(s.Receipts, r)
		}
	}
	return rows.Err()
}

func (s *Status) readPauses(ctx context.Context, conn *sql.Conn, t Target, _ map[string]*EventTypeStatus) error {
	rows, err := conn.QueryContext(ctx, t.Replacer().Replace(pausesSQL))
	if err != nil {
		return err
	}
	defer rows.Close()
	s.Pauses = s.Pauses[:0]
	for rows.Next() {
		var p PauseStatus
		if err := rows.Scan(&p.Scope, &p.Name, &p.By, &p.Reason, &p.Since); err != nil {
			return err
		}
		s.Pauses = append(s.Pauses, p)
	}
	return rows.Err()
}

func (s *Status) readFailed(ctx context.Context, conn *sql.Conn, t Target, types map[string]*EventTypeStatus) error {
	rows, err := conn.QueryContext(ctx, t.Replacer().Replace(failedByTypeSQL), sql.Named("cap", failedByTypeCap))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var eventType string
		var parked, waiting int64
		if err := rows.Scan(&eventType, &parked, &waiting); err != nil {
			return err
		}
		e := ofType(types, eventType)
		e.Parked, e.Waiting = parked, waiting
	}
	return rows.Err()
}

// readBacklog asks as the workers do.
func (s *Status) readBacklog(ctx context.Context, t Target, types map[string]*EventTypeStatus) error {
	store, err := sqlserver.New(sqlserver.Config{DB: t.DB, Names: t.Names, Owner: "outboxctl", LockTimeout: t.LockTimeout, Logger: t.Logger})
	if err != nil {
		return err
	}
	defer store.Close()
	var from worker.ScanPosition
	for range statusScans {
		pending, next, err := store.DiscoverPending(ctx, from, statusTypes)
		if err != nil {
			return err
		}
		backlog, err := store.Backlog(ctx, pending)
		if err != nil {
			return err
		}
		s.Pending, s.Waiting, s.Parked = backlog.Total, backlog.Waiting, backlog.Parked
		for _, b := range backlog.Types {
			e := ofType(types, b.EventType)
			e.Pending, e.PendingCapped, e.OldestSeconds = b.Pending, b.Capped, b.OldestAge.Seconds()
		}
		if from = next; next == nil {
			return nil
		}
	}
	t.Logger.Warn("more event types are pending than a status names", zap.Int("named", statusScans*statusTypes))
	return nil
}
