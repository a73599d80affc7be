package tds

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// conn is one connection from PRELOGIN to its end.
type conn struct {
	server *Server
	config *Config
	raw    net.Conn
	log    *zap.Logger

	// ctx ends with the connection, whoever ends it.
	ctx    context.Context
	cancel context.CancelCauseFunc

	in  io.Reader
	out packetWriter
	m   message
	r   response

	// The reader hands packets to the worker; three buffers go round: one being
	// filled, one waiting, one being decoded.
	packets chan packet
	free    chan []byte
	lent    []byte
	readErr error // set before packets is closed

	// attention is true from when an attention was read until the worker has
	// met it in packets.
	attention atomic.Bool
	mu        sync.Mutex
	interrupt context.CancelCauseFunc // of the running request

	// What follows belongs to the worker.
	session     Session
	utf8        bool
	transaction uint64
	bulk        []Column // announced by the last request
}

var errStrict = errors.New("the client began with TLS (encrypt=strict, TDS 8.0), which this server does not model")

func newConn(ctx context.Context, s *Server, raw net.Conn) *conn {
	c := &conn{
		server: s, config: &s.config, raw: raw,
		log: s.config.Logger.With(zap.Stringer("client", raw.RemoteAddr())),
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.in = raw
	c.out = packetWriter{w: raw, kind: packetReply, size: defaultPacketSize, before: c.roundTrip}
	c.r = response{conn: c, out: &c.out}
	return c
}

func (c *conn) kill() {
	c.cancel(net.ErrClosed)
	_ = c.raw.Close()
}

func (c *conn) roundTrip() error {
	if c.config.RoundTrip == 0 {
		return nil
	}
	timer := time.NewTimer(c.config.RoundTrip)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// serve runs the connection to its end.
func (c *conn) serve() {
	defer c.kill()
	_ = c.raw.SetDeadline(time.Now().Add(loginTimeout))
	if err := c.open(); err != nil {
		c.log.Info("login did not come about", zap.Error(err))
		return
	}
	defer c.session.Close()
	_ = c.raw.SetDeadline(time.Time{})

	c.packets, c.free, c.lent = make(chan packet, 2), make(chan []byte, 3), nil
	for range cap(c.free) {
		c.free <- make([]byte, 0, defaultPacketSize)
	}
	c.m.next, c.m.limit = c.receive, c.config.MaxRequestBytes
	var reading sync.WaitGroup
	reading.Go(c.read)
	err := c.work()
	c.kill()
	reading.Wait()
	if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		c.log.Info("connection ended", zap.Error(err))
	}
}

// open does everything up to and with the answer to LOGIN7.
func (c *conn) open() error {
	c.m.next = c.nextPacket
	first, err := c.firstPacket()
	if err != nil {
		return err
	}
	c.m.limit = maxPreloginBytes
	c.m.begin(first)
	offer, err := decodePrelogin(&c.m)
	if err != nil {
		return err
	}
	c.out.tokens = appendPrelogin(c.out.tokens, offer)
	if err := c.out.finish(); err != nil {
		return err
	}
	after, err := c.encrypt(offer.answer())
	if err != nil {
		return err
	}

	first, err = c.nextPacket()
	if err != nil {
		return err
	}
	after()
	c.m.limit = maxLoginBytes
	c.m.begin(first)
	if c.m.kind != packetLogin {
		return fmt.Errorf("%w: a packet of type %d where LOGIN7 belongs", errMalformed, c.m.kind)
	}
	l, err := decodeLogin(&c.m)
	if err != nil {
		c.fatal(&Error{Number: errorBadLogin, State: 1, Class: classFatal, Message: messageBadLogin})
		return err
	}
	return c.login(&l, offer.answer())
}

// firstPacket tells a client that begins with TLS from one that speaks TDS 7.
func (c *conn) firstPacket() (packet, error) {
	const tlsHandshake = 0x16 // the record type of a ClientHello
	var kind [1]byte
	if _, err := io.ReadFull(c.raw, kind[:]); err != nil {
		return packet{}, err
	}
	switch packetType(kind[0]) {
	case packetPrelogin:
	case tlsHandshake:
		return packet{}, errStrict
	default:
		return packet{}, fmt.Errorf("%w: the first packet has type %d", errMalformed, kind[0])
	}
	p, _, err := readPacket(io.MultiReader(bytes.NewReader(kind[:]), c.raw), nil)
	return p, err
}

// nextPacket is how packets are read while there is no reader goroutine yet.
func (c *conn) nextPacket() (packet, error) {
	p, buf, err := readPacket(c.in, c.lent)
	c.lent = buf
	return p, err
}

// encrypt starts TLS as agreed. The function it returns ends it again, where
// only the first packet of the login is to be encrypted (ENCRYPT_OFF).
func (c *conn) encrypt(answer byte) (after func(), err error) {
	plain := func() {
		c.in, c.out.w = bufio.NewReaderSize(c.raw, defaultPacketSize), c.raw
	}
	if answer == encryptNotSupported {
		plain()
		return func() {}, nil
	}
	h := &handshakeConn{Conn: c.raw, wrapped: true, exact: answer == encryptOff}
	secured := tls.Server(h, c.server.tls)
	if err := secured.HandshakeContext(c.ctx); err != nil {
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	h.wrapped = false
	c.in, c.out.w = secured, secured
	if answer == encryptOff {
		return plain, nil
	}
	return func() {}, nil
}

// login asks the backend and answers.
func (c *conn) login(l *login7, encryption byte) error {
	refused := l.refusal()
	if refused == nil {
		session, err := c.config.Backend.Login(c.ctx, l.Login)
		switch {
		case err == nil:
			c.session = session
		case errors.As(err, &refused):
		default:
			return fmt.Errorf("login of %q: %w", l.User, err)
		}
	}
	if refused != nil {
		c.fatal(refused)
		return fmt.Errorf("login of %q refused: %w", l.User, refused)
	}
	c.utf8 = l.utf8
	size := l.PacketSize
	if encryption == encryptOn {
		size = min(size, maxEncryptedPacketSize)
	}
	database := l.Database
	if database == "" {
		database = c.config.Database
	}
	c.out.tokens = appendLoginAnswer(c.out.tokens, l, database, c.config.ServerName, size)
	if err := c.out.finish(); err != nil {
		c.session.Close()
		return err
	}
	c.out.size = size
	return nil
}

// fatal sends an error after which the connection ends.
func (c *conn) fatal(e *Error) {
	c.r.release(doneMore)
	c.out.tokens = appendMessage(c.out.tokens, tokenError, e, c.config.ServerName)
	c.out.tokens = appendDone(c.out.tokens, done{token: tokenDone, status: doneError})
	_ = c.out.finish()
}

// read is the reader goroutine: it passes packets on until the connection ends.
func (c *conn) read() {
	defer close(c.packets)
	for {
		var buf []byte
		select {
		case buf = <-c.free:
		case <-c.ctx.Done():
			c.readErr = context.Cause(c.ctx)
			return
		}
		p, buf, err := readPacket(c.in, buf)
		if err != nil {
			c.readErr = err
			c.cancel(err)
			return
		}
		p.payload = buf
		if p.kind == packetAttention {
			c.attention.Store(true)
			c.mu.Lock()
			if c.interrupt != nil {
				c.interrupt(errAttention)
			}
			c.mu.Unlock()
		}
		select {
		case c.packets <- p:
		case <-c.ctx.Done():
			c.readErr = context.Cause(c.ctx)
			return
		}
	}
}

// receive returns the next packet, whose payload is good until the next call.
// An attention comes as errAttention.
func (c *conn) receive() (packet, error) {
	if c.lent != nil {
		c.free <- c.lent
		c.lent = nil
	}
	p, ok := <-c.packets
	if !ok {
		return packet{}, c.readErr
	}
	c.lent = p.payload
	if p.kind == packetAttention {
		c.attention.Store(false)
		return p, errAttention
	}
	return p, nil
}
