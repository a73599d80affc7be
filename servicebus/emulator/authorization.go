package emulator

import (
	"strings"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// authorization is what a connection's client has shown that it may do: its
// grants by the path that each is for, lower case and empty for the whole
// namespace. Only the connection's reading goroutine touches it.
type authorization map[string]*grant

// grant is what one token or password allows.
type grant struct {
	rights  Rights
	expires time.Time // zero for never
	timer   *time.Timer
}

// covers says whether a token for scope is good for what is at path.
func covers(scope, path string) bool {
	return scope == "" || scope == path || strings.HasPrefix(path, scope+"/")
}

// authorize notes a grant, in place of an earlier one for the same scope. It
// ends at expires unless that is zero, and the links under it end with it.
func (c *conn) authorize(scope string, rights Rights, expires time.Time) {
	if earlier := c.auth[scope]; earlier != nil {
		earlier.stop()
	}
	g := &grant{rights: rights, expires: expires}
	if !expires.IsZero() {
		g.timer = time.AfterFunc(time.Until(expires), func() { c.detachExpired(scope, expires) })
	}
	c.auth[scope] = g
}

func (g *grant) stop() {
	if g.timer != nil {
		g.timer.Stop()
	}
}

func (a authorization) stop() {
	for _, g := range a {
		g.stop()
	}
}

// allows is why the client may not do what needs one of the rights on a path,
// nil if it may.
func (c *conn) allows(path string, needed Rights) error {
	err := amqp.Errorf(condUnauthorized, "Unauthorized access. '%s' claim(s) are required to perform this operation. "+
		"Resource: '%s'.", needed, path)
	for scope, g := range c.auth {
		switch {
		case !covers(scope, path):
		case !g.expires.IsZero() && time.Now().After(g.expires):
			err = tokenExpired(g.expires)
		case g.rights.allow(needed):
			return nil
		}
	}
	return err
}

// expireTokens ends all that the client was allowed, as if the time of its
// tokens had come.
func (c *conn) expireTokens() {
	c.auth.stop()
	clear(c.auth)
	c.detachExpired("", time.Now())
}

// detachExpired detaches the links that a token opened. That it happens at the
// token's time, and not at the next operation, is believed.
func (c *conn) detachExpired(scope string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		for _, l := range s.links {
			if b := l.base(); b.path != cbsPath && covers(scope, b.path) {
				b.detachWith(l, tokenExpired(at))
			}
		}
	}
}

func tokenExpired(at time.Time) *amqp.Error {
	return amqp.Errorf(condUnauthorized, "ExpiredToken: The token is expired. Expiration time: '%s'.", at.UTC().Format(time.RFC3339))
}
