package service

import (
	"errors"
	"fmt"
	"time"

	"azsqloutbox/servicebus"
	"azsqloutbox/sqlserver"
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
		flag  string
		value int64
	}{
		{"lanes", int64(s.Claim.Lanes)},
		{"batch", int64(s.Claim.Batch)},
		{"max-rounds", int64(s.Claim.MaxRounds)},
		{"max-attempts", int64(s.Claim.MaxAttempts)},
		{"max-in-flight", int64(orOne(s.Claim.MaxInFlight))},
		{"max-event-bytes", s.SQL.MaxEventBytes},
		{"max-batch-bytes", s.SQL.MaxBatchBytes},
		{"servicebus-connections", int64(s.ServiceBus.Connections)},
	} {
		if n.value < 1 {
			return fmt.Errorf("--%s is %d, it may be 1 or more", n.flag, n.value)
		}
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"lease", s.Claim.Lease},
		{"publish-deadline", orOne(s.Claim.PublishDeadline)},
		{"idle-poll", s.Claim.IdlePoll},
		{"reap-every", s.Claim.ReapEvery},
		{"grace", s.Process.Grace},
		{"servicebus-send-timeout", s.ServiceBus.SendTimeout},
	} {
		if d.value <= 0 {
			return fmt.Errorf("--%s is %s, it may be more than zero, such as 500ms or 20s", d.flag, d.value)
		}
	}
	if d := s.Claim.PublishDeadline; d != nil && *d >= s.Claim.Lease {
		return fmt.Errorf("--publish-deadline (%s) must be shorter than --lease (%s): after the lease another worker sends the same events", *d, s.Claim.Lease)
	}
	if s.SQL.DSN == "" {
		return errors.New("--sql-dsn (OUTBOX_SQL_DSN) is missing: want sqlserver://user:password@host:port?database=name")
	}
	if err := sqlserver.CheckDSN(s.SQL.DSN); err != nil {
		return fmt.Errorf("--sql-dsn: %w", err)
	}
	if s.ServiceBus.Namespace == "" && s.ServiceBus.ConnectionString == "" {
		return errors.New("--servicebus-namespace (OUTBOX_SERVICEBUS_NAMESPACE) or --servicebus-connection-string (OUTBOX_SERVICEBUS_CONNECTION_STRING) is missing")
	}
	if s.ServiceBus.Namespace != "" && s.ServiceBus.ConnectionString != "" {
		return errors.New("--servicebus-namespace and --servicebus-connection-string are both given: use one")
	}
	return nil
}

// orOne stands in for a setting that was not given.
func orOne[T int | time.Duration](p *T) T {
	if p == nil {
		return 1
	}
	return *p
}
