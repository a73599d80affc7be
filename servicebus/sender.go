package servicebus

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.uber.org/zap"
)

const (
	// hangGrace is how long a call into azservicebus may outlive its context
	// before it is abandoned together with its connection. A send once hung for
	// hours (azure-sdk-for-go #21392).
	hangGrace = time.Second
	// closeTimeout bounds the closing of dead senders, which waits for answers that
	// may never come.
	closeTimeout = 5 * time.Second
)

// errHung is what a call returns that was abandoned.
var errHung = errors.New("the call did not return, its connection was abandoned")

// connection is what senders come from: at any time at most one client takes new
// sends. The client is made anew after it was abandoned, a sender after it died.
// Its methods may be called from many goroutines at once.
type connection struct {
	dial func() (*azservicebus.Client, error) // touches no network
	log  *zap.Logger

	mu     sync.Mutex
	client *client // nil until the next acquire
	// leaving are abandoned clients on which calls are still under way.
	leaving map[*client]struct{}
	closed  bool
	// closings are dead senders and clients on their way out.
	closings sync.WaitGroup
}

// client is one AMQP connection, and a long-lived sender for each entity. It is
// guarded by its connection's mu.
type client struct {
	azsb    *azservicebus.Client
	serving map[string]*sender
	// open are the senders that nobody closes yet, retired ones among them.
	open map[*sender]struct{}
	// users are the calls under way on all its senders. One that hangs has none:
	// it is given up, and released, a hangGrace after its context.
	users int

	// answers counts the links that were attached and the sends that were confirmed:
	// the evidence that someone is there. It is not guarded.
	answers atomic.Uint64
}

// sender is one AMQP link. Many sends may be under way on it at once.
type sender struct {
	link   *azservicebus.Sender
	on     *client
	entity string
	// attaching is held by the one that attaches the link.
	attaching chan struct{}
	// opened is true once the link has been attached, and stays true.
	opened atomic.Bool
	// served is true once a send on it was confirmed.
	served atomic.Bool
	// limit is the largest batch the link takes, in bytes; 0 until learnt.
	limit atomic.Uint64

	// guarded by the connection's mu
	users   int
	retired bool
}

// acquire returns the sender of entity, made now where there is none. Every
// sender must be released.
func (c *connection) acquire(entity string) (*sender, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if c.client == nil {
		azsb, err := c.dial()
		if err != nil {
			return nil, err
		}
		c.client = &client{azsb: azsb, serving: make(map[string]*sender), open: make(map[*sender]struct{})}
	}
	s, ok := c.client.serving[entity]
	if !ok {
		link, err := c.client.azsb.NewSender(entity, nil)
		if err != nil {
			return nil, err
		}
		s = &sender{link: link, on: c.client, entity: entity, attaching: make(chan struct{}, 1)}
		c.client.serving[entity] = s
		c.client.open[s] = struct{}{}
	}
	s.users++
	s.on.users++
	return s, nil
}

// release gives a sender back. The last one to give back a retired sender has it
// closed, and the last one to leave an abandoned client has that closed, so that
// no send of another goroutine is cut off.
func (c *connection) release(s *sender) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.users--
	s.on.users--
	switch {
	case c.closed: // and so is every client
	case s.on != c.client:
		if s.on.users == 0 {
			delete(c.leaving, s.on)
			c.hangUp(s.on)
		}
	case s.retired && s.users == 0:
		delete(s.on.open, s)
		c.closings.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			defer cancel()
			_ = s.link.Close(ctx) // a dead link returns its old error here
		})
	}
}

// retire takes a dead sender out of use: the next acquire makes a new one.
func (c *connection) retire(s *sender, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.retired {
		return
	}
	s.retired = true
	delete(s.on.serving, s.entity)
	c.log.Debug("sender is dead, the next send makes a new one", zap.String("entity", s.entity), zap.Error(why))
}

// abandon gives up a sender's whole client, because a call hangs on it or nothing is
// heard on it; its caller still holds the sender. The client takes no new call.
// Those under way on it, of any entity, may be well: a batch that the broker has
// taken and that is cut off before the answer goes out twice. So
// the client is closed by the last one that leaves it, which is at most a
// SendTimeout and a hangGrace from now: nobody holds a sender for longer, whether
// his call returns or not.
func (c *connection) abandon(s *sender) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.client != s.on {
		return // somebody else was faster
	}
	c.log.Warn("connection is abandoned, the next send makes a new one", zap.String("entity", s.entity), zap.Int("under_way", s.on.users-1))
	if c.leaving == nil {
		c.leaving = make(map[*client]struct{})
	}
	c.leaving[s.on] = struct{}{}
	c.client = nil
}

// close ends the connection for good, with the calls that are under way; wait
// until done is closed.
func (c *connection) close() (done <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		if c.client != nil {
			c.hangUp(c.client)
		}
		for left := range c.leaving {
			c.hangUp(left)
		}
	}
	finished := make(chan struct{})
	go func() {
		c.closings.Wait()
		close(finished)
	}()
	return finished
}

// hangUp has a client closed that gets no new call. Its caller holds mu.
func (c *connection) hangUp(left *client) {
	senders := slices.Collect(maps.Keys(left.open))
	c.closings.Go(func() { closeClient(left.azsb, senders) })
}

// closeClient closes the senders and then the client. Client.Close alone would
// close one sender after the other, and wait for the locks of each without a
// context: behind a sender on which a call hangs it would never come to the
// connection. Sender.Close takes the sender off the client's list before it waits
// (azservicebus client.go, getCleanupForCloseable), so Client.Close, called when
// closeTimeout is over, has the connection alone left to close.
func closeClient(azsb *azservicebus.Client, senders []*sender) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var links sync.WaitGroup
	for _, s := range senders {
		links.Go(func() { _ = s.link.Close(ctx) })
	}
	_ = bounded(ctx, 0, func() error {
		links.Wait()
		return nil
	})
	_ = azsb.Close(ctx)
}

// open attaches the link where that has not been done. One caller does it, the
// others wait: azservicebus attaches one link for every caller that comes first,
// and forgets all but the last with the goroutines that renew their tokens
// (internal/amqpLinks.go, Get, does not look again after taking its lock).
func (s *sender) open(ctx context.Context) error {
	if s.opened.Load() {
		return nil
	}
	select {
	case s.attaching <- struct{}{}:
		defer func() { <-s.attaching }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := s.link.NewMessageBatch(ctx, nil); err != nil {
		return err
	}
	s.opened.Store(true)
	s.on.answers.Add(1)
	return nil
}

// bounded runs call, and returns errHung when call has not returned a grace
// period after ctx ended; call goes on in its goroutine then. azservicebus
// takes a context everywhere, but waits for locks and tokens without it.
func bounded(ctx context.Context, grace time.Duration, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	overdue := time.NewTimer(grace)
	defer overdue.Stop()
	select {
	case err := <-done:
		return err
	case <-overdue.C:
		return errHung
	}
}
