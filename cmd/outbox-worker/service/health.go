package service

import (
	"context"
	"errors"
	"fmt"
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
	mux.HandleFunc("GET /livez", e.livez)
	mux.HandleFunc("GET /readyz", e.readyz)
	mux.Handle("GET /metrics", e.metrics.handler())
	mux.HandleFunc("GET /{$}", e.page)
	mux.HandleFunc("GET /page.js", script)
	return mux
}

// livez says whether the loops move. A database or a broker that is away is no
// reason to restart the container.
func (e endpoints) livez(w http.ResponseWriter, _ *http.Request) {
	if err := e.worker.Alive(); err != nil {
		http.Error(w, "stuck: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "alive")
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
