package servicebus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/worker"
)

// Publisher sends events to Service Bus. It implements worker.Publisher. All its
// methods may be called at the same time from many goroutines.
type Publisher struct {
	cfg          Config
	source       string // a shortSource
	secrets      *strings.Replacer
	destinations map[string]*destination
	connections  []*connection
	turn         atomic.Uint64 // deals sends to connections
	quarantine   quarantine
	retries      azservicebus.RetryOptions
	pause        func(kind Kind, try int) time.Duration
}

var _ worker.Publisher = (*Publisher)(nil)

// New makes a Publisher. It touches no network: a broker that is away shows in
// the outcomes of Publish, and in Check. The error names the field that is
// wrong. Close the Publisher after use.
func New(cfg Config) (*Publisher, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("servicebus: %w", err)
	}
	p := &Publisher{
		cfg:          cfg,
		source:       shortSource(cfg.Source),
		secrets:      redactor(cfg.ConnectionString),
		destinations: make(map[string]*destination),
		retries:      retryOptions,
		pause:        pause,
	}
	for _, entity := range cfg.Routes.Entities() {
		p.destinations[entity] = &destination{entity: entity, slots: make(chan struct{}, cfg.MaxInFlight)}
	}
	for range cfg.Connections {
		p.connections = append(p.connections, p.connection())
	}
	return p, nil
}

// Host is the namespace that the Publisher talks to, for logs and pages.
func (p *Publisher) Host() string {
	if p.cfg.Namespace != "" {
		return p.cfg.Namespace
	}
	c, err := parseConnectionString(p.cfg.ConnectionString)
	if err != nil {
		return "" // New has refused it
	}
	return c.host
}

// Publish sends every event and returns one Outcome for each, in the same
// order; see worker.Publisher. Events of one session or partition key go out in
// the order given, one batch after the other; all others may overtake.
func (p *Publisher) Publish(ctx context.Context, events []worker.Event) []worker.Outcome {
	d := p.delivery(events)
	d.run(ctx)
	return d.outcomes
}

func (p *Publisher) delivery(events []worker.Event) *delivery {
	return &delivery{p: p, events: events, ids: messageIDs(p.source, events), outcomes: make([]worker.Outcome, len(events))}
}

// Check opens a link to every entity that a route leads to, and returns what
// stands in the way: *DestinationError values, joined. A link that is open
// already counts as good; the next Publish finds out if it is not.
func (p *Publisher) Check(ctx context.Context) error {
	var problems []error
	for _, entity := range p.cfg.Routes.Entities() {
		dest := p.destinations[entity]
		if f := p.use(ctx, dest, p.next(), func(ctx context.Context, s *sender) error { return nil }); f != nil {
			problems = append(problems, p.destinationError(dest, f))
		}
	}
	return errors.Join(problems...)
}

// Close closes all connections and waits for that until ctx ends. Sends that
// are under way fail, and their events are Unsent; later ones are as well.
func (p *Publisher) Close(ctx context.Context) error {
	done := []<-chan struct{}{p.quarantine.close()}
	for _, c := range p.connections {
		done = append(done, c.close())
	}
	for _, closed := range done {
		select {
		case <-closed:
		case <-ctx.Done():
			return fmt.Errorf("servicebus: closing connections: %w", context.Cause(ctx))
		}
	}
	return nil
}

// retryOptions keeps azservicebus's own tries short: one more, after 0.3 s, in
// which it recovers a link or connection that broke while it was idle. All
// longer waiting is done here, where the publish deadline is known; its
// defaults wait 4, 12 and 28 s. Never none at all: the loop that renews tokens
// would then spin (internal/namespace.go, startNegotiateClaimRenewer).
var retryOptions = azservicebus.RetryOptions{
	MaxRetries:    1,
	RetryDelay:    300 * time.Millisecond,
	MaxRetryDelay: time.Second,
}

func (p *Publisher) dial() (*azservicebus.Client, error) {
	options := &azservicebus.ClientOptions{RetryOptions: p.retries, TLSConfig: p.cfg.TLS, ApplicationID: "azsqloutbox"}
	if p.cfg.WebSockets {
		options.NewWebSocketConn = p.cfg.dialWebSocket
	}
	if p.cfg.ConnectionString != "" {
		return azservicebus.NewClientFromConnectionString(p.cfg.ConnectionString, options)
	}
	return azservicebus.NewClient(p.cfg.Namespace, p.cfg.Credential, options)
}

func (p *Publisher) connection() *connection { return &connection{dial: p.dial, log: p.cfg.Logger} }

// next deals out the common connections.
func (p *Publisher) next() *connection {
	return p.connections[p.turn.Add(1)%uint64(len(p.connections))]
}

// silence is how long a send waits, with nothing heard by any other on its connection,
// before the end of that wait says that the connection is dead. A network that loses
// every packet tells nobody; go-amqp gives up after a minute without a frame
// (ConnOptions.IdleTimeout).
const silence = time.Second

// use runs call once with an open sender of dest on c, within SendTimeout, and takes
// a sender that died and a connection that hangs out of use.
func (p *Publisher) use(ctx context.Context, dest *destination, c *connection, call func(context.Context, *sender) error) *failure {
	select {
	case dest.slots <- struct{}{}:
		defer func() { <-dest.slots }()
	case <-ctx.Done():
		return &failure{policy: policy{KindTimeout, giveBack}, err: context.Cause(ctx), nothingSent: true}
	}
	s, err := c.acquire(dest.entity)
	if err != nil {
		return &failure{policy: policy{KindConnection, giveBack}, err: err, nothingSent: true}
	}
	defer c.release(s)

	served, answers, began := s.served.Load(), s.on.answers.Load(), time.Now()
	sendCtx, cancel := context.WithTimeout(ctx, p.cfg.SendTimeout)
	defer cancel()
	var attached atomic.Bool
	err = bounded(sendCtx, hangGrace, func() error {
		if err := s.open(sendCtx); err != nil {
			return err
		}
		if err := sendCtx.Err(); err != nil {
			return err // opening took until we were given up: what we send now is sent again too
		}
		attached.Store(true)
		return call(sendCtx, s)
	})
	if err == nil {
		return nil
	}
	f := classify(err)
	f.nothingSent = !attached.Load()
	silent := s.on.answers.Load() == answers && time.Since(began) >= silence
	switch {
	case errors.Is(err, errHung):
		c.abandon(s)
	case ctx.Err() != nil:
		// Our caller's time is over; that alone says nothing of the sender.
		if silent {
			c.abandon(s)
		}
	case sendCtx.Err() != nil:
		f.policy = policy{KindTimeout, retry}
		f.err = fmt.Errorf("no answer within %s: %w (what was sent may be at the broker and is sent again; where the broker does answer, only later, raise the send timeout, --servicebus-send-timeout)", p.cfg.SendTimeout, err)
		if silent {
			c.abandon(s)
		} else {
			c.retire(s, p.scrub(err))
		}
	case killsSender(err):
		f.stale = served
		c.retire(s, p.scrub(err))
	}
	return &f
}

// destinationError is f for the outcome of an event.
func (p *Publisher) destinationError(dest *destination, f *failure) error {
	if errors.Is(f.err, ErrClosed) || f.kind == "" {
		return fmt.Errorf("send to %q: %w", dest.entity, f.err)
	}
	return &DestinationError{Entity: dest.entity, Condition: f.condition, Kind: f.kind, Err: p.scrub(f.err), doubtful: f.doubtful()}
}

// redactor replaces the secrets of a connection string; nil where it has none.
func redactor(text string) *strings.Replacer {
	parsed, err := parseConnectionString(text)
	if err != nil {
		return nil
	}
	var pairs []string
	for _, secret := range parsed.secrets {
		pairs = append(pairs, secret, "[secret]")
	}
	return strings.NewReplacer(pairs...)
}

// scrub is err, or where its text holds a secret a new error without it.
func (p *Publisher) scrub(err error) error {
	if p.secrets == nil {
		return err
	}
	text := err.Error()
	if clean := p.secrets.Replace(text); clean != text {
		return errors.New(clean)
	}
	return err
}
