package worker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// claimOf is a claim of the ids from first to last.
func claimOf(first, last int64, more bool) Claim {
	var c Claim
	for id := first; id <= last; id++ {
		c.Events = append(c.Events, Event{ID: id})
	}
	c.More = more
	return c
}

func draw(t *testing.T, s *schedule) round {
	t.Helper()
	r, ok := s.next(nobody)
	if !ok {
		t.Fatal("the cycle is over, want a round")
	}
	return r
}

func drawNothing(t *testing.T, s *schedule) {
	t.Helper()
	if r, ok := s.next(nobody); ok {
		t.Fatalf("got a round of %q, want the cycle to be over", r.eventType)
	}
	if s.open(nobody) {
		t.Fatal("open says that there is a round, next does not")
	}
}

// nobody is held back.
func nobody(string) bool { return false }

func TestScheduleTurnsBetweenTypes(t *testing.T) {
	s := newSchedule(2, 0)
	s.begin([]string{"a", "b"}, 5, nil)
	var order []string
	for range 4 {
		r := draw(t, s)
		order = append(order, r.eventType)
		s.done(r, claimOf(1, 5, true))
	}
	if diff := cmp.Diff([]string{"a", "b", "a", "b"}, order); diff != "" {
		t.Errorf("order of rounds (-want +got):\n%s", diff)
	}
	drawNothing(t, s) // both have used their two rounds
}

func TestScheduleKeysetLivesOneCycle(t *testing.T) {
	s := newSchedule(3, 0)
	s.begin([]string{"a"}, 5, nil)
	r := draw(t, s)
	if r.after.Set {
		t.Errorf("the first round of a cycle reads above %d, want no bound", r.after.ID)
	}
	s.done(r, claimOf(1, 10, true))
	if r = draw(t, s); r.after != After(10) {
		t.Errorf("the second round reads above %+v, want above 10", r.after)
	}
	s.done(r, claimOf(11, 20, true))
	s.begin([]string{"a"}, 5, nil)
	if r = draw(t, s); r.after.Set {
		t.Errorf("the new cycle reads above %d, want no bound: a lower id may have been committed since", r.after.ID)
	}
}

func TestScheduleCursorNeverMovesDown(t *testing.T) {
	s := newSchedule(10, 0)
	s.begin([]string{"a"}, 5, nil)
	s.done(draw(t, s), claimOf(1, 10, true))
	low, high := draw(t, s), draw(t, s)
	s.done(high, claimOf(21, 30, true))
	s.done(low, claimOf(11, 20, true))
	if r := draw(t, s); r.after != After(30) {
		t.Errorf("the cursor is at %+v, want 30", r.after)
	}
}

func TestScheduleShortClaimEndsType(t *testing.T) {
	s := newSchedule(20, 0)
	s.begin([]string{"a"}, 5, nil)
	s.done(draw(t, s), claimOf(1, 3, false))
	drawNothing(t, s)
	if got := s.claimed(); got != 3 {
		t.Errorf("claimed in this cycle: %d, want 3", got)
	}
}

func TestScheduleSecondLaneJoinsDeepTypesOnly(t *testing.T) {
	s := newSchedule(20, 0)
	s.begin([]string{"a"}, 5, nil)
	first := draw(t, s)
	drawNothing(t, s) // nobody knows yet whether there is more than one claim
	s.done(first, claimOf(1, 5, true))
	select {
	case <-s.deepened:
	default:
		t.Error("the waiting lane was not woken when the type turned out deep")
	}
	draw(t, s)
	draw(t, s) // and now both lanes are on it
}

func TestScheduleDepthOutlivesTheCycle(t *testing.T) {
	s := newSchedule(1, 0)
	s.begin([]string{"a"}, 5, nil)
	s.done(draw(t, s), claimOf(1, 5, true))
	s.maxRounds = 5
	s.begin([]string{"a"}, 5, nil)
	draw(t, s)
	draw(t, s)
}

// A type whose last claim came back short begins the next cycle with one lane.
func TestScheduleDepthEndsWithAShortClaim(t *testing.T) {
	s := newSchedule(5, 0)
	s.begin([]string{"a"}, 5, nil)
	s.done(draw(t, s), claimOf(1, 5, true))
	s.done(draw(t, s), claimOf(6, 7, false))
	s.begin([]string{"a"}, 5, nil)
	draw(t, s)
	drawNothing(t, s)
}

func TestScheduleIgnoresRoundsOfAnEarlierCycle(t *testing.T) {
	s := newSchedule(5, 0)
	s.begin([]string{"a"}, 5, nil)
	old := draw(t, s)
	s.begin([]string{"a"}, 5, nil)
	s.done(old, claimOf(1, 5, false))
	if r := draw(t, s); r.after.Set {
		t.Errorf("an old round moved the new cycle's cursor to %d", r.after.ID)
	}
}

func TestScheduleProbeIsOneSmallClaim(t *testing.T) {
	s := newSchedule(20, 0)
	s.begin([]string{"down", "up"}, 500, func(eventType string) (Cursor, bool) { return After(7), eventType == "down" })
	batches := map[string][]int{}
	for range 4 {
		r := draw(t, s)
		batches[r.eventType] = append(batches[r.eventType], r.batch)
		if r.eventType == "down" && r.after != After(7) {
			t.Errorf("the probe begins at %+v", r.after)
		}
		s.done(r, claimOf(1, 5, true))
	}
	want := map[string][]int{"down": {probeBatch}, "up": {500, 500, 500}}
	if diff := cmp.Diff(want, batches); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestScheduleRestEndsATypeInMidCycle(t *testing.T) {
	s := newSchedule(20, 0)
	s.begin([]string{"a"}, 5, nil)
	s.done(draw(t, s), claimOf(1, 5, true))
	draw(t, s)
	s.rest(func(eventType string) bool { return eventType == "a" })
	drawNothing(t, s)
	s.begin([]string{"a"}, 5, nil)
	draw(t, s)
	drawNothing(t, s) // that it was deep is forgotten
}
