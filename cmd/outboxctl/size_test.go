package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// size asks no database, so nothing is set here.
func runSize(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("OUTBOX_SQL_DSN", "")
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"size"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

func TestSizeJSON(t *testing.T) {
	code, out, errs := runSize(t, "--events-per-second", "1000", "--payload", "600", "--json")
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"vcores": 2.0, "log_mb_per_s": 3.26, "messaging_units": 1.0, "replicas": 2.0, "storage_gb": 267.0,
		"service_bus_tier": "Premium", "credits_per_s": 2000.0, "limiting_factor": "smallest_size", "tier": "General Purpose", "fits": true,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if problems, ok := got["problems"].([]any); !ok || len(problems) != 0 {
		t.Errorf("problems are %v, want an empty list", got["problems"])
	}
}

func TestSizeText(t *testing.T) {
	code, out, errs := runSize(t, "--events-per-second", "350", "--average", "34.7", "--payload", "600", "--unicode", "--retention", "336h", "--tier", "BC")
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{
		"350 events/s of 600 bytes, sent ones kept for 336h, in Business Critical",
		"BC_Gen5_2: the smallest size is enough", "59 GB", "700 of 1,000 credits/s; Premium would take 1 messaging unit\n",
		"OUTBOX_SERVICEBUS_RATE=250 leaves the receivers their credits; with a replica away that is 250 events/s, below the peak\n", "All rows would be in memory with 24 vCores.", "* the database carries nothing but the outbox",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the text has no %q:\n%s", want, out)
		}
	}
}

func TestSizeOfATopic(t *testing.T) {
	for _, c := range []struct{ events, want string }{
		{"1", "300 copies/s, one of each event for each of 300 subscriptions\n"},
		{"1", "OUTBOX_SERVICEBUS_RATE=0.83 leaves"},
		{"200", "60,000 copies/s"},
	} {
		if _, out, errs := runSize(t, "--events-per-second", c.events, "--payload", "600", "--subscriptions", "300"); !strings.Contains(out, c.want) {
			t.Errorf("%s events/s: the text has no %q: %s\n%s", c.events, c.want, errs, out)
		}
	}
}

// What no size carries is a finding, with the way out.
func TestSizeThatDoesNotFit(t *testing.T) {
	code, out, errs := runSize(t, "--events-per-second", "1000", "--payload", "10000", "--retention", "1h")
	if code != exitFound || errs != "" {
		t.Errorf("exit %d, want %d; stderr %q", code, exitFound, errs)
	}
	if !strings.Contains(out, "Problem: no size of General Purpose has the log rate for it") || !strings.Contains(out, "Hyperscale does, with ") || !strings.Contains(out, "no size of General Purpose is enough: ") {
		t.Errorf("no problem, or no way out:\n%s", out)
	}
}

func TestSizeRefusesNonsense(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--payload=600", "--events-per-second"},
		{"--events-per-second=5", "--payload"},
		{"--events-per-second=0 --payload=600", "--events-per-second is 0"},
		{"--events-per-second=-5 --payload=600", "--events-per-second is -5"},
		{"--events-per-second=NaN --payload=600", "--events-per-second is NaN"},
		{"--events-per-second=Inf --payload=600", "--events-per-second is +Inf"},
		{"--events-per-second=many --payload=600", "--events-per-second"},
		{"--events-per-second=5 --payload=0", "--payload is 0"},
		{"--events-per-second=5 --payload=-1", "--payload is -1"},
		{"--events-per-second=5 --payload=1.5", "--payload"},
		{"--events-per-second=5 --payload=1048576", "above the 1048576 bytes that a link takes"},
		{"--events-per-second=5 --payload=99999999999999999999", "--payload"},
		{"--events-per-second=5 --payload=600 --headers=-1", "--headers is -1"},
		{"--events-per-second=5 --payload=600 --average=6", "--average is 6"},
		{"--events-per-second=5 --payload=600 --retention=0s", "--retention is 0"},
		{"--events-per-second=5 --payload=600 --retention=-1h", "--retention is -1h"},
		{"--events-per-second=5 --payload=600 --retention=72", "--retention"},
		{"--events-per-second=5 --payload=600 --outage=0s", "--outage is 0"},
		{"--events-per-second=5 --payload=600 --tier=basic", `--tier is "basic"`},
		{"--events-per-second=5 --payload=600 --subscriptions=-1", "--subscriptions is -1"},
	} {
		code, out, errs := runSize(t, strings.Fields(c.args)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q; want exit %d and %q", c.args, code, out, errs, exitUsage, c.want)
		}
	}
}
