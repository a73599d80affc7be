package servicebus

import (
	"context"
	"errors"
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
	// closeTimeout bounds the closing of a dead sender or client, which waits for
	// answers that may never come.
	closeTimeout = 5 * time.Second
)

// errHung is what a call returns that was abandoned.
var errHung = errors.New("the call did not return, its connection was abandoned")

// connection is one AMQP connection: a client, and a long-lived sender for each
// entity. The client is made anew after it was abandoned, a sender after it
// died. Its methods may be called from many goroutines at once.
type connection struct {
	dial func() (*azservicebus.Client, error) // touches no network
	log  *zap.Logger

	mu      sync.Mutex
	client  *azservicebus.Client
	senders map[string]*sender
	closed  bool
	// closings are dead senders and clients on their way out.
	closings sync.WaitGroup
}

// sender is one AMQP link. Many sends may be under way on it at once.
type sender struct {
	link   *azservicebus.Sender
	client *azservicebus.Client
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
		client, err := c.dial()
		if err != nil {
			return nil, err
		}
		c.client = client
		c.senders = make(map[string]*sender)
	}
	s, ok := c.senders[entity]
	if !ok {
		link, err := c.client.NewSender(entity, nil)
		if err != nil {
			return nil, err
		}
		s = &sender{link: link, client: c.client, entity: entity, attaching: make(chan struct{}, 1)}
		c.senders[entity] = s
	}
	s.users++
	return s, nil
}

// release gives a sender back. The last one to give back a retired sender has it
// closed, so that no send of another goroutine is cut off.
func (c *connection) release(s *sender) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.users--
	if s.users > 0 || !s.retired || c.closed || s.client != c.client {
		return // in use, alive, or closed together with its client
	}
	c.closings.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = s.link.Close(ctx) // a dead link returns its old error here
	})
}

// retire takes a dead sender out of use: the next acquire makes a new one.
func (c *connection) retire(s *sender, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.retired {
		return
	}
	s.retired = true
	if c.senders[s.entity] == s {
		delete(c.senders, s.entity)
	}
	c.log.Debug("sender is dead, the next send makes a new one", zap.String("entity", s.entity), zap.Error(why))
}

// abandon gives up a sender's whole connection, because a call hangs on it.
func (c *connection) abandon(s *sender) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.retired = true
	if c.closed || c.client != s.client {
		return // somebody else was faster
	}
	c.log.Warn("connection is abandoned, the next send makes a new one", zap.String("entity", s.entity))
	c.closings.Go(func() { _ = closeClient(s.client) })
	c.client, c.senders = nil, nil
}

// close ends the connection for good; wait until done is closed.
func (c *connection) close() (done <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && c.client != nil {
		client := c.client
		c.closings.Go(func() { _ = closeClient(client) })
	}
	c.closed = true
	finished := make(chan struct{})
	go func() {
		c.closings.Wait()
		close(finished)
	}()
	return finished
}

func closeClient(client *azservicebus.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return client.Close(ctx)
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
	if s.opened.Load() {
		return nil
	}
	if _, err := s.link.NewMessageBatch(ctx, nil); err != nil {
		return err
	}
	s.opened.Store(true)
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
