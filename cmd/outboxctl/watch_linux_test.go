package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
)

// openTerminal is a terminal of the given size: what is written to tty can be
// read from master.
func openTerminal(t *testing.T, width, height int) (master, tty *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)}); err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return master, tty
}

// What a person sees who watches while a worker starts and stops: pages of
// different length, each whole and alone.
func TestWatchOnATerminal(t *testing.T) {
	stack := newStack(t, local.Config{})
	const width, height = 60, 20 // a worker's line takes two rows
	master, tty := openTerminal(t, width, height)
	var mu sync.Mutex
	s := newScreen(width, height)
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		var rest []byte
		for {
			n, err := master.Read(buf)
			rest = append(rest, buf[:n]...)
			whole := bytes.LastIndexByte(rest, '\n') + 1 // no character is torn
			mu.Lock()
			s.write(string(rest[:whole]))
			mu.Unlock()
			rest = rest[whole:]
			if err != nil {
				return // the other side is closed
			}
		}
	}()
	shows := func(what string, ok func(text string) bool) {
		t.Helper()
		for deadline := time.Now().Add(statusPatience); ; time.Sleep(10 * time.Millisecond) {
			mu.Lock()
			text, scrolled := s.text(), s.scrolled
			mu.Unlock()
			if ok(text) && scrolled == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("it does not show %s, or has scrolled (%d):\n%s", what, scrolled, text)
			}
		}
	}
	watching, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- run(watching, []string{"status", "--watch", "--interval=100ms", "--sql-dsn=" + stack.SQL.DSN()}, tty, tty)
	}()
	empty := func(text string) bool {
		return strings.HasPrefix(text, "dbo.outbox_event at 2") && strings.Count(text, "\n") == 2 && strings.Contains(text, "0 parked; 0 events/s")
	}
	shows("an empty outbox", empty)
	stopWorker, _ := runWorker(t, stack, func(s *service.Settings) { s.Claim.Paused, s.Process.Owner = true, "careful" })
	shows("a worker that waits", func(text string) bool {
		return strings.HasPrefix(text, "dbo.outbox_event at 2") && strings.Contains(text, "\ncareful ") && strings.Contains(strings.Join(strings.Fields(text), ""), "waitsforresume--all")
	})
	if err := stopWorker(); err != nil {
		t.Error(err)
	}
	shows("an empty outbox again", empty)
	exec(t, stack, `INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload)
		SELECT g.value, 'x', 'x', CONCAT('type-', g.value), '{}' FROM GENERATE_SERIES(1, 30) AS g;`)
	shows("as many event types as fit", func(text string) bool {
		return strings.HasPrefix(text, "dbo.outbox_event at 2") && strings.Contains(text, "\ntype-1 ") && strings.HasSuffix(text, " more lines")
	})
	stop()
	if code := <-done; code != exitDone {
		t.Errorf("exit %d", code)
	}
	tty.Close()
	<-read
}
