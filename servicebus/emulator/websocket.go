package emulator

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/zap"
)

const (
	// webSocketPath is where the service speaks AMQP over WebSockets, under the
	// subprotocol "amqp".
	// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-protocol-guide
	webSocketPath = "/$servicebus/websocket"
	// maxRequestBytes bounds the request for the upgrade.
	maxRequestBytes = 16 << 10
)

// webSocket upgrades an HTTP connection and speaks AMQP inside it. An
// http.Server would do, were it not that this connection already has a
// goroutine and an owner.
func (s *Server) webSocket(n net.Conn) {
	_ = n.SetReadDeadline(time.Now().Add(greetTimeout))
	in := bufio.NewReader(io.LimitReader(n, maxRequestBytes))
	request, err := http.ReadRequest(in)
	if err != nil {
		s.cfg.Logger.Debug("not an HTTP request", zap.Error(err))
		return
	}
	_ = n.SetReadDeadline(time.Time{})
	w := &upgrade{conn: n, in: in, header: http.Header{}}
	if request.URL.Path != webSocketPath {
		http.Error(w, "only "+webSocketPath+" is served here", http.StatusNotFound)
		return
	}
	socket, err := websocket.Accept(w, request, &websocket.AcceptOptions{
		Subprotocols:       []string{"amqp"},
		InsecureSkipVerify: true, // an origin is a browser's affair
	})
	if err != nil {
		s.cfg.Logger.Debug("WebSocket upgrade refused", zap.Error(err))
		return
	}
	if socket.Subprotocol() != "amqp" {
		_ = socket.Close(websocket.StatusPolicyViolation, "the subprotocol must be amqp")
		return
	}
	s.serve(websocket.NetConn(context.Background(), socket, websocket.MessageBinary))
}

// upgrade is the answer to one HTTP request, after which the connection is the
// WebSocket's.
type upgrade struct {
	conn    net.Conn
	in      *bufio.Reader
	header  http.Header
	written bool
}

func (u *upgrade) Header() http.Header { return u.header }

func (u *upgrade) WriteHeader(status int) {
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

func (u *upgrade) Write(b []byte) (int, error) {
	u.WriteHeader(http.StatusOK)
	return u.conn.Write(b)
}

func (u *upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return u.conn, bufio.NewReadWriter(u.in, bufio.NewWriter(u.conn)), nil
}
