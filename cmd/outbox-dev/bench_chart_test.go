package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestBenchChart(t *testing.T) {
	var svg strings.Builder
	report := benchReport{Results: []benchResult{
		{Network: "local", Strategy: "serial", EventsPerSecond: 1000},
		{Network: "local", Strategy: "pipeline", EventsPerSecond: 4000, CPUMicros: 7.5},
		{Network: "azure", Strategy: "pipeline", EventsPerSecond: 3000, CPUMicros: 9},
	}}
	if err := report.chart(&svg); err != nil {
		t.Fatal(err)
	}
	widths := map[string][]string{}
	var words []string
	for decoder := xml.NewDecoder(strings.NewReader(svg.String())); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, &svg)
		}
		switch token := token.(type) {
		case xml.CharData:
			words = append(words, string(token))
		case xml.StartElement:
			for _, a := range token.Attr {
				if token.Name.Local == "rect" && a.Name.Local == "width" {
					widths[a.Value] = append(widths[a.Value], token.Name.Local)
				}
			}
		}
	}
	// 4,000 a second takes the whole width, 1,000 a quarter of it.
	if widths["520.0"] == nil || widths["130.0"] == nil {
		t.Errorf("bars of %v", widths)
	}
	text := strings.Join(words, "\n")
	for _, want := range []string{"local: events a second", "azure: CPU of the strategy's process", "4000", "7.5", "serial"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
