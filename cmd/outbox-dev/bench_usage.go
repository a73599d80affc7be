package main

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// cpuTime is what this process has used, user and system.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory is the most this process has had resident, in bytes. On Linux it
// is not ru_maxrss, which a process inherits: Go starts a child inside its
// parent's memory, and the parent's peak stays in the child's figure across
// exec.
func peakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
		line, _, _ := bytes.Cut(rest, []byte(" kB"))
		if kilobytes, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64); err == nil {
			return kilobytes << 10
		}
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss) // bytes there, kilobytes elsewhere
	}
	return int64(u.Maxrss) << 10
}

// mallocs is how many objects this process has allocated.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
