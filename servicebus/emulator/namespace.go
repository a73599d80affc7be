package emulator

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"azsqloutbox/servicebus/emulator/internal/amqp"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// node is what a link can be attached to.
type node struct {
	// path is the address in lower case: names are not case-sensitive.
	path string
	// entity is the name of the queue or topic, as it was configured.
	entity      string
	destination broker.Destination // nil where nothing can be sent to
	source      *broker.Queue      // nil where nothing can be received from
	topic       *broker.Topic      // of a topic only
	maxMessage  int64
	deadLetter  bool
	config      Entity        // of a queue or topic, else zero
	status      atomic.Uint32 // a Status
	deleted     atomic.Bool
	// filters is how many are evaluated for a message that is sent here.
	filters int
}

// namespace finds nodes by address.
type namespace struct {
	mu    sync.RWMutex
	nodes map[string]*node // by path
}

// create makes the nodes of an entity. It says no where the name is taken.
func (ns *namespace) create(e Entity) bool {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if _, taken := ns.nodes[strings.ToLower(e.Name)]; taken {
		return false
	}
	if e.Kind == Topic {
		ns.addTopic(e)
	} else {
		ns.addQueue(e)
	}
	return true
}

func (ns *namespace) addQueue(e Entity) {
	q := broker.NewQueue(broker.QueueConfig{
		Name: e.Name, RequiresSession: e.RequiresSession, LockDuration: e.LockDuration,
		MaxDeliveryCount: uint32(e.MaxDeliveryCount), DefaultTTL: e.DefaultTTL,
		DeadLetterExpired: e.DeadLetterOnExpiration, DuplicateWindow: e.DuplicateWindow,
		MaxBytes: e.MaxSizeBytes, Partitioned: e.Partitioned, Discard: e.Discard,
	})
	ns.add(&node{path: e.Name, entity: e.Name, destination: q, source: q, maxMessage: e.MaxMessageBytes, config: e})
	ns.addDeadLetter(e, q)
}

func (ns *namespace) addTopic(e Entity) {
	t := broker.NewTopic(broker.TopicConfig{
		Name: e.Name, DuplicateWindow: e.DuplicateWindow, MaxBytes: e.MaxSizeBytes, Partitioned: e.Partitioned,
	})
	n := &node{path: e.Name, entity: e.Name, destination: t, topic: t, maxMessage: e.MaxMessageBytes, config: e}
	ns.add(n)
	for _, s := range e.Subscriptions {
		n.filters += len(s.Rules)
		path := e.Name + subscriptions + s.Name
		q := t.Subscribe(broker.QueueConfig{
			Name: path, RequiresSession: s.RequiresSession, LockDuration: s.LockDuration,
			MaxDeliveryCount: uint32(s.MaxDeliveryCount), DefaultTTL: s.DefaultTTL,
			DeadLetterExpired: s.DeadLetterOnExpiration, Discard: e.Discard,
		}, brokerRules(s.Rules))
		ns.add(&node{path: path, entity: e.Name, source: q, maxMessage: e.MaxMessageBytes})
		ns.addDeadLetter(e, q)
	}
}

func (ns *namespace) addDeadLetter(e Entity, q *broker.Queue) {
	dead := q.DeadLetter()
	ns.add(&node{path: dead.Name(), entity: e.Name, source: dead, maxMessage: e.MaxMessageBytes, deadLetter: true})
}

func (ns *namespace) add(n *node) {
	n.path = strings.ToLower(n.path)
	ns.nodes[n.path] = n
}

// remove takes an entity and all that is below it away, and returns their nodes.
func (ns *namespace) remove(entity string) (gone []*node) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	for path, n := range ns.nodes {
		if strings.EqualFold(n.entity, entity) {
			delete(ns.nodes, path)
			gone = append(gone, n)
		}
	}
	return gone
}

// entities are the nodes of all of a kind, by name.
func (ns *namespace) entities(kind Kind) (all []*node) {
	ns.mu.RLock()
	defer ns.mu.RUnlock()
	for _, path := range slices.Sorted(maps.Keys(ns.nodes)) {
		if n := ns.nodes[path]; n.config.Name != "" && n.config.Kind == kind {
			all = append(all, n)
		}
	}
	return all
}

// close stops all timers.
func (ns *namespace) close() {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	for _, n := range ns.nodes {
		n.close()
	}
}

func (n *node) close() {
	switch {
	case n.topic != nil:
		n.topic.Close()
	case n.source != nil:
		n.source.Close()
	}
}

const (
	cbsPath          = "$cbs"
	managementSuffix = "/$management"
	subscriptions    = "/subscriptions/"
)

// path is the part of an address that names a node: clients send it bare, with
// a slash before it, or as a URL.
func path(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		address = u.Path
	}
	return strings.ToLower(strings.Trim(address, "/"))
}

// find returns the node at a path.
func (ns *namespace) find(path string) (*node, error) {
	ns.mu.RLock()
	n, ok := ns.nodes[path]
	ns.mu.RUnlock()
	if ok {
		return n, nil
	}
	if strings.HasSuffix(path, "/$transfer/$deadletterqueue") {
		return nil, amqp.Errorf(broker.CondNotImplemented, "transfer dead-letter queues are not modelled: %q", path)
	}
	return nil, notFound(path)
}

func notFound(path string) *amqp.Error {
	return amqp.Errorf(broker.CondNotFound, "The messaging entity '%s' could not be found.", path)
}

// mustFind is for a test's own calls, where an unknown name is a mistake in
// the test that must not pass for an empty entity.
func (ns *namespace) mustFind(entity string) *node {
	n, err := ns.find(path(entity))
	if err != nil {
		panic(fmt.Sprintf("emulator: there is no entity %q", entity))
	}
	return n
}
