package main

import (
	"fmt"
	"io"
	"strings"
)

// Sizes of the chart, in pixels.
const (
	chartWidth  = 760
	chartLeft   = 130 // of the bars: names stand before them
	chartRight  = 110 // for the numbers behind them
	chartBar    = 18
	chartRow    = 26
	chartHeader = 44
)

// chartPanels are what is drawn for each network.
var chartPanels = []struct {
	title  string
	digits int
	value  func(benchResult) float64
}{
	{"events a second", 0, func(r benchResult) float64 { return r.EventsPerSecond }},
	{"CPU of the strategy's process, µs an event", 1, func(r benchResult) float64 { return r.CPUMicros }},
	{"round trips to the database for 1,000 events", 1, func(r benchResult) float64 { return r.RoundTrips }},
}

// chart draws the results as an SVG with one panel of bars a figure and
// network, each on a scale of its own.
func (b benchReport) chart(w io.Writer) error {
	var body strings.Builder
	y := 0
	for _, network := range b.networks() {
		for _, panel := range chartPanels {
			y += chartHeader
			fmt.Fprintf(&body, `<text x="10" y="%d" font-weight="bold">%s: %s</text>`+"\n", y-12, network, panel.title)
			largest := 0.0
			for _, r := range b.Results {
				if r.Network == network {
					largest = max(largest, panel.value(r))
				}
			}
			for _, r := range b.Results {
				if r.Network != network {
					continue
				}
				value, color := panel.value(r), "#8a9bb0"
				if r.Strategy == "pipeline" {
					color = "#0b61a4"
				}
				length := (chartWidth - chartLeft - chartRight) * value / max(largest, 1e-9)
				middle := y + chartBar - 4
				fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d">%.*f</text>`+"\n",
					chartLeft-8, middle, r.Strategy, chartLeft, y, length, chartBar, color, chartLeft+length+6, middle, panel.digits, value)
				y += chartRow
			}
		}
	}
	y += 24
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">
<rect width="100%%" height="100%%" fill="white"/>
%s<text x="10" y="%d" fill="#555">%d events of %d bytes; pipeline: %d lanes, batches of %d; %s/%s, %d CPUs, %s</text>
</svg>
`, chartWidth, y+12, body.String(), y, b.Backlog, b.PayloadBytes, b.Lanes, b.Batch, b.Machine.OS, b.Machine.Arch, b.Machine.CPUs, b.Machine.Go)
	return err
}

// networks are those of the results, in their order.
func (b benchReport) networks() []string {
	var names []string
	for _, r := range b.Results {
		if len(names) == 0 || names[len(names)-1] != r.Network {
			names = append(names, r.Network)
		}
	}
	return names
}
