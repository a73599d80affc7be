package service

import (
	"os"
	"runtime"
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

// heapFloor is never written to, so it takes addresses and no memory. It is in
// pieces because Go clears a block that overlaps memory it has used before, and
// then all of the block is there: a single one was that in one start of twenty.
var heapFloor []*[heapPieceBytes]byte

const heapPieceBytes = 1 << 20

// Economize sets Go up for a process whose CPU time and memory are what is paid
// for. It is outbox-worker's first step, and to be called before there are other
// goroutines: setting the number of processors stops them all for a moment.
//
//   - Go code runs on one processor at a time. The goroutines of a worker hand each
//     other every row and every frame, and on several processors each of that wakes
//     a thread: a tenth of the CPU time, for a rate that is the same within 5 %
//     (docs/performance.md). One processor moves 70,000 events a second; who needs
//     more has a second worker, or GOMAXPROCS in the environment.
//   - The heap has a floor. GOGC or GOMEMLIMIT in the environment switch it off.
func Economize() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		heapFloor = make([]*[heapPieceBytes]byte, heapFloorBytes/heapPieceBytes)
		for i := range heapFloor {
			heapFloor[i] = new([heapPieceBytes]byte)
		}
	}
}
