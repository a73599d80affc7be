package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
)

// watchdogGrace is how long a call may go on after its context has ended
// before its connection is closed under it. The driver asks the server to stop
// and waits for that to be confirmed; on a network that swallows packets, and
// after some errors, it waits on (go-mssqldb issues 160 and 407).
const watchdogGrace = time.Second

// loginPatience bounds the way to a usable connection, whatever the caller's
// deadline is.
const loginPatience = time.Minute

// watch calls kill when ctx has been over for watchdogGrace. stop ends the
// watch and says whether it has killed, or is about to.
func watch(ctx context.Context, kill func()) (stop func() bool) {
	return watchFor(ctx, watchdogGrace, kill)
}

func watchFor(ctx context.Context, grace time.Duration, kill func()) (stop func() bool) {
	var decided atomic.Bool // by whoever sets it: the kill or the stop, never both
	over := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			if decided.CompareAndSwap(false, true) {
				kill()
			}
		case <-over:
		}
	})
	return func() bool {
		close(over)
		unwatch()
		return !decided.CompareAndSwap(false, true)
	}
}

// connector is the driver's connector that also knows the network connections
// beneath what it has opened. database/sql holds a lock on a connection that is
// in use, so this is the only way to close one that hangs.
type connector struct {
	*mssql.Connector
	wires sync.Map // driver.Conn → *wire
}

func newConnector(inner *mssql.Connector, keepAlive time.Duration) *connector {
	inner.Dialer = wireDialer{net.Dialer{KeepAlive: keepAlive}}
	return &connector{Connector: inner}
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	w := new(wire)
	// The driver takes ctx, and its TLS handshake and login do not look at it: a
	// server that accepts and says nothing would be waited for for ever. No grace:
	// a login has nothing to undo.
	ctx, cancel := context.WithTimeout(ctx, loginPatience)
	defer cancel()
	stop := watchFor(ctx, 0, w.kill)
	conn, err := c.Connector.Connect(context.WithValue(ctx, wireKey{}, w))
	if killed := stop(); killed {
		if err == nil {
			_ = conn.Close()
		}
		return nil, fmt.Errorf("gave up waiting for the answer to the login: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	c.wires.Store(conn, w)
	w.onClose(func() { c.wires.Delete(conn) })
	return conn, nil
}

// Driver implements driver.Connector; killer finds its way back by it.
func (c *connector) Driver() driver.Driver { return wireDriver{c.Connector.Driver(), c} }

type wireDriver struct {
	driver.Driver
	connector *connector
}

// killer returns what closes the network connection under conn, at once and
// from any goroutine. It does nothing for a DB that Open did not open.
func killer(db *sql.DB, conn *sql.Conn) func() {
	d, ok := db.Driver().(wireDriver)
	if !ok {
		return func() {}
	}
	var w *wire
	_ = conn.Raw(func(c any) error {
		if v, ok := d.connector.wires.Load(c); ok {
			w = v.(*wire)
		}
		return nil
	})
	if w == nil {
		return func() {}
	}
	return w.kill
}

// wire is what was dialled for one connection: with several addresses, or a
// redirection by the gateway, more than one.
type wire struct {
	mu     sync.Mutex
	conns  []net.Conn
	closed func()
}

func (w *wire) add(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
}

func (w *wire) onClose(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = f
}

func (w *wire) kill() {
	w.mu.Lock()
	conns := w.conns
	w.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

func (w *wire) forget() {
	w.mu.Lock()
	f := w.closed
	w.mu.Unlock()
	if f != nil {
		f()
	}
}

type wireKey struct{}

// wireDialer leaves every connection that it makes in the wire of the context.
type wireDialer struct{ net.Dialer }

func (d wireDialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.Dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w, ok := ctx.Value(wireKey{}).(*wire)
	if !ok {
		return conn, nil
	}
	w.add(conn)
	return wiredConn{conn, w}, nil
}

type wiredConn struct {
	net.Conn
	wire *wire
}

func (c wiredConn) Close() error {
	c.wire.forget()
	return c.Conn.Close()
}
