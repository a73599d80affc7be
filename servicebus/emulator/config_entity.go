package emulator

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what an entity can be made with. A lock shorter than the service
// would grant is allowed, so that a test can wait for its end, and so is a size
// that it does not offer.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
// https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection
// https://learn.microsoft.com/dotnet/api/azure.messaging.servicebus.administration.createqueueoptions
const (
	maxLockDuration    = 5 * time.Minute
	minDefaultTTL      = time.Second
	minDuplicateWindow = 20 * time.Second
	maxDuplicateWindow = 7 * 24 * time.Hour
	maxPathLength      = 260 // of a queue or topic
	maxNameLength      = 50  // of a subscription or rule
	maxSubscriptions   = 2000
)

func (e Entity) validate(t Tier) error {
	most := t.messageLimit()
	if t == Premium {
		most = premiumMaxMessageBytes
	}
	topic := e.Kind == Topic
	switch {
	case e.Kind > Topic:
		return invalid("Kind", "%d is neither Queue nor Topic", e.Kind)
	case e.Name == "" || strings.ContainsAny(e.Name, "$?#@*\\") || strings.Trim(e.Name, "/") != e.Name:
		return invalid("Name", "must not be empty, hold any of $?#@*\\, or begin or end with a slash")
	case utf8.RuneCountInString(e.Name) > maxPathLength:
		return invalid("Name", "longer than %d characters", maxPathLength)
	case e.MaxMessageBytes < 0 || e.MaxMessageBytes > most:
		return invalid("MaxMessageBytes", "%d is not between 1 and the %d of tier %s", e.MaxMessageBytes, most, t)
	case e.MaxSizeBytes < 0:
		return invalid("MaxSizeBytes", "must not be negative")
	case !topic && len(e.Subscriptions) > 0:
		return invalid("Subscriptions", "only a topic has them")
	case len(e.Subscriptions) > maxSubscriptions:
		return invalid("Subscriptions", "%d, where a topic has at most %d", len(e.Subscriptions), maxSubscriptions)
	case topic && e.RequiresSession:
		return invalid("RequiresSession", "a topic has no sessions, its subscriptions do")
	case !e.DuplicateDetection && e.DuplicateWindow != 0:
		return invalid("DuplicateWindow", "set without DuplicateDetection")
	case e.DuplicateDetection && (e.DuplicateWindow < minDuplicateWindow || e.DuplicateWindow > maxDuplicateWindow):
		return invalid("DuplicateWindow", "%s is not between %s and %s", e.DuplicateWindow, minDuplicateWindow, maxDuplicateWindow)
	}
	if err := validateDelivery(e.LockDuration, e.DefaultTTL, e.MaxDeliveryCount); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, s := range e.Subscriptions {
		if err := s.validate(); err != nil {
			return fmt.Errorf("subscription %q: %w", s.Name, err)
		}
		name := strings.ToLower(s.Name)
		if names[name] {
			return invalid("Subscriptions.Name", "there are two of %q", s.Name)
		}
		names[name] = true
	}
	return nil
}

func (s Subscription) validate() error {
	switch {
	case s.Name == "" || strings.ContainsAny(s.Name, "/$?#@*\\"):
		return invalid("Subscriptions.Name", "must not be empty or hold any of /$?#@*\\")
	case utf8.RuneCountInString(s.Name) > maxNameLength:
		return invalid("Subscriptions.Name", "longer than %d characters", maxNameLength)
	}
	names := map[string]bool{}
	for _, r := range s.Rules {
		if err := r.validate(); err != nil {
			return err
		}
		name := strings.ToLower(r.Name)
		switch {
		case utf8.RuneCountInString(r.Name) > maxNameLength:
			return invalid("Rules.Name", "longer than %d characters", maxNameLength)
		case names[name]:
			return invalid("Rules.Name", "there are two of %q", r.Name)
		}
		names[name] = true
	}
	return validateDelivery(s.LockDuration, s.DefaultTTL, s.MaxDeliveryCount)
}

// validateDelivery is for what queues and subscriptions have in common.
func validateDelivery(lock, ttl time.Duration, deliveries int) error {
	switch {
	case lock <= 0 || lock > maxLockDuration:
		return invalid("LockDuration", "%s is not above 0s and at most %s", lock, maxLockDuration)
	case ttl != 0 && ttl < minDefaultTTL:
		return invalid("DefaultTTL", "%s is less than %s", ttl, minDefaultTTL)
	case deliveries < 1 || deliveries > math.MaxInt32:
		return invalid("MaxDeliveryCount", "%d is not between 1 and %d", deliveries, math.MaxInt32)
	}
	return nil
}
