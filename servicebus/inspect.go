package servicebus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azpolicy "github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"golang.org/x/sync/errgroup"
)

// EntityReport is what can be found out about a queue or topic that a route leads
// to.
type EntityReport struct {
	Entity string
	// Send is why a link for sending cannot be opened; nil where it can.
	Send error
	// Described says that the rest could be read. Reading it needs the right
	// Manage, or the role Azure Service Bus Data Owner; Unread says why it could
	// not be.
	Described bool
	Unread    error

	Topic              bool
	Status             string
	RequiresSession    bool // of a queue; a topic's are in Subscriptions
	DuplicateDetection bool
	DuplicateWindow    time.Duration
	Partitioned        bool
	// SizeBytes of MaxSizeBytes are used.
	SizeBytes, MaxSizeBytes int64
	// MaxMessageBytes is 0 where the service does not say.
	MaxMessageBytes int64

	// Subscriptions are those of a topic; SubscriptionsUnread says why they could
	// not be read.
	Subscriptions       []SubscriptionReport
	SubscriptionsUnread error
}

// SubscriptionReport is what decides whether a subscription can hand out what is
// sent to its topic.
type SubscriptionReport struct {
	Name            string
	RequiresSession bool
}

// NamespaceReport is what can be found out about the namespace.
type NamespaceReport struct {
	// SKU is Basic, Standard or Premium; empty where it could not be read.
	SKU            string
	MessagingUnits int64
	Entities       []EntityReport
}

// Inspect looks at the namespace and at every entity that a route leads to. It
// changes nothing and sends nothing.
func (p *Publisher) Inspect(ctx context.Context) (NamespaceReport, error) {
	var r NamespaceReport
	client, err := p.adminClient()
	if err != nil {
		return r, fmt.Errorf("servicebus: make a client for the namespace's administration: %w", p.scrub(err))
	}
	call, cancel := context.WithTimeout(ctx, entityPatience)
	defer cancel()
	if ns, err := client.GetNamespaceProperties(call, nil); err == nil {
		r.SKU = ns.SKU
		if ns.MessagingUnits != nil {
			r.MessagingUnits = *ns.MessagingUnits
		}
	}
	entities := p.cfg.Routes.Entities()
	r.Entities = make([]EntityReport, len(entities))
	var looks errgroup.Group
	looks.SetLimit(inspectAtOnce)
	for i, entity := range entities {
		looks.Go(func() error {
			r.Entities[i] = p.inspect(ctx, client, entity)
			return nil
		})
	}
	return r, looks.Wait()
}

const (
	inspectAtOnce = 8
	// entityPatience is for one entity, so that one that does not answer takes
	// nothing from the others.
	entityPatience = 30 * time.Second
)

func (p *Publisher) inspect(ctx context.Context, client *admin.Client, entity string) EntityReport {
	ctx, cancel := context.WithTimeout(ctx, entityPatience)
	defer cancel()
	dest := p.destinations[entity]
	e := EntityReport{Entity: entity}
	if f := p.use(ctx, dest, p.next(), func(context.Context, *sender) error { return nil }); f != nil {
		e.Send = p.destinationError(dest, f)
	}
	if err := describe(ctx, client, &e); err != nil {
		e.Unread = p.scrub(err)
	}
	if e.Topic {
		var err error
		if e.Subscriptions, err = subscriptions(ctx, client, entity); err != nil {
			e.SubscriptionsUnread = p.scrub(readable(err))
		}
	}
	return e
}

// adminRetries are few: a person waits.
var adminRetries = azpolicy.RetryOptions{MaxRetries: 1, RetryDelay: 200 * time.Millisecond, TryTimeout: 10 * time.Second}

func (p *Publisher) adminClient() (*admin.Client, error) {
	options := &admin.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: adminRetries}}
	if p.cfg.ConnectionString == "" {
		return admin.NewClient(p.cfg.Namespace, p.cfg.Credential, options)
	}
	c, err := parseConnectionString(p.cfg.ConnectionString)
	if err != nil {
		return nil, err
	}
	if c.plain {
		options.Transport = plainHTTP{}
	}
	return admin.NewClientFromConnectionString(p.cfg.ConnectionString, options)
}

// plainHTTP sends by http, as a connection string with UseDevelopmentEmulator
// wants it; the admin client takes https whatever it says.
type plainHTTP struct{}

func (plainHTTP) Do(q *http.Request) (*http.Response, error) {
	q.URL.Scheme = "http"
	return http.DefaultTransport.RoundTrip(q)
}

const megabyte = 1 << 20

// describe reads a queue, or where there is none a topic, of that name.
func describe(ctx context.Context, client *admin.Client, e *EntityReport) error {
	queue, err := client.GetQueue(ctx, e.Entity, nil)
	if err != nil {
		return readable(err)
	}
	// A topic of that name is answered too, as a queue without properties.
	if queue != nil && queue.LockDuration != nil {
		e.Described = true
		e.Status, e.RequiresSession = deref((*string)(queue.Status)), deref(queue.RequiresSession)
		e.Partitioned, e.DuplicateDetection = deref(queue.EnablePartitioning), deref(queue.RequiresDuplicateDetection)
		e.MaxSizeBytes, e.MaxMessageBytes = int64(deref(queue.MaxSizeInMegabytes))*megabyte, deref(queue.MaxMessageSizeInKilobytes)*1024
		e.DuplicateWindow = isoDuration(deref(queue.DuplicateDetectionHistoryTimeWindow))
		if runtime, err := client.GetQueueRuntimeProperties(ctx, e.Entity, nil); err == nil && runtime != nil {
			e.SizeBytes = runtime.SizeInBytes
		}
		return nil
	}
	topic, err := client.GetTopic(ctx, e.Entity, nil)
	if err != nil {
		return readable(err)
	}
	if topic == nil {
		return errors.New("there is no queue and no topic of this name")
	}
	e.Described, e.Topic = true, true
	e.Status = deref((*string)(topic.Status))
	e.Partitioned, e.DuplicateDetection = deref(topic.EnablePartitioning), deref(topic.RequiresDuplicateDetection)
	e.MaxSizeBytes, e.MaxMessageBytes = int64(deref(topic.MaxSizeInMegabytes))*megabyte, deref(topic.MaxMessageSizeInKilobytes)*1024
	e.DuplicateWindow = isoDuration(deref(topic.DuplicateDetectionHistoryTimeWindow))
	if runtime, err := client.GetTopicRuntimeProperties(ctx, e.Entity, nil); err == nil && runtime != nil {
		e.SizeBytes = runtime.SizeInBytes
	}
	return nil
}

// subscriptions lists those of a topic, a hundred a request.
func subscriptions(ctx context.Context, client *admin.Client, topic string) (all []SubscriptionReport, err error) {
	for pager := client.NewListSubscriptionsPager(topic, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range page.Subscriptions {
			all = append(all, SubscriptionReport{Name: s.SubscriptionName, RequiresSession: deref(s.RequiresSession)})
		}
	}
	return all, nil
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// readable keeps the page of text that an HTTP error brings out of a report.
func readable(err error) error {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("the administration answers %d: reading an entity needs the right Manage, or the role Azure Service Bus Data Owner", answer.StatusCode)
	default:
		return fmt.Errorf("the administration answers %d %s", answer.StatusCode, answer.ErrorCode)
	}
}

// isoDuration reads what the service writes, such as PT10M or P1DT2H30M; 0 where
// it cannot.
func isoDuration(text string) time.Duration {
	rest, ok := strings.CutPrefix(text, "P")
	if !ok {
		return 0
	}
	units := map[rune]time.Duration{'D': 24 * time.Hour}
	var total time.Duration
	number := ""
	for _, c := range rest {
		if c == 'T' {
			units = map[rune]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second}
			continue
		}
		if unit, ok := units[c]; ok {
			n, err := strconv.ParseFloat(number, 64)
			if err != nil {
				return 0
			}
			total += time.Duration(n * float64(unit))
			number = ""
			continue
		}
		number += string(c)
	}
	if number != "" {
		return 0
	}
	return total
}
