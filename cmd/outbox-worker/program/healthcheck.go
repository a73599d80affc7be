package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// healthcheckTimeout is below the time that container runtimes give a health
// check by default (Docker: 30 s), so that the reason is printed.
const healthcheckTimeout = 5 * time.Second

// healthcheck asks the /livez of the worker in this container. It is not
// /readyz: a database that is away is no reason to restart a container.
func healthcheck(ctx context.Context, listen string, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	url, err := livezURL(listen)
	if err != nil {
		fmt.Fprintln(stderr, "outbox-worker: health check:", err)
		return exitUsage
	}
	answer, err := ask(ctx, url)
	if err != nil {
		fmt.Fprintln(stderr, "outbox-worker: health check:", err)
		return exitFailed
	}
	fmt.Fprintln(stdout, answer)
	return exitDone
}

// livezURL is where a worker that listens on that address answers: a worker on
// every address is asked over loopback.
func livezURL(listen string) (string, error) {
	if listen == "off" {
		return "", errors.New("--listen is off: the worker answers nobody")
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("--listen %q: want host:port or :port", listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // an image from scratch may have no /etc/hosts
	}
	return "http://" + net.JoinHostPort(host, port) + "/livez", nil
}

func ask(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	// No proxy of the environment stands between a worker and itself.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("no worker answers: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return "", fmt.Errorf("read the answer of %s: %w", url, err)
	}
	text := strings.TrimSpace(string(body))
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answered %s: %s", url, response.Status, text)
	}
	return text, nil
}
