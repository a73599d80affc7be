package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// benchProcess is this program as a child that answers each line on its input
// with one line of JSON, until its input ends: so it does not outlive its parent.
type benchProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startBenchProcess starts the child; ctx kills it.
func startBenchProcess(ctx context.Context, log io.Writer, env []string, args ...string) (*benchProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr, cmd.Env = log, append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %v: %w", args, err)
	}
	return &benchProcess{cmd: cmd, in: in, out: bufio.NewReader(out)}, nil
}

// ask sends a line and decodes the answer.
func (p *benchProcess) ask(question string, reply any) error {
	if _, err := fmt.Fprintln(p.in, question); err != nil {
		return fmt.Errorf("ask a process of bench: %w", err)
	}
	return p.answer(reply)
}

// answer decodes the next line of the process.
func (p *benchProcess) answer(reply any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("a process of bench answers nothing: %w", err)
	}
	return json.Unmarshal(line, reply)
}

// close ends the process and returns when it has ended.
func (p *benchProcess) close() error {
	_ = p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("a process of bench: %w", err)
	}
	return nil
}
