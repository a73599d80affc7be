package sizing

import "math"

// What one worker moves, from docs/performance.md: 20,309 events/s of 600 bytes in
// the slower of two runs, with the engines 1 and 8 ms away, held by the kernel to the
// processor time of a replica, and without TLS to the broker.
const (
	measuredEventsPerSecond = 20_000
	measuredMessageBytes    = 600 + messageOverhead
)

// replicaCores is the vCPU of a replica in infra/, the least that Container Apps
// gives (azure-docs, container-apps/containers.md).
const replicaCores = 0.25

// replicaEventsPerSecond is what a replica is counted on for. Longer messages cost
// by their bytes; shorter ones gain nothing.
func (w Workload) replicaEventsPerSecond() float64 {
	longer := max(1, float64(w.messageBytes())/measuredMessageBytes)
	return measuredEventsPerSecond / longer * Utilization
}

// replicas are those that the peak needs, and one more: while a dead one's lease
// runs out the others carry on.
func (w Workload) replicas() int {
	return int(math.Ceil(w.EventsPerSecond/w.replicaEventsPerSecond())) + 1
}
