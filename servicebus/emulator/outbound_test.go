package emulator

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

func TestOutboundHoldsProducersBackUntilTheClientReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		o := newOutbound(near)
		go o.run()
		fill := func() {
			o.append(func(b []byte) []byte { return append(b, make([]byte, roomyBytes+1)...) })
			synctest.Wait()
		}
		fill() // is being written
		fill() // waits
		var passed atomic.Bool
		go func() {
			o.waitForRoom()
			passed.Store(true)
		}()
		synctest.Wait()
		if passed.Load() {
			t.Error("more was let in while nothing was read")
		}
		if _, err := io.CopyN(io.Discard, far, 2*(roomyBytes+1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !passed.Load() {
			t.Error("the producer still waits, with all read")
		}
		o.abort()
		<-o.done
	})
}

func TestOutboundGivesUpOnAClientThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		o := newOutbound(near)
		go o.run()
		o.frame(0, &amqp.Close{})
		time.Sleep(writeTimeout)
		synctest.Wait()
		select {
		case <-o.done:
		default:
			t.Error("it still writes")
		}
		o.waitForRoom() // must not wait for what never comes
	})
}

func TestOutboundFinishesWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		o := newOutbound(near)
		go o.run()
		o.append(func(b []byte) []byte { return append(b, "last words"...) })
		o.finish()
		o.append(func(b []byte) []byte { return append(b, "too late"...) })
		got, err := io.ReadAll(far)
		if err != nil || !bytes.Equal(got, []byte("last words")) {
			t.Errorf("read %q, %v", got, err)
		}
		<-o.done
	})
}
