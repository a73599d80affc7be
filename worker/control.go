package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
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

// Known says whether a worker of this version obeys it.
func (s Scope) Known() bool { return s == ScopeAll || s == ScopeEventType || s == ScopeEntity }

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
	// twins say which event types the column calls equal to a paused one, by the
	// pause's name: a claim of a type takes the rows of all that are equal to it.
	twins map[string]map[string]bool
}

// change is a pause that began, or one that is over.
type change struct {
	// pause is empty for the worker's own wait since a start with Paused.
	pause Control
	over  bool
	// resume is who ended it and when; empty where the row is not there any more.
	resume Control
}

// set replaces the list and returns what is new in it. A pause that is said again
// is not.
func (c *controls) set(list []Control) (changes []change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.list
	c.list = list
	for _, l := range list {
		if _, was := pausedIn(before, l); l.Paused && !was {
			changes = append(changes, change{pause: l})
		}
		if l.Scope == ScopeAll && !l.Paused && l.SinceStart && c.waiting {
			c.waiting = false
			changes = append(changes, change{over: true, resume: l})
		}
	}
	for _, b := range before {
		if now, is := pausedIn(list, b); b.Paused && !is {
			changes = append(changes, change{pause: b, over: true, resume: now})
		}
	}
	return changes
}

// pausedIn finds what a list says of the same thing.
func pausedIn(list []Control, of Control) (found Control, paused bool) {
	for _, l := range list {
		if l.Scope == of.Scope && l.Name == of.Name {
			return l, l.Paused
		}
	}
	return Control{}, false
}

// unasked returns the types that have not been compared with every pause of an event
// type, and the names of those pauses.
func (c *controls) unasked(types []string) (names, ask []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.twins, func(name string, _ map[string]bool) bool {
		_, paused := pausedIn(c.list, Control{Scope: ScopeEventType, Name: name})
		return !paused
	})
	missing := make(map[string]bool)
	for _, l := range c.list {
		if !l.Paused || l.Scope != ScopeEventType {
			continue
		}
		for _, t := range types {
			if _, asked := c.twins[l.Name][t]; !asked && t != l.Name {
				missing[t] = true
			}
		}
		names = append(names, l.Name)
	}
	if len(missing) == 0 {
		return nil, nil
	}
	return names, slices.Sorted(maps.Keys(missing))
}

// compared keeps what the column says of names and types.
func (c *controls) compared(names, types []string, pairs [][2]string) {
	first := make(map[string]string, len(pairs))
	for _, p := range pairs {
		first[p[1]] = p[0]
	}
	kind := func(t string) string { return cmp.Or(first[t], t) }
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if c.twins == nil {
			c.twins = make(map[string]map[string]bool)
		}
		if c.twins[name] == nil {
			c.twins[name] = make(map[string]bool)
		}
		for _, t := range types {
			c.twins[name][t] = kind(t) == kind(name)
		}
	}
}

// comparePauses asks the column which of types are paused under another spelling,
// once for each. A pause whose name the column cannot hold is of none of them.
func (w *Worker) comparePauses(ctx context.Context, types []string) error {
	names, ask := w.controls.unasked(types)
	if len(ask) == 0 {
		return nil
	}
	pairs, err := w.cfg.Store.EqualTypes(ctx, append(slices.Clone(names), ask...))
	if errors.Is(err, ErrPermanent) {
		var fit []string
		for _, name := range names {
			_, err := w.cfg.Store.EqualTypes(ctx, []string{name})
			if err == nil {
				fit = append(fit, name)
			} else if !errors.Is(err, ErrPermanent) {
				return err
			}
		}
		pairs, err = w.cfg.Store.EqualTypes(ctx, append(fit, ask...))
	}
	if err != nil {
		return err
	}
	w.controls.compared(names, ask, pairs)
	return nil
}

// waits says whether the worker was started with Paused and not resumed yet.
func (c *controls) waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting
}

// say is one log line for a pause that begins, and one for its end.
func (c change) say(log *zap.Logger) {
	who := func(said Control, when string) {
		if said.By != "" {
			log = log.With(zap.String("by", said.By), zap.String(when, said.since()))
		}
	}
	if !c.over {
		who(c.pause, "since")
		if c.pause.Reason != "" {
			log = log.With(zap.String("reason", c.pause.Reason))
		}
		if !c.pause.Scope.Known() {
			log.Warn("a pause of an unknown scope is not obeyed: it is of another version, or mistyped", zap.String("what", c.pause.what()))
			return
		}
		log.Info("paused: what is claimed is finished, nothing more of it is claimed", zap.String("what", c.pause.what()))
		return
	}
	if c.pause.Scope != "" && !c.pause.Scope.Known() {
		return
	}
	who(c.resume, "at")
	if c.pause.Scope == "" {
		log.Info("resumed", zap.String("what", "this worker, which was started with --paused"))
		return
	}
	log.Info("resumed", zap.String("what", c.pause.what()), zap.String("paused_since", c.pause.since()))
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
		return startedPaused, true
	}
	return "", false
}

const startedPaused = "started with --paused; outboxctl resume --all --execute ends it"

func (l Control) what() string {
	if l.Scope == ScopeAll && l.Name == "" {
		return "everything"
	}
	return fmt.Sprintf("%s %q", l.Scope, l.Name)
}

func (l Control) since() string { return l.ChangedAt.UTC().Format(time.RFC3339) }

func (l Control) words() string {
	text := fmt.Sprintf("%s is paused since %s by %s", l.what(), l.since(), l.By)
	if l.Reason != "" {
		text += ": " + l.Reason
	}
	return text
}

// paused says whether a person has paused one event type; a start with Paused is
// allPaused's.
func (c *controls) paused(eventType, destination string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.list {
		if !l.Paused {
			continue
		}
		switch l.Scope {
		case ScopeAll:
			return true
		case ScopeEventType:
			if l.Name == eventType || c.twins[l.Name][eventType] {
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
		if l.Paused && l.Scope.Known() {
			out = append(out, l)
		}
	}
	return out
}
