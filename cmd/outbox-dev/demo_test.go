package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestDemoLosesNothing(t *testing.T) {
	for _, args := range [][]string{
		{"--events", "3000"},
		{"--events", "500", "--payload", "80", "--lanes", "1", "--batch", "7"},
		{"--events", "200", "--payload", "20000"},
		{"--events", "1"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), append([]string{"demo", "--json"}, args...), &stdout, &stderr)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, &stderr)
			}
			var r result
			decoder := json.NewDecoder(&stdout)
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&r); err != nil {
				t.Fatalf("the result is no single JSON object: %v", err)
			}
			if r.Lost != 0 || r.Duplicates != 0 || r.Altered != 0 || r.Received != r.Events || r.Events == 0 {
				t.Errorf("result %+v, want every event once", r)
			}
			if r.EventsPerSecond <= 0 || r.ClaimP50 <= 0 || r.ClaimP99 < r.ClaimP50 || r.PublishP50 <= 0 || r.SettleP50 <= 0 || r.OldestWait <= 0 {
				t.Errorf("result %+v, want every figure measured", r)
			}
		})
	}
}

func TestDemoNoticesAnAlteredMessage(t *testing.T) {
	in := newInspector(samples{payloadBytes: 100}, 3, func(int) {})
	for name, spoil := range map[string]func(*message){
		"payload":  func(m *message) { m.Body = samples{payloadBytes: 101}.payload(1) },
		"subject":  func(m *message) { m.Subject = new(string) },
		"id":       func(m *message) { m.MessageID = "1" },
		"property": func(m *message) { m.ApplicationProperties["tenant"] = "tenant-6" },
		"number":   func(m *message) { m.Body = samples{payloadBytes: 100}.payload(3) },
		"no JSON":  func(m *message) { m.Body = []byte("x") },
	} {
		m := sampleMessage(in.samples, 1)
		if n, err := in.check(m); n != 1 || err != nil {
			t.Fatalf("a good message is refused: %v", err)
		}
		spoil(m)
		if _, err := in.check(m); err == nil {
			t.Errorf("a message with another %s passes", name)
		}
	}
}

func TestDemoWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"demo", "--events", "0"},
		{"demo", "--payload", "10"},
		{"demo", "--lanes", "0"},
		{"demo", "--lanes", "100"},
		{"demo", "--batch", "5000"},
		{"serve", "--sql-round-trip=-5s"},
		{"serve", "--sql-addr", "nonsense"},
		{"demo", "--what"},
		{"dance"},
		{},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr); code != 2 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v: exit code %d and %q, want 2 and one line", args, code, &stderr)
		}
	}
}
