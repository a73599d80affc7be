package emulator

import (
	"slices"
	"sync"

	"azsqloutbox/servicebus/emulator/internal/broker"
)

// Observer is told of each message that was sent to an entity and taken, before
// its sender is: what is acknowledged has been observed. duplicate says that
// duplicate detection dropped it. It is called by many goroutines at once, holds
// back the connection that it is called for, and must not call the server.
type Observer func(m Message, duplicate bool)

// observers are those of a server, by the path of the entity.
type observers struct {
	mu   sync.RWMutex
	path map[string][]*Observer
}

// Observe has o told of what is sent to a queue or topic from now on, until the
// returned function is called. What is scheduled by $management is not seen. An
// entity that is deleted and made again is still observed. It panics on a name
// that is not there or nothing can be sent to.
func (s *Server) Observe(entity string, o Observer) (stop func()) {
	n := s.namespace.mustFind(entity)
	if n.destination == nil {
		panic("emulator: nothing is sent to " + entity)
	}
	all := &s.observers
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.path == nil {
		all.path = map[string][]*Observer{}
	}
	all.path[n.path] = append(all.path[n.path], &o)
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		all.path[n.path] = slices.DeleteFunc(slices.Clone(all.path[n.path]), func(other *Observer) bool { return other == &o })
	}
}

func (o *observers) of(path string) []*Observer {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.path[path]
}

// enqueue stores messages and has the observers of the entity told of them.
func (s *Server) enqueue(n *node, messages []*broker.Message) error {
	watching := s.observers.of(n.path)
	if len(watching) == 0 {
		return n.destination.Enqueue(messages)
	}
	numbers, err := n.destination.EnqueueNumbered(messages)
	if err != nil {
		return err
	}
	for i, m := range messages {
		seen := newMessage(m.Preview())
		seen.SequenceNumber = numbers[i]
		for _, o := range watching {
			(*o)(seen, numbers[i] == 0)
		}
	}
	return nil
}
