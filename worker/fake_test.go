package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	calls    map[string]int
	lease    time.Duration

	// fail is asked before the nth call of a kind; took is how long a call takes.
	fail func(call string, nth int) error
	took time.Duration
}

type fakeRow struct {
	event  Event
	status string // pending, processed, failed
	parked bool
	claim  uuid.UUID
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

func (s *fakeStore) enter(ctx context.Context, call string) error {
	s.mu.Lock()
	s.calls[call]++
	nth, fail := s.calls[call], s.fail
	s.mu.Unlock()
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

func (s *fakeStore) called(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
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

func (s *fakeStore) openReceipts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.receipts)
}

func (s *fakeStore) Pending(ctx context.Context, types []string) ([]string, error) {
	if err := s.enter(ctx, "Pending"); err != nil {
		return nil, err
	}
	return s.pendingTypes(func(t string) bool { return slices.Contains(types, t) }), nil
}

func (s *fakeStore) DiscoverPending(ctx context.Context, limit int) ([]string, error) {
	if err := s.enter(ctx, "DiscoverPending"); err != nil {
		return nil, err
	}
	return s.pendingTypes(func(string) bool { return true }), nil
}

func (s *fakeStore) pendingTypes(want func(string) bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var types []string
	for _, r := range s.rows {
		if r.status == "pending" && want(r.event.Type) && !slices.Contains(types, r.event.Type) {
			types = append(types, r.event.Type)
		}
	}
	slices.Sort(types)
	return types
}

func (s *fakeStore) Claim(ctx context.Context, req ClaimRequest) (Claim, error) {
	if err := s.enter(ctx, "Claim"); err != nil {
		return Claim{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []int64
	for id, r := range s.rows {
		if r.status == "pending" && r.event.Type == req.EventType && (!req.After.Set || id > req.After.ID) {
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
		c.Events = append(c.Events, r.event)
	}
	s.receipts[c.Receipt.ID] = c.Receipt
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
		s.rows[id].status = "pending"
	}
	for _, f := range st.Failed {
		s.rows[f.ID].status, s.rows[f.ID].parked = "failed", f.RetryIn == 0
	}
	return nil
}

func (s *fakeStore) Check(ctx context.Context) error { return s.enter(ctx, "Check") }

// EqualTypes compares as a case-insensitive collation does.
func (s *fakeStore) EqualTypes(ctx context.Context, types []string) (pairs [][2]string, err error) {
	if err := s.enter(ctx, "EqualTypes"); err != nil {
		return nil, err
	}
	for i, a := range types {
		for _, b := range types[i+1:] {
			if strings.EqualFold(a, b) {
				pairs = append(pairs, [2]string{a, b})
			}
		}
	}
	return pairs, nil
}

func (s *fakeStore) Reap(ctx context.Context) (Reaped, error) {
	if err := s.enter(ctx, "Reap"); err != nil {
		return Reaped{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var r Reaped
	for id, receipt := range s.receipts {
		if time.Now().Before(receipt.LeaseUntil) {
			continue
		}
		delete(s.receipts, id)
		r.Receipts++
		for _, id := range receipt.EventIDs {
			s.rows[id].status = "pending"
			r.Returned++
		}
	}
	return r, nil
}

func (s *fakeStore) RetryDue(ctx context.Context) (int, error) { return 0, s.enter(ctx, "RetryDue") }

func (s *fakeStore) Heartbeat(ctx context.Context, _ Heartbeat) error {
	return s.enter(ctx, "Heartbeat")
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
	for id := range int64(n) {
		if got := j.sent[id+1]; got != 1 {
			return fmt.Errorf("event %d was sent %d times, want once", id+1, got)
		}
	}
	return nil
}
