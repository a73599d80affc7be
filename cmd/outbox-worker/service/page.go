package service

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/worker"
)

//go:embed page.html
var pageHTML string

//go:embed page.js
var pageScript []byte

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"age":   func(d time.Duration) string { return quantity.Age(d.Seconds()) },
	"count": count, "atLeast": atLeast,
	"names": names,
}).Parse(pageHTML))

// page is what the status page shows.
type page struct {
	About    About
	At       time.Time
	Up       time.Duration
	NotReady error
	Stuck    error
	Status   worker.Status
	Backlog  *counted // nil while the database cannot be asked
}

// page renders the state of this worker for a person, without anything that
// could change it. All that it needs comes from here, so it works without a way
// to the internet; the script only asks for it again.
func (e endpoints) page(w http.ResponseWriter, _ *http.Request) {
	var body bytes.Buffer
	err := pageTemplate.Execute(&body, page{
		About: e.about, At: time.Now().UTC(), Up: time.Since(e.started), NotReady: e.worker.Ready(), Stuck: e.worker.Alive(),
		Status: e.worker.Status(), Backlog: e.metrics.backlog.Load(),
	})
	if err != nil {
		http.Error(w, "the page cannot be rendered: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = body.WriteTo(w) // the client may be gone: nothing to do about it
}

func script(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	_, _ = w.Write(pageScript)
}

// count says where counting has stopped.
func count(n int64) string { return atLeast(n, n >= worker.BacklogCountCap) }

func atLeast(n int64, capped bool) string {
	if capped {
		return fmt.Sprintf("%d+", n)
	}
	return fmt.Sprint(n)
}

// names are as many of a list as a person reads.
func names(list []string) string {
	const most = 20
	if more := len(list) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), more)
	}
	return strings.Join(list, ", ")
}
