package maintenance

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/worker"
)

// Text prints the status for a person.
func (s Status) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s at %s\n", Printable(s.Table), s.At.UTC().Format(time.RFC3339))
	fmt.Fprintf(w, "pending %d, oldest %s; in flight %d in %s; failed: %d waiting, %d parked; %.0f events/s\n",
		s.Pending, quantity.Age(s.OldestPendingSeconds), s.InFlight, quantity.Of(s.OpenReceipts, "claim"), s.Waiting, s.Parked, s.EventsPerSecond)
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "! %s\n", Printable(warning))
	}
	s.eventTypes(w)
	s.receipts(w)
	s.workers(w)
	s.destinations(w)
	s.pauses(w)
	return w.Flush()
}

func (s Status) pauses(w io.Writer) {
	if len(s.Pauses) > 0 {
		fmt.Fprint(w, "\npaused\tsince\tby\treason\n")
	}
	for _, p := range s.Pauses {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", controlled(p.Scope, p.Name), p.Since.UTC().Format(time.RFC3339), Printable(p.By), Printable(p.Reason))
	}
}

// controlled is what a pause is about, in words.
func controlled(scope worker.Scope, name string) string {
	switch {
	case scope == worker.ScopeAll && name == "":
		return "everything"
	case scope == worker.ScopeAll:
		return fmt.Sprintf("everything (a row named %q)", Printable(name))
	}
	return fmt.Sprintf("%s %q", Printable(string(scope)), Printable(name))
}

func (s Status) eventTypes(w io.Writer) {
	if len(s.EventTypes) > 0 {
		fmt.Fprint(w, "\nevent type\tpending\toldest\tin flight\twaiting\tparked\tevents/s\n")
	}
	for _, e := range s.EventTypes {
		pending := fmt.Sprint(e.Pending)
		if e.PendingCapped {
			pending += "+"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%.1f\n", Printable(e.EventType), pending, quantity.Age(e.OldestSeconds), e.InFlight, e.Waiting, e.Parked, e.EventsPerSecond)
	}
}

func (s Status) receipts(w io.Writer) {
	if len(s.Receipts) > 0 {
		fmt.Fprint(w, "\nclaim\towner\tevent type\tevents\tage\tlease left\n")
	}
	for _, r := range s.Receipts {
		left := quantity.Age(r.LeaseLeftSeconds)
		if r.LeaseLeftSeconds < 0 {
			left = "over since " + quantity.Age(-r.LeaseLeftSeconds)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", Printable(r.ClaimID), Printable(r.Owner), Printable(r.EventType), r.Events, since(r.AgeSeconds, ""), left)
	}
	if more := s.OpenReceipts - len(s.Receipts); more > 0 {
		fmt.Fprintf(w, "… and %d younger ones\n", more)
	}
}

func (s Status) workers(w io.Writer) {
	if len(s.Workers) > 0 {
		fmt.Fprint(w, "\nworker\tversion\tup\tseen\tlease\tlanes\tin flight\tevents/s\tstate\n")
	}
	for _, v := range s.Workers {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%.1f\t%s\n", Printable(v.Owner), Printable(v.Version), since(v.UpSeconds, ""), since(v.SeenSecondsAgo, " ago"),
			quantity.Age(v.LeaseSeconds), v.Lanes, v.InFlight, v.EventsPerSecond, v.state())
	}
}

func (v WorkerStatus) state() string {
	switch {
	case !v.Live && v.SeenSecondsAgo < 0:
		return "not live, seen ahead of the database's clock"
	case !v.Live:
		return "silent since " + v.SeenAt.UTC().Format(time.RFC3339)
	case v.Paused:
		return "paused, waits for resume --all"
	}
	return "live"
}

func (s Status) destinations(w io.Writer) {
	if len(s.Destinations) > 0 {
		fmt.Fprint(w, "\ndestination\tbreaker\tsince\tfailures\terror\n")
	}
	for _, d := range s.Destinations {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", Printable(d.Destination), Printable(string(d.State)), d.Since.UTC().Format(time.RFC3339), d.Failures, Printable(d.Error))
	}
}

// since is how long ago a time of the table is; one that lies ahead was not
// written by the database's clock. A second is what a row may be newer than the
// look that found it.
func since(seconds float64, ago string) string {
	if seconds <= -1 {
		return quantity.Age(-seconds) + " ahead"
	}
	return quantity.Age(max(0, seconds)) + ago
}
