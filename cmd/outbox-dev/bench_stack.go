package main

import (
	"context"
	"errors"
	"io"
)

// benchStack is both engines, each in a process of its own, and the parent's
// view of the table.
type benchStack struct {
	database, broker *benchEngine
	table            benchTable
}

type benchStackConfig struct {
	network string // a key of benchNetworks
	payload int    // bytes
	// large is for tables of millions of rows: an engine that keeps them in memory
	// would else have a garbage of the same size beside them.
	large bool
}

// openBenchStack starts engines that have seen no other strategy.
func openBenchStack(ctx context.Context, log io.Writer, c benchStackConfig) (_ *benchStack, err error) {
	s := &benchStack{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	delay := benchNetworks[c.network]
	var env []string
	if c.large {
		env = append(env, "GOGC=20")
	}
	if s.database, err = startBenchEngine(ctx, log, "sql", delay.sql, c.payload, env...); err != nil {
		return nil, err
	}
	if s.broker, err = startBenchEngine(ctx, log, "broker", delay.amqp, c.payload, env...); err != nil {
		return nil, err
	}
	if s.table, err = openBenchTable(s.database.address); err != nil {
		return nil, err
	}
	return s, nil
}

// counts is what both engines have done and used.
func (s *benchStack) counts() (database, broker benchCounts, err error) {
	if database, err = s.database.counts(); err != nil {
		return database, broker, err
	}
	broker, err = s.broker.counts()
	return database, broker, err
}

// during is what both engines have done and used while work ran.
func (s *benchStack) during(work func() error) (database, broker benchCounts, err error) {
	databaseBefore, brokerBefore, err := s.counts()
	if err != nil {
		return database, broker, err
	}
	if err := work(); err != nil {
		return database, broker, err
	}
	database, broker, err = s.counts()
	return database.since(databaseBefore), broker.since(brokerBefore), err
}

// close ends the processes and returns when they have ended.
func (s *benchStack) close() (err error) {
	if s.table.DB != nil {
		err = s.table.Close()
	}
	for _, e := range []*benchEngine{s.broker, s.database} {
		if e != nil {
			err = errors.Join(err, e.close())
		}
	}
	return err
}
