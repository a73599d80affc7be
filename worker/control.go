package worker

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Scope says what a Control is about.
type Scope string

const (
	// ScopeAll is every event type of every worker of the table.
	ScopeAll Scope = "all"
	// ScopeEventType is one event type, by the name that its route has.
	ScopeEventType Scope = "event_type"
	// ScopeEntity is all event types of one queue or topic.
	ScopeEntity Scope = "entity"
)

// Control is what a person told all workers of a table. It lies in the database
// and outlives them.
type Control struct {
	Scope Scope
	// Name is the event type or the entity; empty for ScopeAll.
	Name string
	// Paused stops claiming; false is a resume.
	Paused bool
	// By and Reason are for people. ChangedAt is the database's clock in UTC.
	By, Reason string
	ChangedAt  time.Time
	// SinceStart says that it was said after this worker had started.
	SinceStart bool
}

// controls are what the last heartbeat read.
type controls struct {
	mu      sync.Mutex
	waiting bool // started with Paused and not resumed yet
	list    []Control
}

// set replaces the list.
func (c *controls) set(list []Control) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = list
	for _, l := range list {
		if l.Scope == ScopeAll && !l.Paused && l.SinceStart {
			c.waiting = false
		}
	}
}

// allPaused says whether nothing at all may be claimed, reaped or retried, and
// in words why.
func (c *controls) allPaused() (why string, paused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.list {
		if l.Scope == ScopeAll && l.Paused {
			return l.words(), true
		}
	}
	if c.waiting {
		return "started with --paused; outboxctl resume --all --execute ends it", true
	}
	return "", false
}

func (l Control) words() string {
	what := "everything"
	if l.Scope != ScopeAll {
		what = fmt.Sprintf("%s %q", l.Scope, l.Name)
	}
	text := fmt.Sprintf("%s is paused since %s by %s", what, l.ChangedAt.UTC().Format(time.RFC3339), l.By)
	if l.Reason != "" {
		text += ": " + l.Reason
	}
	return text
}

// paused says whether one event type may not be claimed.
func (c *controls) paused(eventType, destination string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting {
		return true
	}
	for _, l := range c.list {
		if !l.Paused {
			continue
		}
		switch l.Scope {
		case ScopeAll:
			return true
		case ScopeEventType:
			if l.Name == eventType {
				return true
			}
		case ScopeEntity:
			if strings.EqualFold(l.Name, destination) { // as Service Bus compares them
				return true
			}
		}
	}
	return false
}

// active are the pauses in force.
func (c *controls) active() []Control {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Control
	for _, l := range c.list {
		if l.Paused {
			out = append(out, l)
		}
	}
	return out
}
