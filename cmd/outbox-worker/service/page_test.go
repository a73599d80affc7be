package service_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"azsqloutbox/cmd/outbox-dev/local"
	"azsqloutbox/cmd/outbox-worker/service"
	busemulator "azsqloutbox/servicebus/emulator"
)

// troubled is a worker with something of everything to show: a parked event, a
// disabled queue, a pause, an event type with hostile text that no route names.
func troubled(t *testing.T) (address string) {
	t.Helper()
	stack := startStack(t, local.Config{Entities: []busemulator.Entity{{Name: "orders"}, {Name: "payments"}}})
	stack.Bus.SetStatus("payments", busemulator.StatusDisabled)
	if _, err := stack.SQL.Exec(t.Context(), `
INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, status, last_error) VALUES
(1, 'x', 'x', 'order-placed', '{}', 2, 'too large'), (2, 'x', 'x', 'order-paid', '{}', 0, NULL), (3, 'x', 'x', '<script>alert(1)</script>', '{}', 0, NULL),
(4, 'x', 'x', 'order-void', '{}', 0, NULL);
INSERT INTO dbo.outbox_event_control (scope, name, paused, changed_by, reason, changed_at) VALUES ('event_type', N'order-void', 1, N'ops@desk', N'<b>the consumer moves</b>', SYSUTCDATETIME());`); err != nil {
		t.Fatal(err)
	}
	routes := filepath.Join(t.TempDir(), "routes.yaml")
	if err := os.WriteFile(routes, []byte("routes:\n  - {event-type: order-placed, entity: orders}\n  - {event-type: order-void, entity: orders}\n  - {event-type: order-paid, entity: payments}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := settingsFor(t, stack)
	s.ServiceBus.Entity, s.ServiceBus.Config = "", routes
	s.Process.Listen = freeAddress(t)
	runService(t, s)
	eventually(t, "everything shows", func() bool {
		_, page := get(t, s.Process.Listen, "/")
		return strings.Contains(page, "Destinations in trouble") && strings.Contains(page, "no route names") && strings.Contains(page, "Event types")
	})
	return s.Process.Listen
}

func TestStatusPageSaysWhatIsWrong(t *testing.T) {
	address := troubled(t)
	_, page := get(t, address, "/")
	for _, want := range []string{
		"not ready", "&lt;script&gt;alert(1)&lt;/script&gt;", "payments", "the table was counted ", "ops@desk", "&lt;b&gt;the consumer moves&lt;/b&gt;", `<b class="bad">1</b>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not hold %q:\n%s", want, page)
		}
	}
	if outside := regexp.MustCompile(`(?i)(src|href)="[^/#]|url\(|@import|//[a-z]`).FindString(page); outside != "" {
		t.Errorf("the page asks for something from outside: %s", outside)
	}
	if code, script := get(t, address, "/page.js"); code != 200 || !strings.Contains(script, "fetch(") {
		t.Errorf("the script answers %d: %s", code, script)
	}
	_, metrics := get(t, address, "/metrics")
	for _, want := range []string{
		"\noutbox_ready 1\n", `outbox_breaker_open{destination="payments",state="`, `outbox_events_failed{state="parked"} 1`, `outbox_paused{name="order-void",scope="event_type"} 1`,
		`outbox_events_pending{event_type="<script>alert(1)</script>",routed="false"} 1`, `outbox_events_pending{event_type="order-paid",routed="true"} `, // 0 while it is claimed
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
}

// The worker's own --paused shows beside a pause of one event type.
func TestAPausedWorkerShowsBesideOtherPauses(t *testing.T) {
	stack := startStack(t, local.Config{})
	if _, err := stack.SQL.Exec(t.Context(), `
INSERT INTO dbo.outbox_event_control (scope, name, paused, changed_by, reason, changed_at) VALUES ('event_type', N'order-void', 1, N'ops@desk', N'', SYSUTCDATETIME());`); err != nil {
		t.Fatal(err)
	}
	s := settingsFor(t, stack)
	s.Claim.Paused = true
	s.Process.Listen = freeAddress(t)
	runService(t, s)
	var metrics string
	eventually(t, "the pause of the event type shows", func() bool {
		_, metrics = get(t, s.Process.Listen, "/metrics")
		return strings.Contains(metrics, `outbox_paused{name="order-void",scope="event_type"} 1`)
	})
	if !strings.Contains(metrics, `outbox_paused{name="",scope="worker"} 1`) {
		t.Errorf("/metrics does not show the worker's own pause:\n%s", metrics)
	}
	if code, ready := get(t, s.Process.Listen, "/readyz"); code != 200 || ready != "ready (paused)\n" {
		t.Errorf("/readyz answers %d: %s", code, ready)
	}
}

// The alert that events are late must see a pause, also where a default route
// makes the worker know no event type before it looks.
func TestAPausedWorkerTellsTheBacklogsAge(t *testing.T) {
	stack := startStack(t, local.Config{})
	enqueue(t, stack, event("order-placed", "{}"))
	s := settingsFor(t, stack)
	s.Claim.Paused = true
	s.Process.Listen = freeAddress(t)
	runService(t, s)
	eventually(t, "the age of what is pending shows", func() bool {
		_, metrics := get(t, s.Process.Listen, "/metrics")
		return strings.Contains(metrics, `outbox_oldest_pending_age_seconds{event_type="order-placed"}`) &&
			strings.Contains(metrics, `outbox_events_pending{event_type="order-placed",routed="true"} 1`)
	})
}

// browse runs a browser without a window until it has done what args say.
func browse(t *testing.T, args ...string) string {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on this machine: what the page holds is checked without one")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir=" + t.TempDir(), "--window-size=1000,900",
	}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return string(out)
}

// A worker that hangs answers neither yes nor no.
func TestStatusPageOfAWorkerThatHangs(t *testing.T) {
	t.Parallel()
	givenUp := make(chan struct{})
	var once sync.Once // a slow machine may let it ask again
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Sec-Fetch-Mode") == "navigate" {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<p id="stale" hidden>old</p><main></main><img src="/late"><script src="/page.js" defer></script>`)
			return
		}
		<-q.Context().Done()
		once.Do(func() { close(givenUp) })
	})
	mux.HandleFunc("GET /page.js", func(w http.ResponseWriter, q *http.Request) { http.ServeFile(w, q, "page.js") })
	// The page is done, and printed, with its picture.
	mux.HandleFunc("GET /late", func(http.ResponseWriter, *http.Request) {
		select {
		case <-givenUp:
		case <-time.After(patience):
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	if dom := browse(t, "--dump-dom", server.URL); !strings.Contains(dom, `<p id="stale">`) {
		t.Errorf("the page does not say that the worker hangs:\n%s", dom)
	}
}

// A person's browser: the page is drawn and its script keeps it fresh.
func TestStatusPageInABrowser(t *testing.T) {
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("no chromium on this machine: what the page holds is checked without one")
	}
	address := troubled(t)
	shot := filepath.Join(t.TempDir(), "page.png")
	if keep := os.Getenv("OUTBOX_TEST_SCREENSHOT"); keep != "" {
		shot = keep
	}
	run := func(args ...string) string {
		return browse(t, append([]string{"--virtual-time-budget=5000"}, args...)...)
	}
	// The script has put the main part in anew by then; what it imported is shown
	// as text still.
	dom := run("--dump-dom", "http://"+address+"/")
	if !strings.Contains(dom, "Destinations in trouble") || strings.Contains(dom, "<script>alert") || strings.Count(dom, "<main>") != 1 {
		t.Errorf("the browser holds\n%s", dom)
	}
	run("--screenshot="+shot, "http://"+address+"/")
	if info, err := os.Stat(shot); err != nil || info.Size() < 10_000 {
		t.Errorf("the picture is %v, %v", info, err)
	}
}

// Neither a log nor anything that is served holds a secret, also while nothing
// works.
func TestNoSecretLeaves(t *testing.T) {
	const password, key = "Canary-Pa55word", "Q2FuYXJ5LUtleS1DYW5hcnktS2V5LUNhbmFyeS1LZXk="
	var logged bytes.Buffer
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(zapcore.AddSync(&logged)), zap.DebugLevel))
	stack := startStack(t, local.Config{})
	for name, change := range map[string]func(*service.Settings){
		"wrong password": func(s *service.Settings) {
			s.SQL.DSN = strings.Replace(s.SQL.DSN, "Outbox-Local-1", password, 1)
		},
		"nothing there": func(s *service.Settings) {
			s.SQL.DSN = "sqlserver://sa:" + password + "@" + freeAddress(t) + "?database=outbox&dial+timeout=1"
		},
		"wrong key": func(s *service.Settings) {
			s.ServiceBus.ConnectionString = regexp.MustCompile(`SharedAccessKey=[^;]*`).ReplaceAllString(s.ServiceBus.ConnectionString, "SharedAccessKey="+key)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := settingsFor(t, stack)
			s.Process.Listen = freeAddress(t)
			change(&s)
			enqueue(t, stack, event("order-placed", "{}"))
			w, err := service.New(s, log)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- w.Run(ctx) }()
			served := ""
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				if ended(done) {
					break // the password is wrong, and no waiting mends that
				}
				code, ready := get(t, s.Process.Listen, "/readyz")
				if code == 503 && !strings.Contains(ready, "not connected to the database yet") {
					for _, path := range []string{"/", "/metrics", "/livez", "/readyz"} {
						_, body := get(t, s.Process.Listen, path)
						served += body
					}
					break
				}
			}
			cancel()
			if err := <-done; err != nil {
				served += err.Error()
			}
			if served == "" {
				t.Fatal("nothing was served: the test proves nothing")
			}
			for _, secret := range []string{password, key} {
				if strings.Contains(served, secret) || strings.Contains(logged.String(), secret) {
					t.Errorf("%s shows in\n%s\n%s", secret, served, logged.String())
				}
			}
		})
	}
}

// ended says whether a run is over, and leaves its result where it is.
func ended(done chan error) bool {
	select {
	case err := <-done:
		done <- err
		return true
	default:
		return false
	}
}
