package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"go.uber.org/zap"

	"azsqloutbox/cmd/outbox-worker/service"
	"azsqloutbox/maintenance"
)

// logEvery is the pause between two lines of progress where no terminal is.
const logEvery = 10 * time.Second

// logger writes the steps that change something to stderr.
func (a *app) logger() *zap.Logger {
	return service.NewLogger(service.ProcessSettings{LogFormat: "console", LogLevel: "info"}, a.err)
}

// progress shows how far a task is, with rate and time left: a bar on a
// terminal, a line now and then elsewhere. done ends it.
func (a *app) progress() (report func(maintenance.Progress), done func()) {
	if isTerminal(a.err) {
		b := &bars{out: a.err}
		return b.report, b.done
	}
	l := &lines{out: a.err}
	return l.report, func() {}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// bars draws one bar a stage.
type bars struct {
	out   io.Writer
	all   *mpb.Progress
	bar   *mpb.Bar
	stage string
	last  time.Time
}

func (b *bars) report(p maintenance.Progress) {
	if b.all == nil {
		b.all = mpb.New(mpb.WithOutput(b.out), mpb.WithWidth(40))
	}
	if p.Stage != b.stage {
		if b.bar != nil {
			b.bar.Abort(false)
		}
		b.stage, b.last = p.Stage, time.Now()
		b.bar = b.all.AddBar(0,
			mpb.PrependDecorators(decor.Name(p.Stage, decor.WCSyncSpaceR), decor.CountersNoUnit("%d/%d "+p.Unit, decor.WCSyncSpace)),
			mpb.AppendDecorators(decor.AverageSpeed(0, "%.0f/s", decor.WCSyncSpace), decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace)))
	}
	b.bar.SetTotal(max(p.Total, p.Done+1), false) // complete only when the task says so
	b.bar.EwmaSetCurrent(p.Done, time.Since(b.last))
	b.last = time.Now()
}

func (b *bars) done() {
	if b.all == nil {
		return
	}
	b.bar.Abort(false)
	b.all.Wait()
}

// lines prints a line a stage and then one every logEvery.
type lines struct {
	out         io.Writer
	stage       string
	begun, last time.Time
	from        int64
}

func (l *lines) report(p maintenance.Progress) {
	now := time.Now()
	if p.Stage != l.stage {
		l.stage, l.begun, l.last, l.from = p.Stage, now, time.Time{}, p.Done
	}
	if now.Sub(l.last) < logEvery {
		return
	}
	l.last = now
	fmt.Fprintln(l.out, line(p, p.Done-l.from, now.Sub(l.begun)))
}

// line is one report: done, total, rate and time left, as far as they are known.
func line(p maintenance.Progress, moved int64, took time.Duration) string {
	text := fmt.Sprintf("%s: %d", p.Stage, p.Done)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %d", p.Total)
	}
	text += " " + p.Unit
	if moved <= 0 || took <= 0 || p.Unit == "s" {
		return text
	}
	rate := float64(moved) / took.Seconds()
	text += fmt.Sprintf(", %.0f/s", rate)
	if left := p.Total - p.Done; left > 0 {
		text += fmt.Sprintf(", %s left", time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second))
	}
	return text
}
