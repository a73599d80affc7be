package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// step is one fault of a plan.
type step struct {
	at   time.Duration
	kind string
	// worker, entity, statement, drop and length are used by the kinds that have
	// a use for them.
	worker    int
	entity    string
	statement string
	condition string
	after     bool
	length    time.Duration
}

// chaosStatements are what a fault of the database can hit: each request of
// claim, publish and settle, and the housekeeping.
var chaosStatements = []string{
	"BEGIN", "COMMIT", "Pending", "ClaimEvents", "FlipClaim", "SettleSent", "Settle",
	"OverdueClaims", "ReapClaim", "RetryDue", "Heartbeat",
}

var chaosConditions = []string{
	"amqp:internal-error", "com.microsoft:timeout", "amqp:link:detach-forced", "amqp:resource-limit-exceeded",
	"amqp:not-found", "amqp:unauthorized-access", "com.microsoft:server-busy", "com.microsoft:entity-disabled",
}

const (
	// chaosPace is the mean time between two faults.
	chaosPace = 1200 * time.Millisecond
	// chaosCalmEnd is the last part of the time, without new faults, so that those
	// which last are over.
	chaosCalmEnd = 2 * time.Second
)

// planChaos draws the faults of a run. Every kind comes up before any comes
// again, so that a short run has met as many as it can.
func planChaos(seed uint64, length time.Duration, workers int) []step {
	r := rand.New(rand.NewPCG(seed, 0x0b0c5))
	var plan []step
	var deck []string
	for at := 500 * time.Millisecond; at < length-min(chaosCalmEnd, length/4); {
		if len(deck) == 0 {
			deck = slices.Clone(chaosKinds())
			r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		plan = append(plan, step{
			at: at, kind: deck[0],
			worker:    r.IntN(workers),
			entity:    []string{chaosOrders, chaosPayments}[r.IntN(2)],
			statement: chaosStatements[r.IntN(len(chaosStatements))],
			condition: chaosConditions[r.IntN(len(chaosConditions))],
			after:     r.IntN(2) == 0,
			length:    time.Second + time.Duration(r.Int64N(int64(3*time.Second))),
		})
		deck = deck[1:]
		at += time.Duration(r.ExpFloat64() * float64(chaosPace))
	}
	return plan
}
