package servicebus

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"azsqloutbox/worker"
)

// What was not answered here, and what failed anywhere before, goes out apart
// from the rest.
func TestDoubtsDivide(t *testing.T) {
	events := []worker.Event{{ID: 1}, {ID: 2, RetryCount: 1}, {ID: 3}, {ID: 4}}
	var d doubts
	divided := func(which ...int) string {
		clean, doubted, broke := d.divide(events, which)
		return fmt.Sprint(clean, doubted, broke)
	}
	if got, want := divided(0, 2, 3), "[0 2 3] [] false"; got != want {
		t.Errorf("without a doubt: %s, want %s", got, want)
	}
	if got, want := divided(0, 1, 2), "[0 2] [1] true"; got != want {
		t.Errorf("with one that failed before: %s, want %s", got, want)
	}
	d.add(events, []int{2, 3}, 7, false)
	if got, want := divided(0, 2, 3), "[0] [2 3] false"; got != want {
		t.Errorf("with two that were not answered: %s, want %s", got, want)
	}
	d.add(events, []int{3}, 9, true)
	if got, want := divided(0, 2, 3), "[0] [2 3] true"; got != want {
		t.Errorf("with one under which a connection broke: %s, want %s", got, want)
	}
	if known, _ := d.of(4); known.before != 7 || known.alone != 1 {
		t.Errorf("the doubt is %+v, want the first before and one try alone", known)
	}
	d.add(events, []int{3}, 9, false)
	if got, want := divided(0, 2, 3), "[0] [2 3] true"; got != want {
		t.Errorf("with one that was not answered after that: %s, want %s", got, want)
	}
	d.settle(events, []int{2, 3})
	if got, want := divided(0, 2, 3), "[0 2 3] [] false"; got != want {
		t.Errorf("once they are decided: %s, want %s", got, want)
	}
}

// What takes the whole time of a delivery, alone, is not in the way of those
// behind it a second time.
func TestDoubtsPutLastWhatFailedAlone(t *testing.T) {
	events := []worker.Event{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, RetryCount: 1}}
	all := []int{0, 1, 2, 3}
	var d doubts
	d.add(events, []int{0, 1, 2}, 0, true)
	d.add(events, []int{0, 1}, 0, true)
	for _, want := range []string{"[3 2 0 1]", "[3 2 1 0]", "[3 2 0 1]"} {
		_, doubted, _ := d.divide(events, all)
		if got := fmt.Sprint(doubted); got != want {
			t.Errorf("the order is %s, want %s", got, want)
		}
		d.add(events, doubted[2:3], 0, true)
	}
}

// What somebody else has sent, or a person has discarded, is not asked for again,
// so only its age takes it out.
func TestDoubtsForgetWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := []worker.Event{{ID: 1}, {ID: 2}}
		var d doubts
		d.add(events, []int{0}, 0, false)
		time.Sleep(forgetDoubt)
		d.add(events, []int{1}, 0, false)
		if _, doubted, _ := d.divide(events, []int{0, 1}); len(doubted) != 2 {
			t.Errorf("in doubt are %v, want both", doubted)
		}
		time.Sleep(sweepEvery - time.Second)
		if _, doubted, _ := d.divide(events, []int{0, 1}); len(doubted) != 2 {
			t.Errorf("in doubt are %v: it was looked for old ones twice in a minute", doubted)
		}
		time.Sleep(time.Second)
		if clean, doubted, _ := d.divide(events, []int{0, 1}); fmt.Sprint(clean, doubted) != "[0] [1]" {
			t.Errorf("clean are %v and in doubt %v, want the older one clean", clean, doubted)
		}
	})
}

// More doubts than that are an outage, which says nothing about a message.
func TestDoubtsAreBounded(t *testing.T) {
	events := make([]worker.Event, mostDoubts+1)
	all := make([]int, len(events))
	for i := range events {
		events[i].ID, all[i] = int64(i), i
	}
	var d doubts
	d.add(events, all[:10], 0, false)
	d.add(events, all[10:mostDoubts], 0, false)
	if _, doubted, _ := d.divide(events, all); len(doubted) != mostDoubts {
		t.Fatalf("%d are in doubt, want %d", len(doubted), mostDoubts)
	}
	d.add(events, all[mostDoubts:], 0, false)
	if _, doubted, _ := d.divide(events, all); fmt.Sprint(doubted) != fmt.Sprint(all[mostDoubts:]) {
		t.Errorf("%d are in doubt, want the last alone", len(doubted))
	}
}
