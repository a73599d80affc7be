package emulator

import (
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// authorization is what a connection's client has shown that it may do. Only
// the connection's reading goroutine touches it.
//
// On the service each token is for one entity. Here all tokens of a connection
// add up, and they end when the one that was put last does.
type authorization struct {
	rights  Rights
	expires time.Time // zero for never
	expiry  *time.Timer
}

// authorize adds rights, which end at expires unless it is zero; the links that
// they opened then end too, as on the service.
func (c *conn) authorize(rights Rights, expires time.Time) {
	c.auth.rights |= rights
	c.auth.expires = expires
	c.auth.stop()
	if !expires.IsZero() {
		c.auth.expiry = time.AfterFunc(time.Until(expires), func() { c.detachExpired(expires) })
	}
}

func (a *authorization) stop() {
	if a.expiry != nil {
		a.expiry.Stop()
	}
}

// allows is why the client may not do what needs one of the rights on a path,
// nil if it may.
func (c *conn) allows(path string, needed Rights) error {
	a := &c.auth
	if !a.expires.IsZero() && time.Now().After(a.expires) {
		a.rights = 0
		return tokenExpired(a.expires)
	}
	if a.rights.allow(needed) {
		return nil
	}
	return amqp.Errorf(condUnauthorized, "Unauthorized access. '%s' claim(s) are required to perform this operation. "+
		"Resource: '%s'.", needed, path)
}

// expireTokens ends all that the client was allowed, as if its token's time
// had come.
func (c *conn) expireTokens() {
	c.auth.stop()
	c.auth = authorization{}
	c.detachExpired(time.Now())
}

// detachExpired detaches the links that a token opened. That it happens at the
// token's time, and not at the next operation, is believed.
func (c *conn) detachExpired(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		for _, l := range s.links {
			if b := l.base(); b.path != cbsPath {
				b.detachWith(l, tokenExpired(at))
			}
		}
	}
}

func tokenExpired(at time.Time) *amqp.Error {
	return amqp.Errorf(condUnauthorized, "ExpiredToken: The token is expired. Expiration time: '%s'.", at.UTC().Format(time.RFC3339))
}
