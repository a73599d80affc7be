package service

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/worker"
)

// endpoints serves health, metrics and the status page of one worker.
type endpoints struct {
	worker  *worker.Worker
	metrics *metrics
	about   About
	started time.Time
}

// About is what the status page and the start log say of this process.
type About struct {
	Version string
	Owner   string
	Table   string
	Broker  string
}

func (e endpoints) handler() http.Handler {
	mux := http.NewServeMux()
	// A database or a broker that is away is no reason to restart the container:
	// livez answers as long as the process can.
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	mux.HandleFunc("GET /readyz", e.readyz)
	mux.Handle("GET /metrics", e.metrics.handler())
	mux.HandleFunc("GET /{$}", e.status)
	return mux
}

func (e endpoints) readyz(w http.ResponseWriter, _ *http.Request) {
	if err := e.worker.Ready(); err != nil {
		http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	if e.worker.Status().Paused {
		fmt.Fprintln(w, "ready (paused)")
		return
	}
	fmt.Fprintln(w, "ready")
}

var statusPage = template.Must(template.New("status").Parse(`<!doctype html>
<meta charset="utf-8"><meta http-equiv="refresh" content="5">
<title>outbox-worker</title>
<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:52rem}td,th{padding:.15rem 1rem .15rem 0;text-align:left}.bad{color:#b00020}</style>
<h1>outbox-worker {{.About.Version}}</h1>
<p>{{.About.Table}} → {{.About.Broker}}, as {{.About.Owner}}, up {{.Up}}</p>
{{if .NotReady}}<p class="bad">Not ready: {{.NotReady}}</p>{{else if .Status.Paused}}<p>Paused, claiming nothing: {{.Status.PausedWhy}}.</p>{{else}}<p>Ready.</p>{{end}}
<p>In flight: {{.Status.InFlightEvents}} events, {{.Status.OpenClaims}} open claims</p>
{{with .Status.Unrouted}}<p class="bad">Pending events that no route names: {{range .}}{{printf "%q" .}} {{end}}</p>{{end}}
{{with .Backlog}}<table><tr><th>event type<th>pending<th>oldest</tr>
{{range .Types}}<tr><td>{{.EventType}}<td>{{.Pending}}<td>{{.OldestAge}}</tr>
{{end}}</table>
<p>{{.Total}} pending in all, by the catalog</p>{{end}}
<p><a href="/readyz">readyz</a> <a href="/livez">livez</a> <a href="/metrics">metrics</a></p>
`))

func (e endpoints) status(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	page := struct {
		About    About
		Up       time.Duration
		NotReady error
		Status   worker.Status
		Backlog  *worker.Backlog
	}{e.about, time.Since(e.started).Round(time.Second), e.worker.Ready(), e.worker.Status(), e.metrics.backlog.Load()}
	_ = statusPage.Execute(w, page) // the client may be gone: nothing to do about it
}

// serve answers until ctx ends, and then lets the answers under way finish.
func serve(ctx context.Context, listener net.Listener, h http.Handler, log *zap.Logger) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          zap.NewStdLog(log),
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(end) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		<-ended
		return nil
	}
	stop()
	return fmt.Errorf("serve health and metrics on %s: %w", listener.Addr(), err)
}
