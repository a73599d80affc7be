package service

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"testing"
	"time"

	"azsqloutbox/worker"
)

func TestTheBacklogLineHasWhatTheAlertsRead(t *testing.T) {
	var out bytes.Buffer
	logBacklog(NewLogger(ProcessSettings{LogLevel: "info", LogFormat: "json"}, &out), worker.Backlog{
		Total:  12,
		Types:  []worker.TypeBacklog{{EventType: "a", OldestAge: time.Second}, {EventType: "b", OldestAge: 90 * time.Second}, {EventType: "c"}},
		Parked: 3, Waiting: 2, OverdueReceipts: 1,
	})
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	for key, want := range map[string]any{
		"msg": "backlog", "pending": 12.0, "oldest_seconds": 90.0, "oldest_event_type": "b",
		"parked": 3.0, "waiting": 2.0, "overdue_claims": 1.0,
	} {
		if line[key] != want {
			t.Errorf("%s is %v, want %v", key, line[key], want)
		}
	}

	alerts, err := os.ReadFile("../../../infra/modules/alerts.bicep")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{}
	for _, field := range regexp.MustCompile(`\bline\.(\w+)`).FindAllStringSubmatch(string(alerts), -1) {
		read[field[1]] = true
		if _, there := line[field[1]]; !there {
			t.Errorf("alerts.bicep reads %s, which the line has not", field[1])
		}
	}
	if want := map[string]bool{"msg": true, "oldest_seconds": true, "parked": true, "overdue_claims": true}; !maps.Equal(read, want) {
		t.Errorf("alerts.bicep reads %v, want %v", read, want)
	}
	if !bytes.Contains(alerts, []byte(`line.msg == "backlog"`)) {
		t.Error(`alerts.bicep does not ask for line.msg == "backlog"`)
	}
}
