package sizing

import "math"

// What one worker moves, from docs/performance.md: 34,342 events/s of 600 bytes
// with the engines 1 and 8 ms away, where the worker and both engines shared two
// cores with other work. So it is a low figure for two cores.
const (
	measuredEventsPerSecond = 34_342
	measuredCores           = 2
	measuredMessageBytes    = 600 + messageOverhead
)

// ReplicaCores is the vCPU of a replica in infra/.
const ReplicaCores = 0.5

// replicaEventsPerSecond is what a replica is counted on for. Longer messages cost
// by their bytes; shorter ones gain nothing.
func (w Workload) replicaEventsPerSecond() float64 {
	longer := max(1, float64(w.messageBytes())/measuredMessageBytes)
	return measuredEventsPerSecond * ReplicaCores / measuredCores / longer * Utilization
}

// replicas are those that the peak needs, and one more: while a dead one's lease
// runs out the others carry on.
func (w Workload) replicas() int {
	return int(math.Ceil(w.EventsPerSecond/w.replicaEventsPerSecond())) + 1
}
