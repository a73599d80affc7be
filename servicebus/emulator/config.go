package emulator

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
)

// Config is what a server is made of. Only Entities has no default.
type Config struct {
	// Addr is where to listen; default 127.0.0.1:0, any free port.
	Addr string
	// Tier sets the limits on sizes; default Standard.
	Tier Tier
	// Entities are all there is: a name that is not among them is amqp:not-found.
	Entities []Entity
	// RoundTrip delays the answer to each send, so that a client waits as it
	// does for a service that is a network away. Sends overlap: it adds latency
	// and takes no throughput.
	RoundTrip time.Duration
	// CreditsPerSecond throttles all sends of the namespace: one credit for each
	// message and one for each filter of a topic that it is compared with. A send
	// without any left is com.microsoft:server-busy, error code 50009. The default
	// is not to throttle; StandardCreditsPerSecond is what the tier has. Receiving,
	// scheduling by $management and the administration cost credits too, but are
	// not counted.
	CreditsPerSecond int
	// MaxConnections is how many AMQP connections there may be at a time; one more
	// is closed with amqp:resource-limit-exceeded as soon as it is open. Default
	// 5,000, the quota of a namespace.
	MaxConnections int
	// LinkIdleTimeout detaches links over which no message has gone for so long,
	// with amqp:link:detach-forced. The service does it after ten minutes; the
	// default is never.
	LinkIdleTimeout time.Duration
	// ConnectionIdleTimeout closes connections that have had no link for so long,
	// with amqp:connection:forced. The service does it after five minutes, after
	// one where there never was a link; the default is never.
	ConnectionIdleTimeout time.Duration
	// TLS, where it is set, makes ConnectionString one for a TLS connection. The
	// listener still takes plain connections too. azservicebus takes host and
	// port together for the certificate's name, so its TLSConfig needs a
	// ServerName.
	TLS *tls.Config
	// SharedAccessKey is the key of the policy RootManageSharedAccessKey, which
	// may do everything; default SAS_KEY_VALUE, the key of Microsoft's own
	// emulator. SAS tokens and SASL PLAIN are checked against it.
	SharedAccessKey string
	// Policies are further ones, with fewer rights.
	Policies []Policy
	// EntraRights are what a JWT allows, the token of a managed identity:
	// RightManage, the default, is the role Azure Service Bus Data Owner,
	// RightSend the role Data Sender, RightListen the role Data Receiver. Of the
	// token itself audience and times are checked, the signature is not.
	EntraRights Rights
	// Logger gets connections and refusals at debug level, and a peer's protocol
	// errors at warn level; default none.
	Logger *zap.Logger
}

// Kind is what an entity is.
type Kind uint8

// The kinds of entities.
const (
	Queue Kind = iota
	Topic
)

// Entity is a queue or a topic.
type Entity struct {
	Name string
	Kind Kind
	// Subscriptions of a topic.
	Subscriptions []Subscription
	// RequiresSession, LockDuration, MaxDeliveryCount and
	// DeadLetterOnExpiration are a queue's; on a topic they belong to the
	// subscriptions.
	RequiresSession        bool
	LockDuration           time.Duration // default 1 minute, at most 5
	MaxDeliveryCount       int           // default 10
	DeadLetterOnExpiration bool
	// DefaultTTL bounds the time to live of every message, by a second or more;
	// default none.
	DefaultTTL time.Duration
	// DuplicateDetection drops messages whose id was seen within
	// DuplicateWindow, 20 seconds to 7 days, default 10 minutes.
	DuplicateDetection bool
	DuplicateWindow    time.Duration
	// Partitioned refuses batches with more than one session id or partition
	// key, and with DuplicateDetection those with none. Nothing else of
	// partitioning is modelled.
	Partitioned bool
	// MaxMessageBytes is the limit of a single message; default 256 KB on
	// Standard, 1 MB on Premium, where up to 100 MB are allowed.
	MaxMessageBytes int64
	// MaxSizeBytes is the space of the entity, dead letters and subscriptions
	// included; default 1 GB, the smallest there is.
	MaxSizeBytes int64
	// Discard is for load tests only, no service does it: messages are checked,
	// counted and observed as always, and then forgotten, by all subscriptions of
	// a topic. Nothing can be received. With DuplicateDetection the ids are
	// remembered, at about 100 bytes each.
	Discard bool
}

// Subscription is a topic's.
type Subscription struct {
	Name string
	// Rules choose the messages: one match is enough. Without any there is the
	// default rule, the true filter.
	Rules                  []Rule
	RequiresSession        bool
	LockDuration           time.Duration // default 1 minute
	MaxDeliveryCount       int           // default 10
	DefaultTTL             time.Duration
	DeadLetterOnExpiration bool
}

// defaultKey is the well-known key of the container emulator.
// https://learn.microsoft.com/azure/service-bus-messaging/test-locally-with-service-bus-emulator
const defaultKey = "SAS_KEY_VALUE"

func (c Config) withDefaults() Config {
	c.Addr = cmp.Or(c.Addr, "127.0.0.1:0")
	c.MaxConnections = cmp.Or(c.MaxConnections, maxConnections)
	c.SharedAccessKey = cmp.Or(c.SharedAccessKey, defaultKey)
	c.EntraRights = cmp.Or(c.EntraRights, RightManage)
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	entities := make([]Entity, len(c.Entities))
	for i, e := range c.Entities {
		entities[i] = e.withDefaults(c.Tier)
	}
	c.Entities = entities
	return c
}

func (e Entity) withDefaults(t Tier) Entity {
	e.LockDuration = cmp.Or(e.LockDuration, time.Minute)
	e.MaxDeliveryCount = cmp.Or(e.MaxDeliveryCount, 10)
	e.MaxMessageBytes = cmp.Or(e.MaxMessageBytes, t.messageLimit())
	e.MaxSizeBytes = cmp.Or(e.MaxSizeBytes, 1<<30)
	if e.DuplicateDetection {
		e.DuplicateWindow = cmp.Or(e.DuplicateWindow, 10*time.Minute)
	}
	subscriptions := make([]Subscription, len(e.Subscriptions))
	for i, s := range e.Subscriptions {
		s.LockDuration = cmp.Or(s.LockDuration, time.Minute)
		s.MaxDeliveryCount = cmp.Or(s.MaxDeliveryCount, 10)
		s.DefaultTTL = cmp.Or(s.DefaultTTL, e.DefaultTTL)
		s.Rules = namedRules(s.Rules)
		subscriptions[i] = s
	}
	e.Subscriptions = subscriptions
	return e
}

// validate names the first field that cannot be.
func (c Config) validate() error {
	if c.Tier > Premium {
		return invalid("Tier", "%d is neither Standard nor Premium", c.Tier)
	}
	if len(c.Entities) == 0 {
		return invalid("Entities", "none; entities are not created on demand")
	}
	if c.RoundTrip < 0 {
		return invalid("RoundTrip", "%s is negative", c.RoundTrip)
	}
	if c.CreditsPerSecond < 0 {
		return invalid("CreditsPerSecond", "%d is negative", c.CreditsPerSecond)
	}
	if c.MaxConnections < 0 {
		return invalid("MaxConnections", "%d is negative", c.MaxConnections)
	}
	if c.LinkIdleTimeout < 0 || c.ConnectionIdleTimeout < 0 {
		return invalid("LinkIdleTimeout, ConnectionIdleTimeout", "must not be negative")
	}
	policies := map[string]bool{}
	for _, p := range c.Policies {
		if err := p.validate(); err != nil {
			return err
		}
		if policies[p.Name] {
			return invalid("Policies", "there are two of %q", p.Name)
		}
		policies[p.Name] = true
	}
	if c.EntraRights >= RightManage<<1 {
		return invalid("EntraRights", "%d are not rights", c.EntraRights)
	}
	names := map[string]bool{}
	for _, e := range c.Entities {
		if err := e.validate(c.Tier); err != nil {
			return fmt.Errorf("entity %q: %w", e.Name, err)
		}
		name := strings.ToLower(e.Name)
		if names[name] {
			return invalid("Entities.Name", "there are two of %q", e.Name)
		}
		names[name] = true
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...))
}
