package main

import (
	"io"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// bars show how many events were written and how many have arrived.
type bars struct {
	progress         *mpb.Progress
	writes, arrivals *mpb.Bar
}

func newBars(w io.Writer, events int) *bars {
	p := mpb.New(mpb.WithOutput(w), mpb.WithWidth(48))
	bar := func(name string) *mpb.Bar {
		return p.AddBar(int64(events),
			mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR), decor.CountersNoUnit("%d/%d", decor.WCSyncSpace)),
			mpb.AppendDecorators(decor.Percentage()))
	}
	return &bars{progress: p, writes: bar("written"), arrivals: bar("received")}
}

func (b *bars) wrote(n int)    { b.writes.IncrBy(n) }
func (b *bars) received(n int) { b.arrivals.IncrBy(n) }

// done leaves the bars as they are and returns when they are drawn.
func (b *bars) done() {
	b.writes.Abort(false)
	b.arrivals.Abort(false)
	b.progress.Wait()
}
