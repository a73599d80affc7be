package program

import (
	"os"
	"sync/atomic"
)

// heapFloorBytes is what the collector counts as live beside what is: a worker
// holds some 6 MB and makes 3 KB of garbage an event, so that it would collect
// every few thousand events, for a fifth of its CPU time. With the floor it
// collects every 20 MB, which keeps a worker with default settings below 64 MB
// of resident memory while it drains millions of events, on processors that are
// busy with other work too, when a collection lasts longer. 20 MB were 66 MB then;
// docs/performance.md has what less of it costs. What is live on top of the floor,
// large batches say, may double as ever, which a higher GOGC would multiply
// instead.
const heapFloorBytes = 14 << 20

// heapFloor is never written to, so it takes addresses and no memory.
var heapFloor atomic.Pointer[[heapFloorBytes]byte]

// keepHeapFloor makes the floor, unless the operator has settings of their own.
func keepHeapFloor() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		heapFloor.Store(new([heapFloorBytes]byte))
	}
}
