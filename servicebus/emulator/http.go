package emulator

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"
)

// maxRequestBytes bounds an HTTP request.
const maxRequestBytes = 64 << 10

// speaksHTTP says whether a connection that begins with this byte does: it is
// the first letter of a method. AMQP begins with an A, which no method does.
func speaksHTTP(first byte) bool { return strings.IndexByte("CDGHOPT", first) >= 0 }

// serveHTTP answers the one request that is taken on an HTTP connection: for a
// WebSocket, or else for an admin operation. An http.Server would do, were it
// not that this connection already has a goroutine and an owner.
func (s *Server) serveHTTP(n net.Conn) {
	_ = n.SetReadDeadline(time.Now().Add(greetTimeout))
	in := bufio.NewReader(io.LimitReader(n, maxRequestBytes))
	request, err := http.ReadRequest(in)
	if err != nil {
		s.cfg.Logger.Debug("not an HTTP request", zap.Error(err))
		return
	}
	w := &response{conn: n, in: in, header: http.Header{}}
	if request.URL.Path == webSocketPath {
		_ = n.SetReadDeadline(time.Time{})
		s.webSocket(w, request)
		return
	}
	// What is left unread would have the answer lost with the connection.
	_, _ = io.Copy(io.Discard, request.Body)
	_ = n.SetWriteDeadline(time.Now().Add(writeTimeout))
	s.admin(w, request)
}

// response is the answer to one HTTP request, after which the connection ends
// or is a WebSocket's.
type response struct {
	conn    net.Conn
	in      *bufio.Reader
	header  http.Header
	written bool
}

func (u *response) Header() http.Header { return u.header }

func (u *response) WriteHeader(status int) {
	if u.written {
		return
	}
	u.written = true
	if status != http.StatusSwitchingProtocols {
		u.header.Set("Connection", "close")
	}
	_, _ = fmt.Fprintf(u.conn, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = u.header.Write(u.conn)
	_, _ = io.WriteString(u.conn, "\r\n")
}

func (u *response) Write(b []byte) (int, error) {
	u.WriteHeader(http.StatusOK)
	return u.conn.Write(b)
}

func (u *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return u.conn, bufio.NewReadWriter(u.in, bufio.NewWriter(u.conn)), nil
}
