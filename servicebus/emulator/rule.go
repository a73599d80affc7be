package emulator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"azsqloutbox/servicebus/emulator/internal/atom"
	"azsqloutbox/servicebus/emulator/internal/broker"
)

// Rule is a filter of a subscription: a correlation filter, whose fields that
// are set must all be equal to the message's, case included, or the SQL filter
// in SQL. Actions are not modelled.
// https://learn.microsoft.com/azure/service-bus-messaging/topic-filters
type Rule struct {
	// Name is what the admin operations call the rule; default $Default for the
	// first of a subscription, rule-2, rule-3 and so on for the others.
	Name string
	// SQL is 1=1, the true filter, which takes every message, or 1=0, the false
	// filter, which takes none. Start refuses all other SQL: to ignore a filter
	// would be to deliver what the service does not. The fields below must then
	// be empty.
	SQL string

	// MessageID, CorrelationID, To, ReplyTo, Subject (Label in the portal),
	// SessionID, ReplyToSessionID and ContentType are compared with the
	// message's property of that name. Empty is not compared.
	MessageID        string
	CorrelationID    string
	To               string
	ReplyTo          string
	Subject          string
	SessionID        string
	ReplyToSessionID string
	ContentType      string
	// Properties are compared with the application properties. A value must be
	// of the Go type that it arrives as: string, bool, int64, float64 and so on;
	// a Go sender's int arrives as int64.
	Properties map[string]any
}

// The SQL filters that are modelled.
const (
	trueFilter  = "1=1"
	falseFilter = "1=0"
)

// namedRules has the default rule where there is none, and a name for each.
func namedRules(rules []Rule) []Rule {
	if len(rules) == 0 {
		rules = []Rule{{SQL: trueFilter}}
	}
	named := slices.Clone(rules)
	for i := range named {
		name := "$Default"
		if i > 0 {
			name = fmt.Sprintf("rule-%d", i+1)
		}
		named[i].Name = cmp.Or(named[i].Name, name)
	}
	return named
}

// sql is the SQL filter without spaces, empty for a correlation filter.
func (r Rule) sql() string { return strings.Join(strings.Fields(r.SQL), "") }

func (r Rule) correlation() broker.Rule {
	return broker.Rule{
		MessageID: r.MessageID, CorrelationID: r.CorrelationID, To: r.To, ReplyTo: r.ReplyTo, Subject: r.Subject,
		SessionID: r.SessionID, ReplyToSessionID: r.ReplyToSessionID, ContentType: r.ContentType, Properties: r.Properties,
	}
}

// rule is what the broker evaluates.
func (r Rule) rule() broker.Rule {
	switch r.sql() {
	case trueFilter:
		return broker.Rule{}
	case falseFilter:
		return broker.Rule{Never: true}
	default:
		return r.correlation()
	}
}

func (r Rule) validate() error {
	for name, value := range r.Properties {
		if _, ok := value.(int); ok {
			return invalid("Rules.Properties", "%q: an int never equals what arrives, which is an int64", name)
		}
		if _, err := atom.NewProperty(name, value); err != nil {
			return invalid("Rules.Properties", "%s", err)
		}
	}
	empty := r.correlation().Empty()
	switch sql := r.sql(); {
	case sql == "" && empty:
		return invalid("Rules", "%q compares nothing; the filter that takes every message is SQL: 1=1", r.Name)
	case sql == "":
	case sql != trueFilter && sql != falseFilter:
		return invalid("Rules.SQL", "%q is not modelled, only 1=1 and 1=0 are", r.SQL)
	case !empty:
		return invalid("Rules.SQL", "%q beside the fields of a correlation filter", r.SQL)
	}
	return nil
}

func brokerRules(rules []Rule) []broker.Rule {
	out := make([]broker.Rule, len(rules))
	for i, r := range rules {
		out[i] = r.rule()
	}
	return out
}
