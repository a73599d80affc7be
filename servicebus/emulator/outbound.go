package emulator

import (
	"net"
	"sync"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

const (
	// roomyBytes is how much may wait to be written before those who produce
	// more have to wait: enough to keep the socket busy, little enough that a
	// client that stops reading costs no more than this.
	roomyBytes = 4 << 20
	// writeTimeout gives up on a client that reads nothing at all.
	writeTimeout = 30 * time.Second
)

// outbound gathers frames and writes them in large pieces: while one write is
// under way, the next collects.
type outbound struct {
	net   net.Conn
	ready chan struct{} // there is something to write, or to end
	done  chan struct{} // closed when run has returned
	beat  chan time.Duration

	mu     sync.Mutex
	room   sync.Cond
	buf    []byte
	ending bool // write what is there, then close
	ended  bool
}

func newOutbound(conn net.Conn) *outbound {
	o := &outbound{
		net: conn, ready: make(chan struct{}, 1), done: make(chan struct{}), beat: make(chan time.Duration, 1),
	}
	o.room.L = &o.mu
	return o
}

// append adds what add appends. It never blocks on the network.
func (o *outbound) append(add func([]byte) []byte) {
	o.mu.Lock()
	if !o.ended && !o.ending {
		o.buf = add(o.buf)
	}
	o.mu.Unlock()
	o.signal()
}

// frame adds a frame without payload.
func (o *outbound) frame(channel uint16, p amqp.Performative) {
	o.append(func(b []byte) []byte { return amqp.AppendFrame(b, amqp.FrameAMQP, channel, p, nil) })
}

func (o *outbound) signal() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// waitForRoom blocks while too much waits to be written. It must not be called
// with a connection's lock held.
func (o *outbound) waitForRoom() {
	o.mu.Lock()
	for len(o.buf) > roomyBytes && !o.ended {
		o.room.Wait()
	}
	o.mu.Unlock()
}

// finish has everything written and the connection closed.
func (o *outbound) finish() {
	o.mu.Lock()
	o.ending = true
	o.mu.Unlock()
	o.signal()
}

// abort closes the connection at once.
func (o *outbound) abort() {
	o.mu.Lock()
	o.ended = true
	o.buf = nil
	o.room.Broadcast()
	o.mu.Unlock()
	_ = o.net.Close()
	o.signal()
}

// heartbeat has an empty frame sent at this interval from now on. It may be
// called once.
func (o *outbound) heartbeat(every time.Duration) { o.beat <- every }

// run writes until the connection ends.
func (o *outbound) run() {
	defer close(o.done)
	ticker := time.NewTicker(time.Hour)
	ticker.Stop()
	defer ticker.Stop()
	var writing []byte
	for {
		select {
		case <-o.ready:
		case every := <-o.beat:
			ticker.Reset(every)
			continue
		case <-ticker.C:
			o.append(func(b []byte) []byte { return append(b, amqp.EmptyFrame[:]...) })
			continue
		}
		o.mu.Lock()
		writing, o.buf = o.buf, writing[:0]
		ending, ended := o.ending, o.ended
		o.room.Broadcast()
		o.mu.Unlock()
		if ended {
			return
		}
		if len(writing) > 0 {
			_ = o.net.SetWriteDeadline(time.Now().Add(writeTimeout))
			if _, err := o.net.Write(writing); err != nil {
				o.abort()
				return
			}
		}
		if ending {
			o.abort()
			return
		}
		if cap(writing) > roomyBytes {
			writing = nil
		}
	}
}
