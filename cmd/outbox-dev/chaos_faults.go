package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	busemulator "azsqloutbox/servicebus/emulator"
	sqlemulator "azsqloutbox/sqlserver/emulator"
)

const (
	chaosEntityBytes = 80 << 30
	// outageLength is an outage of a whole engine: two leases.
	outageLength = 10 * time.Second
	firedPoll    = 10 * time.Millisecond
)

// chaosFault is a kind of fault.
type chaosFault struct {
	blame blame
	do    func(ctx context.Context, c *chaosRun, s step)
}

// chaosFaults are all kinds. What lasts returns when it is over.
var chaosFaults = map[string]chaosFault{
	"worker killed":  {death, func(ctx context.Context, c *chaosRun, s step) { c.kill(ctx, s) }},
	"worker stopped": {nothing, func(ctx context.Context, c *chaosRun, s step) { c.terminate(ctx, s) }},
	"worker frozen past its lease": {late, func(ctx context.Context, c *chaosRun, s step) {
		s.length = chaosLease + s.length
		c.freeze(ctx, s)
	}},

	"database connection dropped": {nothing, func(_ context.Context, c *chaosRun, s step) {
		point := sqlemulator.DropBefore
		if s.after {
			point = sqlemulator.DropAfter
		}
		c.stack.SQL.Inject(sqlemulator.Fault{Statement: s.statement, Drop: point})
	}},
	"commit outcome unknown": {nothing, func(_ context.Context, c *chaosRun, _ step) {
		c.stack.SQL.Inject(sqlemulator.Fault{Statement: sqlemulator.Commit, Drop: sqlemulator.DropAfter})
	}},
	"deadlock": {nothing, func(_ context.Context, c *chaosRun, s step) {
		c.stack.SQL.Inject(sqlemulator.Fault{Statement: s.statement, Error: &sqlemulator.Error{
			Number: 1205, Class: 13, State: 51, Message: "Transaction was deadlocked on lock resources with another process and has been chosen as the deadlock victim.",
		}})
	}},
	"lock timeout": {nothing, func(_ context.Context, c *chaosRun, s step) {
		c.stack.SQL.Inject(sqlemulator.Fault{Statement: s.statement, Doom: true, Times: 3, Error: &sqlemulator.Error{
			Number: 1222, Class: 16, State: 51, Message: "Lock request time out period exceeded.",
		}})
	}},
	"database not available (40613)": {noSettling, func(ctx context.Context, c *chaosRun, s step) {
		c.refuseAll(ctx, s.length, &sqlemulator.Error{Number: 40613, Class: 20, State: 1, Message: "Database is not currently available."})
	}},
	"database busy (40501)": {noSettling, func(ctx context.Context, c *chaosRun, s step) {
		c.refuseAll(ctx, s.length, &sqlemulator.Error{Number: 40501, Class: 20, State: 1, Message: "The service is currently busy."})
	}},
	"database outage": {noSettling, func(ctx context.Context, c *chaosRun, _ step) {
		refusing := c.stack.SQL.Inject(sqlemulator.Fault{Statement: sqlemulator.Login, Refuse: true, Times: -1})
		c.stack.SQL.KillConnections()
		wait(ctx, outageLength)
		refusing.Remove()
	}},
	"database slow": {late, func(ctx context.Context, c *chaosRun, s step) {
		slow := c.stack.SQL.Inject(sqlemulator.Fault{Delay: 300 * time.Millisecond, Times: -1})
		wait(ctx, s.length)
		slow.Remove()
	}},

	"broker outage": {away, func(ctx context.Context, c *chaosRun, _ step) {
		c.stack.Bus.Suspend()
		wait(ctx, outageLength)
		if err := c.stack.Bus.Resume(); err != nil {
			c.problem(fmt.Sprintf("the broker did not come back: %v", err))
		}
	}},
	"broker throttles": {nothing, func(ctx context.Context, c *chaosRun, s step) {
		c.bus(ctx, s, busemulator.Fault{Kind: busemulator.ServerBusy, Duration: s.length, Times: busemulator.Forever})
	}},
	"link detached": {cut, func(ctx context.Context, c *chaosRun, s step) {
		c.bus(ctx, s, busemulator.Fault{Kind: busemulator.DetachLink, Condition: s.condition, Times: 2})
	}},
	"connection dropped before storing": {cut, func(ctx context.Context, c *chaosRun, s step) {
		c.bus(ctx, s, busemulator.Fault{Kind: busemulator.DropBeforeStore})
	}},
	"acknowledgement lost": {cut, func(ctx context.Context, c *chaosRun, s step) {
		c.bus(ctx, s, busemulator.Fault{Kind: busemulator.DropAfterStore})
	}},
	"connection dropped in a transfer": {cut, func(ctx context.Context, c *chaosRun, s step) {
		c.bus(ctx, s, busemulator.Fault{Kind: busemulator.DropInTransfer})
	}},
	"connection dropped at attach": {cut, func(ctx context.Context, c *chaosRun, s step) {
		c.bus(ctx, s, busemulator.Fault{Kind: busemulator.DropAtAttach}, c.stack.Bus.KillConnections)
	}},
	"no reply": {mute, func(ctx context.Context, c *chaosRun, s step) {
		c.bus(ctx, s, busemulator.Fault{Kind: busemulator.NoReply, Times: 2})
	}},
	"late reply": {mute, func(ctx context.Context, c *chaosRun, s step) {
		c.bus(ctx, s, busemulator.Fault{Kind: busemulator.Delay, Duration: s.length, Times: 3})
	}},
	"token expired": {cut, func(ctx context.Context, c *chaosRun, s step) {
		c.bus(ctx, s, busemulator.Fault{Kind: busemulator.ExpireToken})
	}},
	"slow credit": {mute, func(ctx context.Context, c *chaosRun, s step) {
		c.bus(ctx, s, busemulator.Fault{Kind: busemulator.SlowCredit, Duration: 50 * time.Millisecond, Times: 10})
	}},
	"entity full": {closed, func(ctx context.Context, c *chaosRun, s step) {
		c.stack.Bus.SetMaxSizeBytes(s.entity, 1)
		wait(ctx, s.length)
		c.stack.Bus.SetMaxSizeBytes(s.entity, chaosEntityBytes)
	}},
	"entity disabled": {closed, func(ctx context.Context, c *chaosRun, s step) {
		c.stack.Bus.SetStatus(s.entity, busemulator.StatusDisabled)
		wait(ctx, s.length)
		c.stack.Bus.SetStatus(s.entity, busemulator.StatusActive)
	}},
}

func chaosKinds() []string { return slices.Sorted(maps.Keys(chaosFaults)) }

// bus injects a fault at an entity, does what provokes it, and waits until it has
// happened as often as it is to. It removes what did not happen in time.
func (c *chaosRun) bus(ctx context.Context, s step, f busemulator.Fault, provoke ...func()) {
	f.Entity = s.entity
	injected := c.stack.Bus.Inject(f)
	defer injected.Remove()
	for _, do := range provoke {
		do()
	}
	over := time.Now().Add(s.length)
	for time.Now().Before(over) && (f.Times == busemulator.Forever || injected.Fired() < max(f.Times, 1)) {
		if !wait(ctx, firedPoll) {
			return
		}
	}
}

// refuseAll has every request and every login fail for a while.
func (c *chaosRun) refuseAll(ctx context.Context, length time.Duration, err *sqlemulator.Error) {
	requests := c.stack.SQL.Inject(sqlemulator.Fault{Error: err, Times: -1})
	logins := c.stack.SQL.Inject(sqlemulator.Fault{Statement: sqlemulator.Login, Error: err, Times: -1})
	wait(ctx, length)
	requests.Remove()
	logins.Remove()
}

// azservicebusPause is the longest before azservicebus tries again, which it begins
// by closing the connection where the condition is one that it does not know: 1.3
// times the RetryDelay of servicebus.
const azservicebusPause = 390 * time.Millisecond

// poison has the broker do to some messages, for ever, what no message should
// cause: an unknown condition, a broken connection, no answer.
func (c *chaosRun) poison() {
	for _, p := range []struct {
		kind  poisonKind
		fault busemulator.Fault
	}{
		{poisonRefused, busemulator.Fault{Kind: busemulator.Reject, Condition: "contoso:bad-message"}},
		{poisonBreaks, busemulator.Fault{Kind: busemulator.DropBeforeStore}},
		{poisonSwallowed, busemulator.Fault{Kind: busemulator.Swallow}},
	} {
		p.fault.Times = busemulator.Forever
		p.fault.Match = func(m busemulator.Message) bool {
			n, err := number(m.Body)
			if err != nil || c.poisonOf(n) != p.kind {
				return false
			}
			now := time.Now()
			switch p.kind { // of whatever else is on its connection
			case poisonBreaks:
				c.trouble(cut.during(now, now, ""))
			case poisonRefused: // see the package comment of servicebus
				c.trouble(cut.during(now, now.Add(azservicebusPause), ""))
			}
			return true
		}
		c.stack.Bus.Inject(p.fault)
	}
}

// inject runs the plan to its end.
func (c *chaosRun) inject(ctx context.Context, plan []step) {
	begun := time.Now()
	var lasting sync.WaitGroup
	for _, s := range plan {
		if !wait(ctx, s.at-time.Since(begun)) {
			break
		}
		f := chaosFaults[s.kind]
		fmt.Fprintf(c.log, "chaos: %6.2f s %s\n", time.Since(begun).Seconds(), s.kind)
		lasting.Go(func() {
			from := time.Now()
			f.do(ctx, c, s)
			c.happened(s.kind)
			c.trouble(f.blame.during(from, time.Now(), s.entity))
		})
	}
	lasting.Wait()
}

// wait returns false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
