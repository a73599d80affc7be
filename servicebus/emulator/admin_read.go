package emulator

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"azsqloutbox/servicebus/emulator/internal/atom"
)

// adminReader finds and describes what one admin request names.
type adminReader struct {
	server  *Server
	request *http.Request
	id      string // the request's own address
}

// read returns an entry or a feed, or nil for what is not there.
func (a *adminReader) read(target string) (any, error) {
	switch strings.ToLower(target) {
	case "$namespaceinfo":
		return a.entry("$namespaceinfo", a.request.Host, a.namespaceInfo()), nil
	case "$resources/queues":
		return a.entities("Queues", Queue)
	case "$resources/topics":
		return a.entities("Topics", Topic)
	}
	entity, rest, within := cutFold(target, "/subscriptions")
	n, err := a.server.namespace.find(strings.ToLower(entity))
	if err != nil || n.config.Name == "" {
		if within {
			return nil, nil
		}
		// There is no 404 for an entity.
		return atom.NewFeed(a.id, atom.NoSuchEntity, a.server.started, nil, ""), nil
	}
	if !within {
		return a.entity(n)
	}
	if n.topic == nil {
		return nil, nil
	}
	return a.inTopic(n, strings.Trim(rest, "/"))
}

// inTopic reads what is below a topic: "", "name", "name/rules" or
// "name/rules/name".
func (a *adminReader) inTopic(topic *node, target string) (any, error) {
	if target == "" {
		var all []atom.Entry
		for _, s := range topic.config.Subscriptions {
			all = append(all, a.entry(subscriptionPath(topic, s), s.Name, a.subscription(topic, s)))
		}
		return a.feed("Subscriptions", all), nil
	}
	name, rest, _ := strings.Cut(target, "/")
	i := slices.IndexFunc(topic.config.Subscriptions, func(s Subscription) bool { return strings.EqualFold(s.Name, name) })
	if i < 0 {
		return nil, nil
	}
	s := topic.config.Subscriptions[i]
	if rest == "" {
		return a.entry(subscriptionPath(topic, s), s.Name, a.subscription(topic, s)), nil
	}
	kind, wanted, _ := strings.Cut(rest, "/")
	if !strings.EqualFold(kind, "rules") {
		return nil, nil
	}
	var all []atom.Entry
	for _, r := range s.Rules {
		d, err := a.rule(r)
		if err != nil {
			return nil, err
		}
		e := a.entry(subscriptionPath(topic, s)+"/Rules/"+r.Name, r.Name, d)
		if strings.EqualFold(r.Name, wanted) {
			return e, nil
		}
		all = append(all, e)
	}
	if wanted != "" {
		return nil, nil
	}
	return a.feed("Rules", all), nil
}

// entities lists all of a kind, by name.
func (a *adminReader) entities(title string, kind Kind) (any, error) {
	var all []atom.Entry
	for _, n := range a.server.namespace.entities(kind) {
		e, err := a.entity(n)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return a.feed(title, all), nil
}

func (a *adminReader) entity(n *node) (atom.Entry, error) {
	if n.topic != nil {
		return a.entry(n.config.Name, n.config.Name, a.topic(n)), nil
	}
	return a.entry(n.config.Name, n.config.Name, a.queue(n)), nil
}

// subscriptionPath is spelled as the service spells it: @azure/service-bus takes
// the names of all things from the ids of their entries.
func subscriptionPath(topic *node, s Subscription) string {
	return topic.config.Name + "/Subscriptions/" + s.Name
}

func (a *adminReader) entry(path, title string, description any) atom.Entry {
	id := url.URL{Scheme: "https", Host: a.request.Host, Path: "/" + path}
	if version := a.request.URL.Query().Get("api-version"); version != "" {
		id.RawQuery = url.Values{"api-version": {version}}.Encode()
	}
	return atom.NewEntry(id.String(), title, a.request.Host, a.server.started, description)
}

func (a *adminReader) feed(title string, all []atom.Entry) atom.Feed {
	cut, rest := page(a.request, all)
	next := ""
	if rest != nil {
		u := url.URL{Scheme: "https", Host: a.request.Host, Path: a.request.URL.Path, RawQuery: rest.Encode()}
		next = u.String()
	}
	return atom.NewFeed(a.id, title, a.server.started, cut, next)
}

// cutFold cuts around the first sep, which is ASCII, whatever the case of s. The
// lower case of s would not do: it may have another length.
func cutFold(s, sep string) (before, after string, found bool) {
	for i := range len(s) - len(sep) + 1 {
		if end := i + len(sep); strings.EqualFold(s[i:end], sep) {
			return s[:i], s[end:], true
		}
	}
	return s, "", false
}
