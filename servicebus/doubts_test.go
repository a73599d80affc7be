package servicebus

import (
	"fmt"
	"testing"

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
