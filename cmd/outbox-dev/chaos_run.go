package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"azsqloutbox/cmd/outbox-dev/local"
)

// chaosRun is what the parts of a run share.
type chaosRun struct {
	stack       *local.Stack
	program     string // outbox-dev itself
	log         io.Writer
	poisonEvery int
	routes      string // the file
	workers     []*chaosWorker
	next        atomic.Int64 // number of the next event

	mu         sync.Mutex
	faults     map[string]int
	troubled   []trouble
	problems   []string
	badExits   int
	rolledBack map[int]bool // numbers of events whose transaction was rolled back
}

// happened counts a fault.
func (c *chaosRun) happened(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[kind]++
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

	mu      sync.Mutex // held while the process is changed or frozen
	process *chaosProcess
	over    bool // no other process comes
}

// chaosProcess is one life of a worker.
type chaosProcess struct {
	cmd *exec.Cmd
	// spoken is set by the first of those who answer for the end of the process:
	// whoever means to end it, or its end itself, which nobody asked for then.
	spoken atomic.Bool
	exited chan struct{}
	said   tail
}

// tail keeps the end of what a process wrote.
type tail struct {
	mu   sync.Mutex
	last []byte
}

const tailBytes = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-tailBytes):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last))
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
	p := &chaosProcess{exited: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), w.run.program, "worker",
		"--owner", w.name, "--source", source, "--config", w.run.routes, "--listen", "off", "--log-level", "warn",
		"--lease", chaosLease.String(), "--reap-every", "500ms", "--grace", chaosGrace.String(), "--batch", "100",
		"--servicebus-send-timeout", chaosSendTimeout.String(), "--with-input")
	if _, err := p.cmd.StdinPipe(); err != nil { // it ends with this process, or with Wait
		return fmt.Errorf("start a worker process: %w", err)
	}
	// Not the settings of whoever runs it, whose table or pause is another one's.
	p.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "OUTBOX_") }),
		"OUTBOX_SQL_DSN="+w.run.stack.SQL.DSN(), "OUTBOX_SERVICEBUS_CONNECTION_STRING="+w.run.stack.Bus.PlainConnectionString())
	p.cmd.Stderr = io.MultiWriter(&p.said, w.run.log)
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start a worker process: %w", err)
	}
	w.process = p
	go func() {
		_ = p.cmd.Wait()
		unasked := p.spoken.CompareAndSwap(false, true)
		if unasked {
			w.bad(fmt.Sprintf("%s ended by itself (%s): %s", w.name, p.cmd.ProcessState, &p.said))
		}
		close(p.exited)
		if unasked && wait(ctx, restartPause) {
			w.replace(ctx, p)
		}
	}()
	return nil
}

// restartPause keeps a worker that can do nothing but end from doing it all the
// time.
const restartPause = time.Second

// replace starts a worker anew that ended by itself, unless a fault was faster.
func (w *chaosWorker) replace(ctx context.Context, p *chaosProcess) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.process != p {
		return
	}
	if err := w.start(ctx); err != nil {
		w.bad(err.Error())
	}
}

// kill ends a worker where it stands and starts another one in its place.
func (c *chaosRun) kill(ctx context.Context, s step) {
	w := c.workers[s.worker]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kill()
	wait(ctx, s.length/2)
	if err := w.start(ctx); err != nil {
		w.bad(err.Error())
	}
}

// kill returns when the process is gone. One that was gone before, by itself, is
// a bad one.
func (w *chaosWorker) kill() {
	p := w.process
	asked := p.spoken.CompareAndSwap(false, true)
	_ = p.cmd.Process.Kill()
	<-p.exited
	if asked && !endedBy(p.cmd.ProcessState, syscall.SIGKILL) {
		w.bad(fmt.Sprintf("%s ended by itself (%s): %s", w.name, p.cmd.ProcessState, &p.said))
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
		w.bad(err.Error())
	}
}

// stopMargin is what a process may need beyond its grace: it competes with
// everything else for the processors of this machine.
const stopMargin = 6 * time.Second

func (w *chaosWorker) stop() {
	p := w.process
	asked := p.spoken.CompareAndSwap(false, true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		// A process that had only just begun did not listen to the signal yet, and
		// had nothing in hand.
		if state := p.cmd.ProcessState; asked && state.ExitCode() != 0 && !endedBy(state, syscall.SIGTERM) {
			w.bad(fmt.Sprintf("%s ended with %s after SIGTERM: %s", w.name, state, &p.said))
		}
	case <-time.After(chaosGrace + stopMargin):
		w.bad(fmt.Sprintf("%s did not stop within %s of SIGTERM", w.name, chaosGrace+stopMargin))
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

func endedBy(state *os.ProcessState, signal syscall.Signal) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
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
	_ = w.process.cmd.Process.Signal(syscall.SIGSTOP)
	wait(ctx, s.length)
	_ = w.process.cmd.Process.Signal(syscall.SIGCONT)
}

// close ends all processes and both engines.
func (c *chaosRun) close() error {
	for _, w := range c.workers {
		w.mu.Lock()
		w.over = true
		if w.process != nil {
			w.process.spoken.Store(true)
			_ = w.process.cmd.Process.Kill()
			<-w.process.exited
		}
		w.mu.Unlock()
	}
	if c.routes != "" {
		_ = os.Remove(c.routes)
	}
	return c.stack.Close()
}
