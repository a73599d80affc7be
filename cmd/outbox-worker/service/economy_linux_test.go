//go:build linux && !race

package service

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// The race detector keeps books about every block, so this is not for it.
func TestTheHeapFloorTakesNoMemory(t *testing.T) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		t.Skip("GOGC or GOMEMLIMIT is set, there is no floor")
	}
	processors := runtime.GOMAXPROCS(0)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(processors)
		heapFloor = nil
	})

	// Memory that was used and is free again, for the floor to begin in.
	used := make([]byte, 2<<20)
	for i := range used {
		used[i] = 1
	}
	before := residentBytes(t)
	runtime.KeepAlive(used)
	runtime.GC()
	Economize()
	if grown := residentBytes(t) - before; grown > heapFloorBytes/2 {
		t.Errorf("the process has %d bytes more than before", grown)
	}
	if len(heapFloor) == 0 {
		t.Error("there is no floor")
	}
}

func residentBytes(t *testing.T) int {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
