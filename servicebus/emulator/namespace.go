package emulator

import (
	"fmt"
	"net/url"
	"strings"
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
}

// namespace finds nodes by address.
type namespace map[string]*node

func newNamespace(entities []Entity) namespace {
	ns := namespace{}
	for _, e := range entities {
		if e.Kind == Topic {
			ns.addTopic(e)
			continue
		}
		q := broker.NewQueue(broker.QueueConfig{
			Name: e.Name, RequiresSession: e.RequiresSession, LockDuration: e.LockDuration,
			MaxDeliveryCount: uint32(e.MaxDeliveryCount), DefaultTTL: e.DefaultTTL,
			DeadLetterExpired: e.DeadLetterOnExpiration, DuplicateWindow: e.DuplicateWindow,
			MaxBytes: e.MaxSizeBytes, Partitioned: e.Partitioned,
		})
		ns.add(&node{path: e.Name, entity: e.Name, destination: q, source: q, maxMessage: e.MaxMessageBytes, config: e})
		ns.addDeadLetter(e, q)
	}
	return ns
}

func (ns namespace) addTopic(e Entity) {
	t := broker.NewTopic(broker.TopicConfig{
		Name: e.Name, DuplicateWindow: e.DuplicateWindow, MaxBytes: e.MaxSizeBytes, Partitioned: e.Partitioned,
	})
	ns.add(&node{path: e.Name, entity: e.Name, destination: t, topic: t, maxMessage: e.MaxMessageBytes, config: e})
	for _, s := range e.Subscriptions {
		path := e.Name + subscriptions + s.Name
		q := t.Subscribe(broker.QueueConfig{
			Name: path, RequiresSession: s.RequiresSession, LockDuration: s.LockDuration,
			MaxDeliveryCount: uint32(s.MaxDeliveryCount), DefaultTTL: s.DefaultTTL,
			DeadLetterExpired: s.DeadLetterOnExpiration,
		}, brokerRules(s.Rules))
		ns.add(&node{path: path, entity: e.Name, source: q, maxMessage: e.MaxMessageBytes})
		ns.addDeadLetter(e, q)
	}
}

func (ns namespace) addDeadLetter(e Entity, q *broker.Queue) {
	dead := q.DeadLetter()
	ns.add(&node{path: dead.Name(), entity: e.Name, source: dead, maxMessage: e.MaxMessageBytes, deadLetter: true})
}

func (ns namespace) add(n *node) {
	n.path = strings.ToLower(n.path)
	ns[n.path] = n
}

// close stops all timers.
func (ns namespace) close() {
	for _, n := range ns {
		switch {
		case n.topic != nil:
			n.topic.Close()
		case n.source != nil:
			n.source.Close()
		}
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
func (ns namespace) find(path string) (*node, error) {
	if n, ok := ns[path]; ok {
		return n, nil
	}
	if strings.HasSuffix(path, "/$transfer/$deadletterqueue") {
		return nil, amqp.Errorf(broker.CondNotImplemented, "transfer dead-letter queues are not modelled: %q", path)
	}
	return nil, amqp.Errorf(broker.CondNotFound, "The messaging entity '%s' could not be found.", path)
}

// mustFind is for a test's own calls, where an unknown name is a mistake in
// the test that must not pass for an empty entity.
func (ns namespace) mustFind(entity string) *node {
	n, err := ns.find(path(entity))
	if err != nil {
		panic(fmt.Sprintf("emulator: there is no entity %q", entity))
	}
	return n
}
