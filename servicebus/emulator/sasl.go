package emulator

import (
	"bytes"
	"fmt"
	"time"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// mechanisms are those that the service offers. All but PLAIN only let the
// client in: what it may do is up to the tokens it puts to $cbs. MSSBCBS is
// the service's own name for that.
var mechanisms = []amqp.Symbol{"MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL"}

// authenticate does the SASL exchange after the client sent the SASL header.
func (c *conn) authenticate() error {
	c.out.append(func(b []byte) []byte {
		b = append(b, amqp.HeaderSASL[:]...)
		return amqp.AppendFrame(b, amqp.FrameSASL, 0, &amqp.SASLMechanisms{Mechanisms: mechanisms}, nil)
	})
	f, err := c.in.Next()
	if err != nil {
		return err
	}
	start, ok := f.Body.(*amqp.SASLInit)
	if !ok || f.Type != amqp.FrameSASL {
		return fmt.Errorf("%w: %T where sasl-init belongs", amqp.ErrMalformed, f.Body)
	}
	outcome := amqp.SASLOK
	switch start.Mechanism {
	case "MSSBCBS", "ANONYMOUS", "EXTERNAL":
	case "PLAIN":
		// authzid NUL authcid NUL password (RFC 4616): a policy's name and key.
		outcome = amqp.SASLAuth
		if parts := bytes.SplitN(start.Response, []byte{0}, 3); len(parts) == 3 {
			if rights := c.server.policies.password(string(parts[1]), string(parts[2])); rights != 0 {
				c.authorize("", rights, time.Time{})
				outcome = amqp.SASLOK
			}
		}
	default:
		outcome = amqp.SASLAuth
	}
	c.out.append(func(b []byte) []byte {
		return amqp.AppendFrame(b, amqp.FrameSASL, 0, &amqp.SASLOutcome{Code: outcome}, nil)
	})
	if outcome != amqp.SASLOK {
		return fmt.Errorf("SASL %s was refused", start.Mechanism)
	}
	return nil
}
