package sqlserver

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchKillsOnlyWhatOutlivesItsContext(t *testing.T) {
	for name, c := range map[string]struct {
		cancelAfter, stopAfter time.Duration // cancelAfter 0: never
		killed                 bool
	}{
		"in time":            {0, time.Hour, false},
		"within the grace":   {time.Second, time.Second + watchdogGrace - time.Millisecond, false},
		"beyond the grace":   {time.Second, time.Second + watchdogGrace + time.Millisecond, true},
		"before the context": {time.Hour, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				kills := make(chan struct{}, 1)
				stop := watch(ctx, func() { kills <- struct{}{} })
				if c.cancelAfter > 0 {
					time.AfterFunc(c.cancelAfter, cancel)
				}
				time.Sleep(c.stopAfter)
				killed := stop()
				synctest.Wait()
				if killed != c.killed || (len(kills) == 1) != c.killed {
					t.Errorf("killed %v, %d kills; want %v", killed, len(kills), c.killed)
				}
			})
		})
	}
}

// A stop at the very moment of the kill: one of them has it, and stop says which.
// A connection that is given back as whole must not be killed after it.
func TestWatchAndStopAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 2000 {
			ctx, cancel := context.WithCancel(t.Context())
			var kills atomic.Int64
			stop := watch(ctx, func() { kills.Add(1) })
			cancel()
			time.Sleep(watchdogGrace)
			killed := stop()
			synctest.Wait()
			if (kills.Load() == 1) != killed {
				t.Fatalf("stop says killed %v, and there were %d kills", killed, kills.Load())
			}
		}
	})
}

func TestOutlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		longer, release := outlive(ctx, time.Second)
		defer release()
		cancel()
		time.Sleep(time.Second - time.Millisecond)
		if longer.Err() != nil {
			t.Error("ended before the grace was over")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if longer.Err() == nil {
			t.Error("outlived its grace")
		}
	})
}

// A server that accepts and never says a word.
func TestKillerClosesTheWire(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	w := new(wire)
	dialer := wireDialer{}
	conn, err := dialer.DialContext(context.WithValue(t.Context(), wireKey{}, w), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	forgotten := make(chan struct{})
	w.onClose(func() { close(forgotten) })
	read := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		read <- err
	}()
	w.kill()
	if err := <-read; err == nil {
		t.Error("the read went on")
	}
	_ = conn.Close()
	<-forgotten
}

// A server that accepts and never says a word must not hold a command for longer
// than its context lasts, also where statements may take for ever.
func TestLoginAtAServerThatSaysNothingEnds(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
		}
	}()
	for _, encrypt := range []string{"true", "disable", "strict"} {
		db, err := Open("sqlserver://u:p@"+listener.Addr().String()+"?database=d&encrypt="+encrypt, Options{LongStatements: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		begun := time.Now()
		err = db.PingContext(ctx)
		cancel()
		if took := time.Since(begun); err == nil || took > 20*time.Second {
			t.Errorf("encrypt=%s: %v after %s", encrypt, err, took)
		}
		db.Close()
	}
}
