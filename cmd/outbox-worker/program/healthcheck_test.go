package program

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthcheckAsksTheWorkerOfTheSameListen(t *testing.T) {
	healthy := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/livez":
			http.NotFound(w, r)
		case healthy:
			_, _ = w.Write([]byte("alive\n"))
		default:
			http.Error(w, "stuck: lane 3", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()

	code, stdout, stderr := outboxWorker(t, t.Context(), "--healthcheck", "--listen", address)
	if code != 0 || stdout != "alive\n" || stderr != "" {
		t.Errorf("alive: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}

	healthy = false
	code, stdout, stderr = outboxWorker(t, t.Context(), "--healthcheck", "--listen", address)
	if code != 1 || stdout != "" || !strings.Contains(stderr, "stuck: lane 3") {
		t.Errorf("stuck: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}

	t.Setenv("OUTBOX_LISTEN", address)
	if code, _, stderr = outboxWorker(t, t.Context(), "--healthcheck"); code != 1 || !strings.Contains(stderr, address) {
		t.Errorf("with OUTBOX_LISTEN: exit code %d, stderr %q", code, stderr)
	}
}

func TestHealthcheckWithNobodyThere(t *testing.T) {
	// A port that was just given back: nobody listens on it.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		listen string
		code   int
		want   string
	}{
		{address, 1, "no worker answers"},
		{"off", 2, "--listen is off"},
		{"nonsense", 2, "host:port"},
	} {
		code, stdout, stderr := outboxWorker(t, t.Context(), "--healthcheck", "--listen", tt.listen)
		if code != tt.code || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tt.want) {
			t.Errorf("--listen %s: exit code %d, stdout %q, stderr %q", tt.listen, code, stdout, stderr)
		}
	}
}

func TestAWorkerOnEveryAddressIsAskedOverLoopback(t *testing.T) {
	for listen, want := range map[string]string{
		":8080":          "http://127.0.0.1:8080/livez",
		"0.0.0.0:8080":   "http://127.0.0.1:8080/livez",
		"[::]:8080":      "http://127.0.0.1:8080/livez",
		"127.0.0.1:9090": "http://127.0.0.1:9090/livez",
		"[::1]:9090":     "http://[::1]:9090/livez",
	} {
		if got, err := livezURL(listen); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", listen, got, err, want)
		}
	}
}
