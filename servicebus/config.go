package servicebus

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"go.uber.org/zap"
)

// Config configures a Publisher. Either ConnectionString or Namespace with
// Credential is required, and so are Routes and Source.
type Config struct {
	// ConnectionString is a namespace's connection string. It holds a secret,
	// which no error and no log of this package shows.
	ConnectionString string
	// Namespace is the fully qualified host name of a namespace, such as
	// "contoso.servicebus.windows.net".
	Namespace string
	// Credential proves who we are to Namespace; NewCredential makes one.
	Credential azcore.TokenCredential

	// Routes says which entity takes which event type.
	Routes Routes
	// Source is the first part of every MessageID: a name that no other event
	// table shares, such as "database.schema.table".
	Source string

	// MaxBatchBytes is the most bytes in one batch. 0, the default, and anything
	// above means the limit that the entity's link states: 256 KB on Standard,
	// 1 MB on Premium. A single message above it is still sent, alone.
	MaxBatchBytes int
	// MaxBatchMessages is the most messages in one batch: 1 to 4,500, the
	// default, which is what Service Bus takes.
	MaxBatchMessages int
	// MaxInFlight is the most sends under way at once to one entity, over all
	// calls of Publish: an entity that does not answer must not stop the others.
	// Default 16.
	MaxInFlight int
	// Connections is how many AMQP connections share the sends. Default 1; a
	// namespace allows 5,000 (azure-docs, service-bus-quotas.md). A Publish that has
	// met what breaks connections opens one more for as long as it lasts.
	Connections int
	// SendTimeout is how long one try of one send may take. Default 10 s. It
	// should be well below the publish deadline, so that a second try fits.
	SendTimeout time.Duration
	// WebSockets tunnels AMQP through HTTPS on port 443, for networks that let
	// nothing else out.
	WebSockets bool
	// TLS says which certificate authorities to trust, for networks that inspect
	// TLS. nil, the default, trusts those of the system.
	TLS *tls.Config

	// Logger is told of dead senders and abandoned connections. nil means none.
	Logger *zap.Logger
}

func (c Config) withDefaults() Config {
	c.MaxBatchMessages = cmp.Or(c.MaxBatchMessages, maxBatchMessages)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 16)
	c.Connections = cmp.Or(c.Connections, 1)
	c.SendTimeout = cmp.Or(c.SendTimeout, 10*time.Second)
	c.Logger = cmp.Or(c.Logger, zap.NewNop())
	return c
}

// Validate says what is wrong with c, naming the field. Zero values that have a
// default are right.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.ConnectionString == "" && c.Namespace == "":
		return errors.New("config: ConnectionString or Namespace is required")
	case c.ConnectionString != "" && c.Namespace != "":
		return errors.New("config: ConnectionString and Namespace are both set: use one")
	case c.ConnectionString != "":
		if err := c.validateConnectionString(); err != nil {
			return err
		}
	case strings.ContainsAny(c.Namespace, "/; ") || !strings.Contains(c.Namespace, "."):
		return fmt.Errorf("config: Namespace %q is no host name such as contoso.servicebus.windows.net", c.Namespace)
	case c.Credential == nil:
		return errors.New("config: Credential is required with Namespace")
	}
	switch {
	case len(c.Routes.Entities()) == 0:
		return errors.New("config: Routes is empty: name at least one event type's entity or a default entity")
	case c.Source == "":
		return errors.New("config: Source is required: a name of the event table, such as database.schema.table")
	case c.MaxBatchBytes < 0:
		return fmt.Errorf("config: MaxBatchBytes %d is negative: 0 means the limit of the link", c.MaxBatchBytes)
	case c.MaxBatchMessages < 1 || c.MaxBatchMessages > maxBatchMessages:
		return fmt.Errorf("config: MaxBatchMessages %d is not between 1 and %d", c.MaxBatchMessages, maxBatchMessages)
	case c.MaxInFlight < 1:
		return fmt.Errorf("config: MaxInFlight %d is below 1", c.MaxInFlight)
	case c.Connections < 1 || c.Connections > maxConnections:
		return fmt.Errorf("config: Connections %d is not between 1 and %d", c.Connections, maxConnections)
	case c.SendTimeout < time.Second:
		return fmt.Errorf("config: SendTimeout %s is below 1s", c.SendTimeout)
	}
	return nil
}

// maxConnections is what a namespace allows: azure-docs, service-bus-quotas.md.
const maxConnections = 5000
