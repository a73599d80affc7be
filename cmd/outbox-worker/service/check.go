package service

import (
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"azsqloutbox/servicebus"
	"azsqloutbox/worker"
)

func credentialNames() string {
	return fmt.Sprintf("%s, %s, %s, %s", servicebus.CredentialManagedIdentity, servicebus.CredentialWorkloadIdentity,
		servicebus.CredentialAzureCLI, servicebus.CredentialDefault)
}

// check refuses what the packages below would take for "use the default": a
// zero that somebody typed is a mistake. Ranges are theirs to check, but a zero
// never reaches them as one.
func (s Settings) check() error {
	for _, n := range []struct {
		flag        string
		value, most int64
	}{
		{"lanes", int64(s.Claim.Lanes), worker.MaxLanes},
		{"batch", int64(s.Claim.Batch), worker.MaxBatch},
		{"max-rounds", int64(s.Claim.MaxRounds), math.MaxInt32},
		{"max-attempts", int64(s.Claim.MaxAttempts), math.MaxInt32},
		{"max-in-flight", int64(orOne(s.Claim.MaxInFlight)), worker.MaxMaxInFlight},
		{"max-event-bytes", s.SQL.MaxEventBytes, math.MaxInt32},
		{"max-batch-bytes", s.SQL.MaxBatchBytes, math.MaxInt32},
		{"servicebus-connections", int64(s.ServiceBus.Connections), 100},
		{"servicebus-batch-bytes", int64(orOne(s.ServiceBus.BatchBytes)), math.MaxInt32},
	} {
		if n.value < 1 || n.value > n.most {
			return fmt.Errorf("--%s is %d, it may be 1 to %d", n.flag, n.value, n.most)
		}
	}
	if n := s.SQL.MaxEventBytes; n < leastEventBytes {
		return fmt.Errorf("--max-event-bytes is %d, it may be %d or more: every event that is larger is parked", n, leastEventBytes)
	}
	if r := s.ServiceBus.Rate; !(r >= 0 && r <= servicebus.MaxRate) { // NaN is neither
		return fmt.Errorf("--servicebus-rate is %g, it may be a positive number of messages a second up to %d, or 0 for no bound", r, int(servicebus.MaxRate))
	}
	for _, d := range []struct {
		flag         string
		value, least time.Duration
	}{
		{"lease", s.Claim.Lease, time.Second},
		{"idle-poll", s.Claim.IdlePoll, time.Millisecond},
		{"reap-every", s.Claim.ReapEvery, 10 * time.Millisecond},
		{"grace", s.Process.Grace, time.Millisecond},
		{"servicebus-send-timeout", s.ServiceBus.SendTimeout, time.Second},
	} {
		if d.value < d.least || d.value > 24*time.Hour {
			return fmt.Errorf("--%s is %s, it may be %s to 24h", d.flag, d.value, d.least)
		}
	}
	if d := s.Claim.PublishDeadline; d != nil {
		if longest := worker.LongestPublishDeadline(s.Claim.Lease); *d < time.Millisecond || *d > longest {
			return fmt.Errorf("--publish-deadline is %s, under a --lease of %s it may be 1ms to %s: after the lease another worker sends the same events, and settling needs time before it",
				*d, s.Claim.Lease, longest)
		}
	}
	if n := len(s.Process.Owner); n > longestOwner {
		return fmt.Errorf("--owner has %d bytes, it may have %d at most", n, longestOwner)
	}
	if s.Claim.Paused && s.Claim.Drain {
		return errors.New("--paused and --drain exclude each other: a paused worker empties nothing")
	}
	if s.Process.Listen != "off" {
		_, port, err := net.SplitHostPort(s.Process.Listen)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil {
			return fmt.Errorf("--listen %q: want host:port, :port or off", s.Process.Listen)
		}
	}
	if err := s.SQL.Check(); err != nil {
		return err
	}
	return s.ServiceBus.check()
}

// leastEventBytes is below what any real payload with its headers has: a smaller
// bound is a slip of the hand that would park everything.
const leastEventBytes = 1024

// longestOwner is what the columns of receipts and heartbeats hold, in bytes.
const longestOwner = 100

// orOne stands in for a setting that was not given.
func orOne(p *int) int {
	if p == nil {
		return 1
	}
	return *p
}

// check says which of the two ways to the broker is missing, or one too many.
func (s ServiceBusSettings) check() error {
	if s.Namespace == "" && s.ConnectionString == "" {
		return errors.New("--servicebus-namespace (OUTBOX_SERVICEBUS_NAMESPACE) or --servicebus-connection-string (OUTBOX_SERVICEBUS_CONNECTION_STRING) is missing")
	}
	if s.Namespace != "" && s.ConnectionString != "" {
		return errors.New("--servicebus-namespace and --servicebus-connection-string are both given: use one")
	}
	return nil
}
