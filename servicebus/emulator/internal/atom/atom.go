// Package atom is the XML that the administration of Service Bus speaks over
// HTTP: Atom entries and feeds around descriptions of entities. Only what is
// needed to answer a reader is here.
//
// Prefixes are written out in the names, because some clients look for the
// prefix that the service uses and not for the namespace behind it.
package atom

import (
	"bytes"
	"encoding/xml"
	"time"
)

const (
	instance   = "http://www.w3.org/2001/XMLSchema-instance"
	xmlSchema  = "http://www.w3.org/2001/XMLSchema"
	countsType = "http://schemas.microsoft.com/netservices/2011/06/servicebus"
)

// Entry is one resource. Its content is a description of this package.
type Entry struct {
	XMLName   xml.Name `xml:"http://www.w3.org/2005/Atom entry"`
	ID        string   `xml:"id"`
	Title     Text     `xml:"title"`
	Published string   `xml:"published"`
	Updated   string   `xml:"updated"`
	Author    string   `xml:"author>name"`
	Link      Link     `xml:"link"`
	Content   Content  `xml:"content"`
}

// Feed is a list of resources.
type Feed struct {
	XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string   `xml:"id"`
	Title   Text     `xml:"title"`
	Updated string   `xml:"updated"`
	Links   []Link   `xml:"link"`
	Entries []Entry
}

// NoSuchEntity is the title of the feed without entries that the service
// answers, with status 200, where an entity is not there.
const NoSuchEntity = "Publicly Listed Services"

// Text is a title.
type Text struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

// Link points to the resource itself, or to the next page of a feed.
type Link struct {
	Rel  string `xml:"rel,attr"`
	HRef string `xml:"href,attr"`
}

// Content holds one description.
type Content struct {
	Type        string `xml:"type,attr"`
	Description any
}

// NewEntry makes the entry of a description.
func NewEntry(id, title, namespace string, at time.Time, description any) Entry {
	return Entry{
		ID: id, Title: Text{Type: "text", Text: title}, Published: Time(at), Updated: Time(at), Author: namespace,
		Link: Link{Rel: "self", HRef: id}, Content: Content{Type: "application/xml", Description: description},
	}
}

// NewFeed makes a feed. next is the address of the page behind it, empty for none.
func NewFeed(id, title string, at time.Time, entries []Entry, next string) Feed {
	links := []Link{{Rel: "self", HRef: id}}
	if next != "" {
		links = append(links, Link{Rel: "next", HRef: next})
	}
	return Feed{ID: id, Title: Text{Type: "text", Text: title}, Updated: Time(at), Links: links, Entries: entries}
}

// Error is the body of a refusal.
type Error struct {
	XMLName xml.Name `xml:"Error"`
	Code    int      `xml:"Code"`
	Detail  string   `xml:"Detail"`
}

// Marshal encodes an Entry, a Feed or an Error.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	err := xml.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

// Time is a moment as it is written in descriptions.
func Time(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// Never is the moment of what has not happened.
const Never = "0001-01-01T00:00:00"
