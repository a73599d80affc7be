package program

import (
	"os"
	"runtime"
	"testing"
)

func TestHeapFloor(t *testing.T) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		t.Skip("GOGC or GOMEMLIMIT is set")
	}
	keepHeapFloor()
	defer heapFloor.Store(nil)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.NextGC < 2*heapFloorBytes {
		t.Errorf("the next collection is at %d bytes", m.NextGC)
	}
}
