package emulator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"azsqloutbox/servicebus/emulator/internal/atom"
)

// filterCountsVersion is the first version of the interface that counts a
// topic's filters, as azservicebus/admin documents it.
const filterCountsVersion = "2024-05"

func (a *adminReader) namespaceInfo() atom.NamespaceInfo {
	at := atom.Time(a.server.started)
	info := atom.NamespaceInfo{
		CreatedTime: at, ModifiedTime: at, Name: a.request.Host, NamespaceType: "Messaging",
		MessagingSKU: a.server.cfg.Tier.String(),
	}
	if a.server.cfg.Tier == Premium {
		units := 1
		info.MessagingUnits = &units
	}
	return info
}

func (a *adminReader) queue(n *node) atom.QueueDescription {
	c, q := n.config, n.source.Counts()
	at := atom.Time(a.server.started)
	return atom.QueueDescription{
		LockDuration:               atom.Duration(c.LockDuration),
		MaxSizeInMegabytes:         n.destination.MaxBytes() >> 20,
		RequiresDuplicateDetection: c.DuplicateDetection,
		RequiresSession:            c.RequiresSession,
		DefaultMessageTimeToLive:   atom.DurationOrForever(c.DefaultTTL),
		DeadLetteringOnExpiration:  c.DeadLetterOnExpiration,
		DuplicateWindow:            duplicateWindow(c),
		MaxDeliveryCount:           c.MaxDeliveryCount,
		EnableBatchedOperations:    true,
		SizeInBytes:                n.destination.UsedBytes(),
		MessageCount:               q.Active + q.DeadLettered + q.Scheduled + q.Deferred,
		Status:                     n.statusText(),
		CreatedAt:                  at,
		UpdatedAt:                  at,
		AccessedAt:                 atom.Never,
		SupportOrdering:            !c.Partitioned,
		CountDetails:               atom.NewCountDetails(q.Active, q.DeadLettered, q.Scheduled),
		AutoDeleteOnIdle:           atom.Forever,
		Availability:               atom.Available,
		EnablePartitioning:         c.Partitioned,
		MaxMessageSizeInKilobytes:  c.MaxMessageBytes >> 10,
	}
}

func (a *adminReader) topic(n *node) atom.TopicDescription {
	c := n.config
	at := atom.Time(a.server.started)
	d := atom.TopicDescription{
		DefaultMessageTimeToLive:   atom.DurationOrForever(c.DefaultTTL),
		MaxSizeInMegabytes:         n.destination.MaxBytes() >> 20,
		RequiresDuplicateDetection: c.DuplicateDetection,
		DuplicateWindow:            duplicateWindow(c),
		EnableBatchedOperations:    true,
		SizeInBytes:                n.destination.UsedBytes(),
		Status:                     n.statusText(),
		CreatedAt:                  at,
		UpdatedAt:                  at,
		AccessedAt:                 atom.Never,
		SupportOrdering:            !c.Partitioned,
		SubscriptionCount:          len(c.Subscriptions),
		AutoDeleteOnIdle:           atom.Forever,
		Availability:               atom.Available,
		EnablePartitioning:         c.Partitioned,
		MaxMessageSizeInKilobytes:  c.MaxMessageBytes >> 10,
	}
	var sql, correlation int
	for _, s := range c.Subscriptions {
		for _, r := range s.Rules {
			if r.sql() != "" {
				sql++
			} else {
				correlation++
			}
		}
	}
	d.CountDetails = atom.NewCountDetails(0, 0, n.topic.Counts().Scheduled)
	if a.request.URL.Query().Get("api-version") >= filterCountsVersion {
		d.SQLFilterCount, d.CorrelationFilterCount = &sql, &correlation
	}
	return d
}

func (a *adminReader) subscriptionNode(topic *node, s Subscription) *node {
	return a.server.namespace.mustFind(topic.config.Name + subscriptions + s.Name)
}

func (a *adminReader) subscription(topic *node, s Subscription) atom.SubscriptionDescription {
	n := a.subscriptionNode(topic, s)
	q := n.source.Counts()
	at := atom.Time(a.server.started)
	return atom.SubscriptionDescription{
		LockDuration:                  atom.Duration(s.LockDuration),
		RequiresSession:               s.RequiresSession,
		DefaultMessageTimeToLive:      atom.DurationOrForever(s.DefaultTTL),
		DeadLetteringOnExpiration:     s.DeadLetterOnExpiration,
		DeadLetteringOnFilterFailures: true,
		MessageCount:                  q.Active + q.DeadLettered + q.Deferred,
		MaxDeliveryCount:              s.MaxDeliveryCount,
		EnableBatchedOperations:       true,
		Status:                        n.statusText(),
		CreatedAt:                     at,
		UpdatedAt:                     at,
		AccessedAt:                    atom.Never,
		CountDetails:                  atom.NewCountDetails(q.Active, q.DeadLettered, 0),
		AutoDeleteOnIdle:              atom.Forever,
		Availability:                  atom.Available,
	}
}

func (a *adminReader) rule(r Rule) (atom.RuleDescription, error) {
	f := atom.Filter{
		Type: atom.CorrelationFilter, CorrelationID: r.CorrelationID, MessageID: r.MessageID, To: r.To, ReplyTo: r.ReplyTo,
		Label: r.Subject, SessionID: r.SessionID, ReplyToSessionID: r.ReplyToSessionID, ContentType: r.ContentType,
	}
	switch r.sql() {
	case trueFilter:
		f = atom.Filter{Type: atom.TrueFilter, SQLExpression: trueFilter, Compatibility: 20}
	case falseFilter:
		f = atom.Filter{Type: atom.FalseFilter, SQLExpression: falseFilter, Compatibility: 20}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Properties)) {
		p, err := atom.NewProperty(name, r.Properties[name])
		if err != nil {
			return atom.RuleDescription{}, err
		}
		if f.Properties == nil {
			f.Properties = &atom.Properties{}
		}
		f.Properties.All = append(f.Properties.All, p)
	}
	return atom.NewRule(r.Name, a.server.started, f), nil
}

// duplicateWindow is there even without duplicate detection.
func duplicateWindow(e Entity) string {
	return atom.Duration(cmp.Or(e.DuplicateWindow, 10*time.Minute))
}

func (n *node) statusText() string { return Status(n.status.Load()).String() }
