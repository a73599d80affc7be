package broker

import (
	"reflect"
	"slices"

	"azsqloutbox/servicebus/emulator/internal/amqp"
)

// Rule is a correlation filter: every field that is set must be equal. The
// zero Rule is the true filter, one with Never the false filter.
// https://learn.microsoft.com/azure/service-bus-messaging/topic-filters
type Rule struct {
	Never            bool
	MessageID        string
	CorrelationID    string
	To               string
	ReplyTo          string
	Subject          string
	SessionID        string
	ReplyToSessionID string
	ContentType      string
	Properties       map[string]any
}

// Empty says that the rule is the true filter.
func (r Rule) Empty() bool {
	return len(r.Properties) == 0 && reflect.DeepEqual(r, Rule{Properties: r.Properties})
}

// matches says whether any of rules wants m.
func matches(rules []Rule, m *Message) (bool, error) {
	if slices.ContainsFunc(rules, Rule.Empty) {
		return true, nil // without decoding m
	}
	c, err := m.Content()
	if err != nil {
		return false, err
	}
	for _, r := range rules {
		if r.matches(c) {
			return true, nil
		}
	}
	return false, nil
}

func (r *Rule) matches(c Content) bool {
	if r.Never {
		return false
	}
	for _, field := range []struct{ want, have string }{
		{r.MessageID, c.MessageID},
		{r.CorrelationID, c.CorrelationID},
		{r.To, c.Properties.To},
		{r.ReplyTo, c.Properties.ReplyTo},
		{r.Subject, c.Properties.Subject},
		{r.SessionID, c.Properties.GroupID},
		{r.ReplyToSessionID, c.Properties.ReplyToGroupID},
		{r.ContentType, c.Properties.ContentType},
	} {
		if field.want != "" && field.want != field.have {
			return false
		}
	}
	for name, want := range r.Properties {
		if have, ok := c.Application[name]; !ok || !reflect.DeepEqual(want, have) {
			return false
		}
	}
	return true
}

// Content is a message, decoded.
type Content struct {
	MessageID     string
	CorrelationID string
	Properties    amqp.Properties
	Application   map[string]any
	Annotations   map[string]any
	// Body is the data sections joined, or the encoded value or sequence.
	Body []byte
}

// Content decodes what the sender sent.
func (m *Message) Content() (Content, error) {
	c := Content{MessageID: m.MessageID()}
	sections := amqp.NewSections(m.rest)
	for {
		section, ok, err := sections.Next()
		if err != nil || !ok {
			return c, err
		}
		r := amqp.NewReader(section.Value)
		switch section.Descriptor {
		case amqp.DescProperties:
			if c.Properties, err = amqp.DecodeProperties(section.Value); err == nil && c.Properties.CorrelationID != nil {
				c.CorrelationID = (&Message{id: c.Properties.CorrelationID}).MessageID()
			}
		case amqp.DescApplicationProperties:
			c.Application, err = decodeMap(&r)
		case amqp.DescData:
			var data []byte
			data, err = r.Bytes()
			c.Body = append(c.Body, data...)
		case amqp.DescSequence, amqp.DescValue:
			c.Body = append(c.Body, section.Value...)
		}
		if err != nil {
			return c, err
		}
	}
}

func decodeMap(r *amqp.Reader) (map[string]any, error) {
	v, err := r.Value()
	m, _ := v.(map[string]any)
	return m, err
}

// Content is [Message.Content] with what the broker added since.
func (d *Delivery) Content() (Content, error) {
	c, err := d.message.Content()
	if err != nil {
		return c, err
	}
	for name, v := range d.added {
		if c.Application == nil {
			c.Application = map[string]any{}
		}
		c.Application[name] = v
	}
	if d.message.annotations != nil {
		r := amqp.NewReader(d.message.annotations)
		c.Annotations, err = decodeMap(&r)
	}
	return c, err
}
