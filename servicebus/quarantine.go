package servicebus

import "sync"

// quarantine has the connections of deliveries that send what may break its
// connection: each such delivery has one of its own. On a common one azservicebus
// would send again, and so twice, what others have under way whenever it breaks,
// and after the second time they would be in doubt as well.
type quarantine struct {
	mu     sync.Mutex
	open   map[*connection]struct{}
	closed bool
	// left are connections on their way out.
	left sync.WaitGroup
}

// enter takes in a connection that is not used yet.
func (q *quarantine) enter(c *connection) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		c.close()
		return
	}
	if q.open == nil {
		q.open = make(map[*connection]struct{})
	}
	q.open[c] = struct{}{}
}

// leave closes a connection that is not used any more.
func (q *quarantine) leave(c *connection) {
	q.mu.Lock()
	defer q.mu.Unlock()
	done := c.close()
	if q.closed {
		return // whoever closed it waits for c too
	}
	delete(q.open, c)
	q.left.Go(func() { <-done })
}

// close closes all connections, with the calls that are under way; wait until done
// is closed.
func (q *quarantine) close() (done <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	finished := make(chan struct{})
	waits := make([]<-chan struct{}, 0, len(q.open))
	for c := range q.open {
		waits = append(waits, c.close())
	}
	go func() {
		for _, closed := range waits {
			<-closed
		}
		q.left.Wait()
		close(finished)
	}()
	return finished
}
