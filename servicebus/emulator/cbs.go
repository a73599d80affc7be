package emulator

import (
	"fmt"
	"net/http"
	"time"

	"azsqloutbox/servicebus/emulator/internal/broker"
)

// cbsNode takes tokens (claims-based security).
// https://docs.oasis-open.org/amqp/amqp-cbs/v1.0/amqp-cbs-v1.0.html
type cbsNode struct{}

// maxTokens is how many tokens a connection may hold (azure-sdk-for-js #1714).
// The status of the refusal is believed.
const maxTokens = 1000

// Types of tokens.
const (
	tokenSAS = "servicebus.windows.net:sastoken"
	tokenJWT = "jwt"
)

func (cbsNode) accept(r *receiver, m incoming) {
	c := r.session.conn
	serve(r, m, func(q *request) reply {
		code, text := c.putToken(q)
		return reply{properties: map[string]any{"status-code": int32(code), "status-description": text}}
	})
}

func (c *conn) putToken(q *request) (code int, text string) {
	if operation := q.text("operation"); operation != "put-token" {
		return http.StatusNotImplemented, "operation " + operation + " is not modelled on $cbs"
	}
	if code := c.server.faults.onPutToken(path(q.text("name"))); code != 0 {
		return code, "scripted: " + http.StatusText(code)
	}
	token, _ := q.body.(string)
	scope := path(q.text("name"))
	if c.auth[scope] == nil && len(c.auth) >= maxTokens {
		return http.StatusForbidden, fmt.Sprintf("The maximum number of '%d' tokens per connection has been reached.", maxTokens)
	}
	switch kind := q.text("type"); kind {
	case tokenSAS:
		rights, expires, err := c.server.policies.checkSAS(token, scope)
		if err != nil {
			return http.StatusUnauthorized, string(broker.CondNotAllowed) + ": " + err.Error()
		}
		c.authorize(scope, rights, expires)
	case tokenJWT:
		expires, err := checkJWT(token, time.Now())
		if err != nil {
			return http.StatusUnauthorized, err.Error()
		}
		c.authorize(scope, c.server.cfg.EntraRights, expires)
	default:
		return http.StatusBadRequest, "token type " + kind + " is not known"
	}
	return http.StatusAccepted, "Accepted"
}
