package emulator

import (
	"fmt"
	"strings"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// CreateEntity makes a queue or topic while the server runs. It is empty, and
// knows no duplicates, even where one of its name was deleted. An error names the
// field that cannot be, as of Start, or says that the name is taken.
func (s *Server) CreateEntity(e Entity) error {
	e = e.withDefaults(s.cfg.Tier)
	if err := e.validate(s.cfg.Tier); err != nil {
		return fmt.Errorf("service bus emulator: entity %q: %w", e.Name, err)
	}
	if !s.namespace.create(e) {
		return fmt.Errorf("service bus emulator: entity %q: there is one of that name", e.Name)
	}
	return nil
}

// DeleteEntity deletes a queue or topic, with subscriptions and dead letters and
// all messages, while the server runs. Links to it are detached with
// amqp:not-found, the condition that new ones get; that the service says the same
// of the old ones is believed. It panics on a name that is not there or is a
// subscription's.
func (s *Server) DeleteEntity(name string) {
	n := s.namespace.mustFind(name)
	if n.config.Name == "" {
		panic("emulator: only a queue or topic can be deleted: " + name)
	}
	for _, gone := range s.namespace.remove(n.entity) {
		gone.deleted.Store(true)
		gone.close()
		for _, path := range []string{gone.path, gone.path + managementSuffix} {
			s.detach(path, func(link) *amqp.Error { return notFound(strings.TrimSuffix(path, managementSuffix)) })
		}
	}
}
