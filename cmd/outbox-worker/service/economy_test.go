package service

import (
	"os"
	"runtime"
	"testing"
)

func TestEconomize(t *testing.T) {
	for _, name := range []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT"} {
		if os.Getenv(name) != "" {
			t.Skipf("%s is set, which Go has read already", name)
		}
	}
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(before)
		heapFloor = nil
	})

	// What the operator sets stays. The runtime does not read it again, so only that
	// is seen here.
	t.Setenv("GOMAXPROCS", "2")
	t.Setenv("GOGC", "100")
	Economize()
	if n := runtime.GOMAXPROCS(0); n != before || heapFloor != nil {
		t.Errorf("with GOMAXPROCS and GOGC set: %d processors, and a floor: %v", n, heapFloor != nil)
	}

	t.Setenv("GOMAXPROCS", "")
	t.Setenv("GOGC", "")
	Economize()
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("Go runs on %d processors", n)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.NextGC < 2*heapFloorBytes {
		t.Errorf("the next collection is at %d bytes", m.NextGC)
	}
}
