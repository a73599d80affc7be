package emulator

import (
	"context"
	"net/http"

	"github.com/coder/websocket"
	"go.uber.org/zap"
)

// webSocketPath is where the service speaks AMQP over WebSockets, under the
// subprotocol "amqp".
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-protocol-guide
const webSocketPath = "/$servicebus/websocket"

// webSocket upgrades an HTTP connection and speaks AMQP inside it.
func (s *Server) webSocket(w *response, request *http.Request) {
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
