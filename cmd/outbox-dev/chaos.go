package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/internal/quantity"
	busemulator "azsqloutbox/servicebus/emulator"
)

// chaosCmd runs real workers against everything that can go wrong, and proves
// by data what came of it.
type chaosCmd struct {
	Minutes float64 `default:"3" help:"How long faults are injected; fractions are fine. What is left is moved afterwards."`
	Seed    uint64  `default:"1" help:"The same seed gives the same faults at the same times."`
	Workers int     `default:"3" help:"Worker processes."`
	Rate    int     `default:"400" help:"Events written a second."`
	JSON    bool    `name:"json" help:"Print the result as one JSON object."`
	Verbose bool    `help:"Show each fault and the workers' logs."`
}

// Validate is called by the parser.
func (c *chaosCmd) Validate() error {
	switch {
	case c.Minutes <= 0 || c.Minutes > 24*60:
		return fmt.Errorf("--minutes is %g, it may be above 0 and up to 1440", c.Minutes)
	case c.Workers < 1 || c.Workers > 16:
		return fmt.Errorf("--workers is %d, it may be 1 to 16", c.Workers)
	case c.Rate < 1 || c.Rate > 10_000:
		return fmt.Errorf("--rate is %d, it may be 1 to 10000", c.Rate)
	}
	return nil
}

// The workers' times, short so that much happens in a minute.
const (
	chaosLease       = 5 * time.Second
	chaosSendTimeout = time.Second
	chaosGrace       = 4 * time.Second
	// chaosCalm is how long everything may take to settle once the faults are
	// over: retries wait up to ten minutes, but only after many failures.
	chaosCalm = 4 * time.Minute
)

// The entities: an event's type says which, so that a fault at one of them must
// leave the other alone. There is no duplicate detection, so that every
// duplicate is seen.
const (
	chaosOrders   = "orders"
	chaosPayments = "payments"
)

var chaosRoutes = "routes:\n" +
	"  - {event-type: order-placed, entity: " + chaosOrders + "}\n" +
	"  - {event-type: order-paid, entity: " + chaosPayments + "}\n" +
	"  - {event-type: parcel-shipped, entity: " + chaosOrders + "}\n"

var chaosEntityOf = map[string]string{"order-placed": chaosOrders, "order-paid": chaosPayments, "parcel-shipped": chaosOrders}

// chaosResult is what the run prints. The numbers are of events that a
// committed transaction wrote, poison apart.
type chaosResult struct {
	Seed     uint64  `json:"seed"`
	Minutes  float64 `json:"minutes"`
	Events   int     `json:"events"`
	Received int     `json:"received"`
	Lost     int     `json:"lost"`
	// Altered are messages that are not what was written, of events that were
	// rolled back among them.
	Altered int `json:"altered"`
	// LeftBehind are rows that are not PROCESSED, and receipts.
	LeftBehind int `json:"left_behind"`
	// Duplicates are messages beyond the first of an event; the unexplained ones
	// are of events that were near no fault that can make any (blame).
	Duplicates            int `json:"duplicates"`
	UnexplainedDuplicates int `json:"unexplained_duplicates"`
	// Quiet are the events a duplicate of which would have been unexplained: the
	// sample that the number above is of.
	Quiet        int            `json:"quiet"`
	RolledBack   int            `json:"rolled_back"`
	Poison       int            `json:"poison"`
	PoisonFailed int            `json:"poison_failed"`
	BadExits     int            `json:"bad_exits"`
	CalmSeconds  float64        `json:"calm_seconds"`
	Faults       map[string]int `json:"faults"`
	// Problems are the first of each kind, in words.
	Problems []string `json:"problems"`
}

// Run injects, waits for calm, and proves.
func (c *chaosCmd) Run(ctx context.Context, s streams) error {
	chaos, err := c.start(ctx, s.err)
	if err != nil {
		return err
	}
	defer chaos.close()
	length := time.Duration(c.Minutes * float64(time.Minute))
	plan := planChaos(c.Seed, length, c.Workers)
	writing, stopWriting := context.WithCancel(ctx)
	defer stopWriting()
	written := make(chan error, 1)
	go func() { written <- chaos.write(writing, c.Rate) }()
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	go chaos.watchMachine(watching)
	begun := time.Now()
	chaos.inject(ctx, plan)
	wait(ctx, length-time.Since(begun))
	stopWriting()
	if err := <-written; err != nil {
		return err
	}
	calm, err := chaos.calmDown(ctx)
	if err != nil {
		return err
	}
	r, err := chaos.prove(ctx)
	if err != nil {
		return err
	}
	r.Seed, r.Minutes, r.CalmSeconds = c.Seed, c.Minutes, calm.Seconds()
	if err := r.print(s.out, c.JSON); err != nil {
		return err
	}
	if r.Lost+r.Altered+r.LeftBehind+r.BadExits > 0 {
		return fmt.Errorf("%d lost, %d altered, %d left behind, %s that did not stop as told", r.Lost, r.Altered, r.LeftBehind, quantity.Of(r.BadExits, "worker"))
	}
	return nil
}

func (c *chaosCmd) start(ctx context.Context, stderr io.Writer) (*chaosRun, error) {
	stack, err := local.Start(ctx, local.Config{Entities: []busemulator.Entity{
		{Name: chaosOrders, MaxSizeBytes: chaosEntityBytes}, {Name: chaosPayments, MaxSizeBytes: chaosEntityBytes},
	}})
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, errors.Join(err, stack.Close())
	}
	log := io.Discard
	if c.Verbose {
		log = stderr
	}
	chaos := &chaosRun{
		stack: stack, program: program, log: log, faults: make(map[string]int),
		// About a dozen, whatever the length, and none among the first.
		poisonEvery: max(150, int(float64(c.Rate)*c.Minutes*60)/12),
		rolledBack:  make(map[int]bool),
	}
	if err := chaos.startWorkers(ctx, c.Workers); err != nil {
		return nil, errors.Join(err, chaos.close())
	}
	chaos.poison()
	return chaos, nil
}

func (r chaosResult) print(out io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "seed %d, %g min: %s committed, %s received\n", r.Seed, r.Minutes, quantity.Of(r.Events, "event"), quantity.Grouped(r.Received))
	fmt.Fprintf(w, "lost\t%d\naltered\t%d\nleft behind\t%d\n", r.Lost, r.Altered, r.LeftBehind)
	fmt.Fprintf(w, "duplicates\t%s\nunexplained duplicates\t%d, of %s that no fault was near\n", quantity.Grouped(r.Duplicates), r.UnexplainedDuplicates, quantity.Of(r.Quiet, "event"))
	fmt.Fprintf(w, "rolled back and not sent\t%d\npoison\t%d, %d of it FAILED\n", r.RolledBack, r.Poison, r.PoisonFailed)
	fmt.Fprintf(w, "workers that did not stop as told\t%d\nsettled after the last fault in\t%.1f s\n\nfaults\n", r.BadExits, r.CalmSeconds)
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(w, "%s\t%d\n", kind, r.Faults[kind])
	}
	if len(r.Problems) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(r.Problems, "\n"))
	}
	return w.Flush()
}
