package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
)

// chaosRun is what the parts of a run share.
type chaosRun struct {
	stack       *local.Stack
	log         io.Writer
	poisonEvery int
	routes      string // the file
	workers     []*chaosWorker
	next        atomic.Int64 // number of the next event

	mu         sync.Mutex
	faults     map[string]int
	troubled   []interval // when a fault was near that can make duplicates
	problems   []string
	badExits   int
	rolledBack map[int]bool // numbers of events whose transaction was rolled back
}

type interval struct{ from, until time.Time }

// happened notes a fault that is over.
func (c *chaosRun) happened(kind string, duplicates bool, from time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[kind]++
	if duplicates {
		c.troubled = append(c.troubled, interval{from, time.Now()})
	}
}

// trouble notes a moment at which answers were lost.
func (c *chaosRun) trouble(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.troubled = append(c.troubled, interval{at, at})
}

func (c *chaosRun) problem(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.problems) < 20 {
		c.problems = append(c.problems, text)
	}
}

// chaosWorker is a worker process that is started again whenever it ends.
type chaosWorker struct {
	run  *chaosRun
	name string

	mu     sync.Mutex // held while the process is changed or frozen
	cmd    *exec.Cmd
	exited chan struct{}
}

func (c *chaosRun) startWorkers(ctx context.Context, n int) error {
	file, err := os.CreateTemp("", "outbox-chaos-routes-*.yaml")
	if err != nil {
		return err
	}
	c.routes = file.Name()
	_, err = file.WriteString(chaosRoutes)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	for i := range n {
		w := &chaosWorker{run: c, name: fmt.Sprintf("chaos-%d", i+1)}
		c.workers = append(c.workers, w)
		if err := w.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start is called with mu held, or before anyone else knows the worker.
func (w *chaosWorker) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, "worker",
		"--owner", w.name, "--source", source, "--config", w.run.routes, "--listen", "off", "--log-level", "warn",
		"--lease", chaosLease.String(), "--reap-every", "500ms", "--grace", chaosGrace.String(), "--batch", "100",
		"--servicebus-send-timeout", chaosSendTimeout.String())
	cmd.Env = append(os.Environ(),
		"OUTBOX_SQL_DSN="+w.run.stack.SQL.DSN(), "OUTBOX_SERVICEBUS_CONNECTION_STRING="+w.run.stack.Bus.PlainConnectionString(),
		"OUTBOX_ENTITY=", "OUTBOX_SERVICEBUS_NAMESPACE=")
	cmd.Stderr = w.run.log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a worker process: %w", err)
	}
	exited := make(chan struct{})
	w.cmd, w.exited = cmd, exited
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	return nil
}

// kill ends a worker where it stands and starts another one in its place.
func (c *chaosRun) kill(ctx context.Context, s step) {
	w := c.workers[s.worker]
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.cmd.Process.Kill()
	<-w.exited
	wait(ctx, s.length/2)
	if err := w.start(ctx); err != nil {
		c.problem(err.Error())
	}
}

// terminate asks a worker to stop, which it must do in its time and with exit
// code 0, and starts another one.
func (c *chaosRun) terminate(ctx context.Context, s step) {
	w := c.workers[s.worker]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop()
	if err := w.start(ctx); err != nil {
		c.problem(err.Error())
	}
}

// stopMargin is what a process may need beyond its grace: it competes with
// everything else for the processors of this machine.
const stopMargin = 6 * time.Second

func (w *chaosWorker) stop() {
	_ = w.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-w.exited:
		if state := w.cmd.ProcessState; state.ExitCode() != 0 && !endedBySIGTERM(state) {
			w.bad(fmt.Sprintf("%s ended with %s after SIGTERM", w.name, state))
		}
	case <-time.After(chaosGrace + stopMargin):
		w.bad(fmt.Sprintf("%s did not stop within %s of SIGTERM", w.name, chaosGrace+stopMargin))
		_ = w.cmd.Process.Kill()
		<-w.exited
	}
}

// endedBySIGTERM says that the signal found a process that had only just begun
// and did not listen yet: it had nothing in hand.
func endedBySIGTERM(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}

func (w *chaosWorker) bad(text string) {
	w.run.problem(text)
	w.run.mu.Lock()
	defer w.run.mu.Unlock()
	w.run.badExits++
}

// freeze stops a worker where it stands until its leases are over, and lets it
// go on as if nothing had been.
func (c *chaosRun) freeze(ctx context.Context, s step) {
	w := c.workers[s.worker]
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.cmd.Process.Signal(syscall.SIGSTOP)
	wait(ctx, s.length)
	_ = w.cmd.Process.Signal(syscall.SIGCONT)
}

// close ends all processes and both engines.
func (c *chaosRun) close() error {
	for _, w := range c.workers {
		w.mu.Lock()
		if w.cmd != nil {
			_ = w.cmd.Process.Kill()
			<-w.exited
		}
		w.mu.Unlock()
	}
	if c.routes != "" {
		_ = os.Remove(c.routes)
	}
	return c.stack.Close()
}
