package service

import (
	"go.uber.org/zap"

	"azsqloutbox/servicebus"
)

// Given says whether any way to a broker was named.
func (s ServiceBusSettings) Given() bool { return s.Namespace != "" || s.ConnectionString != "" }

// Publisher makes a publisher as a worker with these settings would have it, for
// programs that look at the broker. An error is a setting that cannot be.
func (s ServiceBusSettings) Publisher(log *zap.Logger) (*servicebus.Publisher, servicebus.Routes, error) {
	if err := s.check(); err != nil {
		return nil, servicebus.Routes{}, err
	}
	routes, err := s.routes()
	if err != nil {
		return nil, servicebus.Routes{}, err
	}
	source := s.Source
	if source == "" {
		source = "unnamed" // nothing is sent
	}
	p, err := s.publisher(routes, source, log)
	return p, routes, err
}
