package worker

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// fakeStore is a table in memory, for the loop's own logic. What a database
// does is proved by the store's suite; here every call can be made to fail or
// to take time.
type fakeStore struct {
	mu       sync.Mutex
	rows     map[int64]*fakeRow
	receipts map[uuid.UUID]Receipt
	next     int64
	claimed  int
	calls    map[string]int
	lease    time.Duration

	// fail is asked before the nth call of a kind; took is how long a call takes.
	fail func(call string, nth int) error
	took time.Duration
	// hang keeps a call until its context ends.
	hang func(call string) bool
	// beat is the last heartbeat, controls are what heartbeats return.
	beat     Heartbeat
	controls []Control
	// present says that a heartbeat is in the table.
	present bool
	// retryDue is what Reap says until RetryDue was called.
	retryDue bool
	// slowClaims is how long a claim takes besides, in nanoseconds.
	slowClaims atomic.Int64
	// refused are the errors of claims, by event type.
	refused map[string]error
	// foldCase makes the table's collation case-insensitive.
	foldCase bool
}

// unreadable is the event type of a receipt that Reap cannot read.
const unreadable = "unreadable"

type fakeRow struct {
	event  Event
	status string    // pending, processed, failed
	claim  uuid.UUID // the last one; it stands for the fence of the real table
}

func newFakeStore() *fakeStore {
	return &fakeStore{rows: map[int64]*fakeRow{}, receipts: map[uuid.UUID]Receipt{}, calls: map[string]int{}, lease: DefaultLease}
}

func (s *fakeStore) add(eventType string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.next++
		s.rows[s.next] = &fakeRow{event: Event{ID: s.next, Type: eventType}, status: "pending"}
	}
}

// discard makes all events of a type PROCESSED, as a person may.
func (s *fakeStore) discard(eventType string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rows {
		if r.event.Type == eventType {
			r.status = "processed"
		}
	}
}

// retry makes the events first to last PENDING again, as a person may.
func (s *fakeStore) retry(first, last int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := first; id <= last; id++ {
		s.rows[id].status = "pending"
	}
}

func (s *fakeStore) enter(ctx context.Context, call string) error {
	s.mu.Lock()
	s.calls[call]++
	nth, fail, hang := s.calls[call], s.fail, s.hang
	s.mu.Unlock()
	if hang != nil && hang(call) {
		<-ctx.Done()
		return ctx.Err()
	}
	if !sleep(ctx, s.took) {
		return ctx.Err()
	}
	if fail != nil {
		return fail(call, nth)
	}
	return nil
}

func (s *fakeStore) setFail(f func(call string, nth int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

func (s *fakeStore) setHang(f func(call string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hang = f
}

// fails has every call of a kind fail, failsFirst the first n.
func (s *fakeStore) fails(call string, err error) { s.failsFirst(call, math.MaxInt, err) }

func (s *fakeStore) failsFirst(call string, n int, err error) {
	s.setFail(func(c string, nth int) error {
		if c == call && nth <= n {
			return err
		}
		return nil
	})
}

// stick keeps the nth call of a kind for so long, whatever its context says.
func (s *fakeStore) stick(call string, nth int, d time.Duration) {
	s.setFail(func(c string, n int) error {
		if c == call && n == nth {
			time.Sleep(d)
		}
		return nil
	})
}

// same compares as the column does.
func (s *fakeStore) same(a, b string) bool { return s.folded(a) == s.folded(b) }

func (s *fakeStore) folded(t string) string {
	if s.foldCase {
		return strings.ToLower(t)
	}
	return t
}

func (s *fakeStore) called(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

// requests is how many calls there were of all kinds.
func (s *fakeStore) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, calls := range s.calls {
		n += calls
	}
	return n
}

func (s *fakeStore) count(status string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.rows {
		if r.status == status {
			n++
		}
	}
	return n
}

// claimedEvents counts events in claims, each as often as it was claimed.
func (s *fakeStore) claimedEvents() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimed
}

func (s *fakeStore) openReceipts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.receipts)
}

func (s *fakeStore) Pending(ctx context.Context, types []string) ([]string, error) {
	if err := s.enter(ctx, "Pending"); err != nil {
		return nil, err
	}
	waiting := make(map[string]bool)
	for _, t := range s.pendingTypes() {
		waiting[s.folded(t)] = true
	}
	var pending []string
	for _, t := range types {
		if waiting[s.folded(t)] {
			pending = append(pending, t)
		}
	}
	return pending, nil
}

func (s *fakeStore) DiscoverPending(ctx context.Context, from ScanPosition, limit int) (types []string, next ScanPosition, err error) {
	if err := s.enter(ctx, "DiscoverPending"); err != nil {
		return nil, nil, err
	}
	types = s.pendingTypes()
	if from != nil {
		types = slices.DeleteFunc(types, func(t string) bool { return t <= string(from) })
	}
	if len(types) > limit {
		types = types[:limit]
		next = ScanPosition(types[limit-1])
	}
	return types, next, nil
}

func (s *fakeStore) pendingTypes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	types := make(map[string]bool)
	for _, r := range s.rows {
		if r.status == "pending" {
			types[r.event.Type] = true
		}
	}
	return slices.Sorted(maps.Keys(types))
}

func (s *fakeStore) Claim(ctx context.Context, req ClaimRequest) (Claim, error) {
	if err := s.enter(ctx, "Claim"); err != nil {
		return Claim{}, err
	}
	if !sleep(ctx, time.Duration(s.slowClaims.Load())) {
		return Claim{}, ctx.Err()
	}
	if err := s.refused[req.EventType]; err != nil {
		return Claim{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []int64
	for id, r := range s.rows {
		if r.status == "pending" && s.same(r.event.Type, req.EventType) && (!req.After.Set || id > req.After.ID) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	more := len(ids) >= req.Batch
	ids = ids[:min(len(ids), req.Batch)]
	if len(ids) == 0 {
		return Claim{}, nil
	}
	now := time.Now()
	c := Claim{More: more, Receipt: Receipt{ID: uuid.New(), EventType: req.EventType, ClaimedAt: now, LeaseUntil: now.Add(s.lease), EventIDs: ids}}
	for _, id := range ids {
		r := s.rows[id]
		r.status, r.claim = "processed", c.Receipt.ID
		e := r.event
		e.Type = req.EventType
		c.Events = append(c.Events, e)
	}
	s.receipts[c.Receipt.ID] = c.Receipt
	s.claimed += len(ids)
	return c, nil
}

func (s *fakeStore) SettleSent(ctx context.Context, receipts []Receipt) (int, error) {
	if err := s.enter(ctx, "SettleSent"); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := 0
	for _, r := range receipts {
		if _, ok := s.receipts[r.ID]; !ok {
			lost++
		}
		delete(s.receipts, r.ID)
	}
	return lost, nil
}

func (s *fakeStore) Settle(ctx context.Context, st Settlement) error {
	if err := s.enter(ctx, "Settle"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.receipts[st.Receipt.ID]; !ok {
		return ErrLeaseLost
	}
	delete(s.receipts, st.Receipt.ID)
	for _, id := range st.Returned {
		s.move(id, st.Receipt.ID, "pending")
	}
	for _, f := range st.Failed {
		s.move(f.ID, st.Receipt.ID, "failed")
	}
	return nil
}

// move changes a row that still belongs to the claim.
func (s *fakeStore) move(id int64, claim uuid.UUID, status string) {
	if r := s.rows[id]; r.claim == claim {
		r.status = status
	}
}

func (s *fakeStore) Check(ctx context.Context) error { return s.enter(ctx, "Check") }

// EqualTypes calls types equal that differ in case alone.
func (s *fakeStore) EqualTypes(ctx context.Context, types []string) (pairs [][2]string, err error) {
	if err := s.enter(ctx, "EqualTypes"); err != nil {
		return nil, err
	}
	first := make(map[string]string, len(types))
	for _, t := range types {
		if one, was := first[strings.ToLower(t)]; was {
			pairs = append(pairs, [2]string{one, t})
		} else {
			first[strings.ToLower(t)] = t
		}
	}
	return pairs, nil
}

func (s *fakeStore) Reap(ctx context.Context) (Reaped, error) {
	err := s.enter(ctx, "Reap")
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Reaped{RetryDue: s.retryDue}
	if err != nil {
		return r, err // as of a Store that could look, and not reap
	}
	for id, receipt := range s.receipts {
		if time.Now().Before(receipt.LeaseUntil) {
			continue
		}
		if receipt.EventType == unreadable {
			r.Unreadable++
			continue
		}
		delete(s.receipts, id)
		r.Receipts++
		for _, event := range receipt.EventIDs {
			s.move(event, id, "pending")
			r.Returned++
		}
	}
	return r, nil
}

func (s *fakeStore) OpenReceipts(ctx context.Context) (int, error) {
	if err := s.enter(ctx, "OpenReceipts"); err != nil {
		return 0, err
	}
	return s.openReceipts(), nil
}

func (s *fakeStore) RetryDue(ctx context.Context) (int, error) {
	err := s.enter(ctx, "RetryDue")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retryDue = false
	return 0, err
}

func (s *fakeStore) Heartbeat(ctx context.Context, h Heartbeat) ([]Control, error) {
	err := s.enter(ctx, "Heartbeat")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beat, s.present = h, true
	return slices.Clone(s.controls), err
}

func (s *fakeStore) Leave(ctx context.Context) error {
	err := s.enter(ctx, "Leave")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present = s.present && err != nil
	return err
}

func (s *fakeStore) lastBeat() Heartbeat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beat
}

// tell is what outboxctl pause and resume do.
func (s *fakeStore) tell(list ...Control) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.controls = list
}

// publisherFunc makes a Publisher of a function.
type publisherFunc func(ctx context.Context, events []Event) []Outcome

func (f publisherFunc) Publish(ctx context.Context, events []Event) []Outcome { return f(ctx, events) }

// publishAll sends everything at once.
var publishAll = publisherFunc(func(_ context.Context, events []Event) []Outcome {
	return all(len(events), Outcome{Verdict: Sent})
})

func all(n int, o Outcome) []Outcome { return slices.Repeat([]Outcome{o}, n) }

// journal keeps what was sent, by id.
type journal struct {
	mu   sync.Mutex
	sent map[int64]int
}

func (j *journal) Publish(_ context.Context, events []Event) []Outcome {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.sent == nil {
		j.sent = map[int64]int{}
	}
	for _, e := range events {
		j.sent[e.ID]++
	}
	return all(len(events), Outcome{Verdict: Sent})
}

// check says what is wrong with the journal after n events.
func (j *journal) check(n int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.sent) != n {
		return fmt.Errorf("%d different events were sent, want %d", len(j.sent), n)
	}
	for id := range int64(n) {
		if got := j.sent[id+1]; got != 1 {
			return fmt.Errorf("event %d was sent %d times, want once", id+1, got)
		}
	}
	return nil
}

func (j *journal) times(id int64) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sent[id]
}
