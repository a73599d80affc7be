package emulator

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// What the service tells of itself when a connection or a session is opened.
const (
	maxFrameSize  = 64 << 10
	channelMax    = 4999
	handleMax     = 255
	sessionWindow = 5000
	linkCredit    = 1000
	// idleTimeout is how long the client may be silent.
	idleTimeout = 4 * time.Minute
)

// Conditions of the transport.
const (
	condFraming          amqp.Symbol = "amqp:connection:framing-error"
	condUnattached       amqp.Symbol = "amqp:session:unattached-handle"
	condHandleInUse      amqp.Symbol = "amqp:session:handle-in-use"
	condMessageSize      amqp.Symbol = "amqp:link:message-size-exceeded"
	condTransferLimit    amqp.Symbol = "amqp:link:transfer-limit-exceeded"
	condInvalidField     amqp.Symbol = "amqp:invalid-field"
	condUnauthorized     amqp.Symbol = "amqp:unauthorized-access"
	condConnectionForced amqp.Symbol = "amqp:connection:forced"
	condServerBusy       amqp.Symbol = "com.microsoft:server-busy"
	condTimeout          amqp.Symbol = "com.microsoft:timeout"
)

// conn is one client's connection. Its goroutine reads and handles frames;
// another writes (outbound), and every link that sends has one of its own.
type conn struct {
	server    *Server
	net       net.Conn
	in        *amqp.FrameReader
	out       *outbound
	log       *zap.Logger
	auth      authorization
	peerFrame int         // the largest frame the client takes
	refusal   *amqp.Error // why there is to be no connection, nil if there is

	mu       sync.Mutex // guards all below, sessions and links included
	sessions map[uint16]*session
	held     holdings
	closed   bool
	links    sync.WaitGroup
}

func newConn(s *Server, n net.Conn) *conn {
	return &conn{
		server: s, net: n, in: amqp.NewFrameReader(n, maxFrameSize), out: newOutbound(n),
		log:  s.cfg.Logger.With(zap.Stringer("client", n.RemoteAddr())),
		auth: authorization{}, peerFrame: amqp.MinMaxFrameSize, sessions: map[uint16]*session{},
	}
}

// serve handles the connection until it ends, and leaves nothing running.
func (c *conn) serve() {
	go c.out.run()
	err := c.handshake()
	if err == nil {
		err = c.read()
	}
	c.end(err)
	c.links.Wait()
	<-c.out.done
}

// handshake goes as far as the exchange of opens.
func (c *conn) handshake() error {
	_ = c.net.SetReadDeadline(time.Now().Add(writeTimeout))
	header, err := c.in.Header()
	if err != nil {
		return err
	}
	if header == amqp.HeaderSASL {
		if err := c.authenticate(); err != nil {
			return err
		}
		if header, err = c.in.Header(); err != nil {
			return err
		}
	}
	c.out.append(func(b []byte) []byte { return append(b, amqp.HeaderAMQP[:]...) })
	if header != amqp.HeaderAMQP {
		return fmt.Errorf("%w: protocol header % x", amqp.ErrMalformed, header)
	}
	f, err := c.in.Next()
	if err != nil {
		return err
	}
	open, ok := f.Body.(*amqp.Open)
	if !ok {
		return fmt.Errorf("%w: %T where open belongs", amqp.ErrMalformed, f.Body)
	}
	c.peerFrame = int(min(max(open.MaxFrameSize, amqp.MinMaxFrameSize), maxFrameSize))
	if idle := time.Duration(open.IdleTimeoutMillis) * time.Millisecond; idle > 0 {
		// Half of what the peer waits, as the standard advises (part 2, 2.4.5).
		c.out.heartbeat(max(idle/2, 10*time.Millisecond))
	}
	c.out.frame(0, &amqp.Open{
		ContainerID: "emulator", MaxFrameSize: maxFrameSize, ChannelMax: channelMax,
		IdleTimeoutMillis: uint32(idleTimeout.Milliseconds()),
	})
	if c.refusal != nil {
		c.out.frame(0, &amqp.Close{Error: c.refusal})
		return c.refusal
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchUnused()
	return nil
}

// read handles frames until the connection ends. A nil error is a regular end.
func (c *conn) read() error {
	for {
		_ = c.net.SetReadDeadline(time.Now().Add(2 * idleTimeout))
		f, err := c.in.Next()
		if err != nil {
			return err
		}
		c.out.waitForRoom()
		if f.Body == nil {
			continue
		}
		if f.Type != amqp.FrameAMQP {
			return fmt.Errorf("%w: a frame of type %d", amqp.ErrMalformed, f.Type)
		}
		if _, ok := f.Body.(*amqp.Close); ok {
			c.out.frame(0, &amqp.Close{})
			return nil
		}
		if err := c.handle(&f); err != nil {
			return err
		}
	}
}

// handle does what one frame asks for. An error ends the connection.
func (c *conn) handle(f *amqp.Frame) error {
	if begin, ok := f.Body.(*amqp.Begin); ok {
		return c.begin(f.Channel, begin)
	}
	c.mu.Lock()
	s, ok := c.sessions[f.Channel]
	if !ok {
		c.mu.Unlock()
		if _, ok := f.Body.(*amqp.End); ok {
			// go-amqp sends it for a session whose begin it gave up before it was
			// written: a context that ends at the wrong moment does that.
			return nil
		}
		return fmt.Errorf("%w: %T on channel %d, which has no session", amqp.ErrMalformed, f.Body, f.Channel)
	}
	if transfer, ok := f.Body.(*amqp.Transfer); ok {
		// A transfer gives up the lock while its message is stored.
		return s.transfer(transfer, f.Payload)
	}
	defer c.mu.Unlock()
	switch body := f.Body.(type) {
	case *amqp.Attach:
		s.attach(body)
	case *amqp.Flow:
		s.flow(body)
	case *amqp.Disposition:
		s.disposition(body)
	case *amqp.Detach:
		s.detach(body)
	case *amqp.End:
		delete(c.sessions, f.Channel)
		if !s.ended { // else it answers an end of ours
			s.end()
			s.send(&amqp.End{})
		}
		c.releaseHandles(len(s.links))
	default:
		return fmt.Errorf("%w: %T was not expected", amqp.ErrMalformed, f.Body)
	}
	return nil
}

func (c *conn) begin(channel uint16, begin *amqp.Begin) error {
	if channel > channelMax {
		return fmt.Errorf("%w: channel %d is above channel-max %d", amqp.ErrMalformed, channel, channelMax)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[channel] != nil {
		return fmt.Errorf("%w: channel %d has a session already", amqp.ErrMalformed, channel)
	}
	c.sessions[channel] = newSession(c, channel, begin)
	c.out.frame(channel, &amqp.Begin{
		RemoteChannel: &channel, IncomingWindow: sessionWindow, OutgoingWindow: sessionWindow, HandleMax: handleMax,
	})
	return nil
}

// end takes the connection down: with a close frame where the client did
// something wrong, without one where it is gone.
func (c *conn) end(err error) {
	if errors.Is(err, amqp.ErrMalformed) {
		c.log.Warn("closing a connection: the client broke the protocol", zap.Error(err))
		c.out.frame(0, &amqp.Close{Error: amqp.Errorf(condFraming, "%s", err)})
	} else {
		c.log.Debug("connection ended", zap.Error(err))
	}
	c.mu.Lock()
	c.closed = true
	if c.held.unused != nil {
		c.held.unused.Stop()
	}
	for _, s := range c.sessions {
		s.end()
	}
	c.mu.Unlock()
	c.auth.stop()
	c.out.finish()
}

// detachLinks detaches those links to a path for which why has an error, and
// returns how many there were.
func (c *conn) detachLinks(path string, why func(link) *amqp.Error) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		for _, l := range s.links {
			b := l.base()
			if b.path != path || b.closed {
				continue
			}
			if err := why(l); err != nil {
				b.detachWith(l, err)
				n++
			}
		}
	}
	return n
}

// kill cuts the connection without a word.
func (c *conn) kill() { c.out.abort() }

// hangUp cuts the connection when all that is to be said has been.
func (c *conn) hangUp() { c.out.finish() }
