package servicebus

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/coder/websocket"
)

// dialWebSocket opens the WebSocket that carries AMQP, as the AMQP WebSocket
// binding has it (subprotocol "amqp", binary messages). Proxies are taken from
// the environment, as net/http does.
func (c Config) dialWebSocket(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
	url := args.Host
	if parsed, err := parseConnectionString(c.ConnectionString); err == nil && parsed.plain {
		// UseDevelopmentEmulator=true means no TLS; azservicebus says wss all the
		// same.
		url = "ws" + strings.TrimPrefix(url, "wss")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = c.TLS
	transport.ForceAttemptHTTP2 = false // a WebSocket begins as HTTP/1.1
	socket, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		HTTPClient:   &http.Client{Transport: transport},
		Subprotocols: []string{"amqp"},
	})
	if err != nil {
		return nil, fmt.Errorf("open a WebSocket for AMQP: %w", err)
	}
	// The connection outlives the send that opened it.
	return websocket.NetConn(context.WithoutCancel(ctx), socket, websocket.MessageBinary), nil
}
