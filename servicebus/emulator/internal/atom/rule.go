package atom

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"time"
)

// RuleDescription describes a rule, which has no action here.
type RuleDescription struct {
	XMLName   xml.Name `xml:"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect RuleDescription"`
	Instance  string   `xml:"xmlns:i,attr"`
	Filter    Filter   `xml:"Filter"`
	Action    Typed    `xml:"Action"`
	CreatedAt string   `xml:"CreatedAt"`
	Name      string   `xml:"Name"`
}

// NewRule describes a rule.
func NewRule(name string, at time.Time, f Filter) RuleDescription {
	return RuleDescription{Instance: instance, Filter: f, Action: Typed{Type: "EmptyRuleAction"}, CreatedAt: Time(at), Name: name}
}

// Typed is an element that is nothing but its type.
type Typed struct {
	Type string `xml:"i:type,attr"`
}

// The types of filters.
const (
	TrueFilter        = "TrueFilter"
	FalseFilter       = "FalseFilter"
	CorrelationFilter = "CorrelationFilter"
)

// Filter is a filter of any type.
type Filter struct {
	Type             string      `xml:"i:type,attr"`
	SQLExpression    string      `xml:"SqlExpression,omitempty"`
	Compatibility    int         `xml:"CompatibilityLevel,omitempty"`
	CorrelationID    string      `xml:"CorrelationId,omitempty"`
	MessageID        string      `xml:"MessageId,omitempty"`
	To               string      `xml:"To,omitempty"`
	ReplyTo          string      `xml:"ReplyTo,omitempty"`
	Label            string      `xml:"Label,omitempty"`
	SessionID        string      `xml:"SessionId,omitempty"`
	ReplyToSessionID string      `xml:"ReplyToSessionId,omitempty"`
	ContentType      string      `xml:"ContentType,omitempty"`
	Properties       *Properties `xml:"Properties"`
}

// Properties are compared application properties.
type Properties struct {
	All []Property `xml:"KeyValueOfstringanyType"`
}

// Property is one of them.
type Property struct {
	Key   string `xml:"Key"`
	Value Value  `xml:"Value"`
}

// Value is a value with its XML type.
type Value struct {
	Type   string `xml:"i:type,attr"`
	Schema string `xml:"xmlns:d6p1,attr"`
	Text   string `xml:",chardata"`
}

// NewProperty encodes a property, or says which type cannot be.
func NewProperty(key string, value any) (Property, error) {
	p := Property{Key: key, Value: Value{Schema: xmlSchema}}
	switch v := value.(type) {
	case string:
		p.Value.Type, p.Value.Text = "d6p1:string", v
	case bool:
		p.Value.Type, p.Value.Text = "d6p1:boolean", fmt.Sprint(v)
	case int32:
		p.Value.Type, p.Value.Text = "d6p1:int", fmt.Sprint(v)
	case int64:
		// azservicebus/admin writes an int64 as an int and cannot read a long.
		p.Value.Type, p.Value.Text = "d6p1:int", fmt.Sprint(v)
		if v != int64(int32(v)) {
			p.Value.Type = "d6p1:long"
		}
	case float32, float64:
		p.Value.Type, p.Value.Text = "d6p1:double", fmt.Sprint(v)
	case time.Time:
		p.Value.Type, p.Value.Text = "d6p1:dateTime", Time(v)
	case []byte:
		p.Value.Type, p.Value.Text = "d6p1:base64Binary", base64.StdEncoding.EncodeToString(v)
	default:
		return p, fmt.Errorf("property %q: %T has no XML type here", key, value)
	}
	return p, nil
}
