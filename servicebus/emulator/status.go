package emulator

import (
	"fmt"
	"maps"
	"slices"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// Status is what an administrator allows on an entity.
// https://learn.microsoft.com/azure/service-bus-messaging/entity-suspend
type Status uint32

// The statuses. A topic cannot be StatusReceiveDisabled, nor a subscription
// StatusSendDisabled. A topic that is disabled still has its subscriptions received
// from; a subscription that is disabled still gets copies.
const (
	StatusActive Status = iota
	StatusDisabled
	StatusSendDisabled
	StatusReceiveDisabled
)

func (s Status) String() string {
	switch s {
	case StatusActive:
		return "Active"
	case StatusDisabled:
		return "Disabled"
	case StatusSendDisabled:
		return "SendDisabled"
	case StatusReceiveDisabled:
		return "ReceiveDisabled"
	default:
		return fmt.Sprintf("Status(%d)", uint32(s))
	}
}

const condDisabled amqp.Symbol = "com.microsoft:entity-disabled"

// SetStatus changes the status of a queue, topic or subscription while the
// server runs. Links that it forbids are detached with
// com.microsoft:entity-disabled, and new ones refused. That the dead-letter
// queue stays as it is, is believed. It panics on an entity that is not there
// or cannot have the status.
func (s *Server) SetStatus(entity string, status Status) {
	n := s.namespace.mustFind(entity)
	switch {
	case n.deadLetter:
		panic("emulator: a dead-letter queue has no status of its own: " + entity)
	case status > StatusReceiveDisabled, n.source == nil && status == StatusReceiveDisabled, n.destination == nil && status == StatusSendDisabled:
		panic(fmt.Sprintf("emulator: %s cannot be %s", entity, status))
	}
	n.status.Store(uint32(status))
	s.detach(n.path, func(l link) *amqp.Error {
		if _, sends := l.(*receiver); sends {
			return n.sendDisabled()
		}
		return n.receiveDisabled()
	})
}

// SetMaxSizeBytes changes the space of a queue or topic while the server runs;
// what it holds counts and stays, so 0 makes it full: every send is
// amqp:resource-limit-exceeded. It panics on an entity that is not there or a
// subscription, whose space is its topic's.
func (s *Server) SetMaxSizeBytes(entity string, limit int64) {
	n := s.namespace.mustFind(entity)
	if n.destination == nil || limit < 0 {
		panic(fmt.Sprintf("emulator: the size of %s cannot be set to %d", entity, limit))
	}
	n.destination.SetMaxBytes(limit)
}

// sendDisabled is why nothing can be sent to the node, nil if it can.
func (n *node) sendDisabled() *amqp.Error {
	if s := Status(n.status.Load()); s == StatusDisabled || s == StatusSendDisabled {
		return n.disabled(s)
	}
	return nil
}

// receiveDisabled is why nothing can be received from the node, nil if it can.
func (n *node) receiveDisabled() *amqp.Error {
	if s := Status(n.status.Load()); s == StatusDisabled || s == StatusReceiveDisabled {
		return n.disabled(s)
	}
	return nil
}

func (n *node) disabled(s Status) *amqp.Error {
	return amqp.Errorf(condDisabled, "Messaging entity '%s' is currently disabled. (emulator: it is %s)", n.path, s)
}

// forbidden are the operations on $management that a status forbids, by what
// they need. Which of them the service refuses is believed.
func (n *node) forbidden(operation string) error {
	var err *amqp.Error
	switch operation {
	case scheduleOperation:
		err = n.sendDisabled()
	case "com.microsoft:update-disposition", "com.microsoft:receive-by-sequence-number", "com.microsoft:renew-lock":
		err = n.receiveDisabled()
	}
	if err == nil {
		return nil
	}
	return err
}

// DetachLinks detaches every link to the entity with the given condition, as
// the service does with links that are idle for ten minutes
// (amqp:link:detach-forced), and returns how many there were. It panics on a
// name that is not there.
func (s *Server) DetachLinks(entity, condition, description string) int {
	err := &amqp.Error{Condition: amqp.Symbol(condition), Description: description}
	return s.detach(s.namespace.mustFind(entity).path, func(link) *amqp.Error { return err })
}

// detach detaches those links to a path for which why has an error, and
// returns how many there were.
func (s *Server) detach(path string, why func(link) *amqp.Error) (n int) {
	s.mu.Lock()
	clients := slices.Collect(maps.Keys(s.clients))
	s.mu.Unlock()
	for _, c := range clients {
		n += c.detachLinks(path, why)
	}
	return n
}
