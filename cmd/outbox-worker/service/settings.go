// Package service is the outbox worker as a process: its settings, and the
// wiring of store, publisher, loop, health and metrics. The worker's own
// program and the local stack share it, so that what a demo shows is what
// ships.
package service

import (
	"fmt"
	"time"

	"azsqloutbox/worker"
)

// Settings are the flags of outbox-worker; each is an OUTBOX_… environment
// variable of the same name as well.
type Settings struct {
	SQL        SQLSettings        `embed:"" group:"Database"`
	ServiceBus ServiceBusSettings `embed:"" group:"Service Bus"`
	Claim      ClaimSettings      `embed:"" group:"Claiming"`
	Process    ProcessSettings    `embed:"" group:"Process"`

	// Observer sees what the metrics see; it is for programs that embed a
	// worker, and no flag.
	Observer worker.Observer `kong:"-"`
}

// DatabaseSettings name the database and the table. outboxctl has them too.
type DatabaseSettings struct {
	DSN        string `name:"sql-dsn" placeholder:"URL" help:"The database, as a go-mssqldb URL: sqlserver://user:password@host?database=name, or with fedauth=ActiveDirectoryManagedIdentity (…WorkloadIdentity, …AzCli, …Default) for Entra."`
	Schema     string `default:"dbo" help:"Schema of the outbox table."`
	Table      string `default:"outbox_event" help:"The outbox table. Beside it are <table>_claim with the receipts, <table>_worker and <table>_control."`
	ClaimIndex string `default:"IX_outbox_claim" help:"The filtered index that claims read."`
	RetryIndex string `default:"IX_outbox_retry" help:"The filtered index of failed events."`
}

// SQLSettings are the database and how much of it is read at once.
type SQLSettings struct {
	DatabaseSettings
	MaxEventBytes int64 `default:"1048576" placeholder:"BYTES" help:"Events whose payload and headers are larger are parked without being read. Default 1 MiB."`
	MaxBatchBytes int64 `default:"16777216" placeholder:"BYTES" help:"A claim stops at so many bytes of payload, whatever its row count. Default 16 MiB."`
}

// ServiceBusSettings name the broker and what goes where.
type ServiceBusSettings struct {
	Namespace        string `name:"servicebus-namespace" placeholder:"HOST" help:"The namespace, as NAME.servicebus.windows.net, with Entra."`
	ConnectionString string `name:"servicebus-connection-string" placeholder:"STRING" help:"A connection string instead of a namespace."`
	Credential       string `name:"servicebus-credential" default:"managed-identity" help:"Where the Entra token comes from: ${credentials}."`
	IdentityClientID string `name:"servicebus-client-id" placeholder:"ID" help:"Client id of a user-assigned identity."`
	WebSockets       bool   `name:"servicebus-websockets" help:"AMQP over WebSockets, for networks that let only port 443 out."`

	Entity string `placeholder:"NAME" help:"Queue or topic of every event type that has no route of its own. All that a simple set-up needs."`
	Config string `placeholder:"FILE" help:"YAML file with routes: event type to queue or topic."`
	Source string `placeholder:"NAME" help:"First part of every MessageID. Default: database.schema.table."`

	BatchBytes  *int          `name:"servicebus-batch-bytes" placeholder:"BYTES" help:"A lower cap than the link's for one batch."`
	Connections int           `name:"servicebus-connections" default:"1" help:"AMQP connections; more than one helps at very high rates."`
	Rate        float64       `name:"servicebus-rate" placeholder:"N" help:"Messages a second this worker sends to one queue or topic at most, where its route names no rate of its own. Default: no bound. The Standard tier has 1,000 a second for a whole namespace."`
	SendTimeout time.Duration `name:"servicebus-send-timeout" default:"10s" help:"Deadline of one send, its own retries included."`
}

// ClaimSettings tune the loop.
type ClaimSettings struct {
	Lanes           int            `default:"${lanes}" help:"Claims at the same time, each on a connection of its own."`
	Batch           int            `default:"${batch}" help:"Events a claim takes at most."`
	MaxRounds       int            `default:"${max_rounds}" help:"Claims of one event type before the others have had theirs."`
	MaxInFlight     *int           `placeholder:"N" help:"Claimed batches on their way to the broker; it bounds memory. Default: twice the lanes."`
	Lease           time.Duration  `default:"${lease}" help:"After so long without being settled, a claim is given to another worker."`
	PublishDeadline *time.Duration `placeholder:"DURATION" help:"After so long a claimed event is not sent any more. Below the lease. Default: ${publish_deadline}, or half the lease where that is less."`
	IdlePoll        time.Duration  `default:"${idle_poll}" help:"Pause between two looks for pending events, an eighth more on average. With --entity, types not seen for two minutes are looked for once a second."`
	ReapEvery       time.Duration  `default:"${reap_every}" help:"Pause between two looks for leases that are over."`
	MaxAttempts     int            `default:"${max_attempts}" help:"An event that failed so many times is parked."`
	Paused          bool           `help:"Connect and say so, but claim nothing until outboxctl resume --all."`
	Drain           bool           `help:"Empty the backlog of the routed event types, then exit. Waits as long as something cannot be published; FAILED events do not count."`
}

// ProcessSettings are about the process itself.
type ProcessSettings struct {
	Owner     string        `placeholder:"NAME" help:"Name of this worker in receipts and heartbeats. Default: host name and process id."`
	Grace     time.Duration `default:"${grace}" help:"How long a stop may take; below the platform's kill."`
	Listen    string        `default:":8080" help:"Address of /livez, /readyz, /metrics and the status page; \"off\" for none."`
	LogFormat string        `default:"json" enum:"json,console" help:"json or console."`
	LogLevel  string        `default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error."`
}

// Defaults are the variables that the struct tags above name.
func Defaults() map[string]string {
	return map[string]string{
		"lanes":            fmt.Sprint(worker.DefaultLanes),
		"batch":            fmt.Sprint(worker.DefaultBatch),
		"max_rounds":       fmt.Sprint(worker.DefaultMaxRounds),
		"lease":            worker.DefaultLease.String(),
		"publish_deadline": worker.DefaultPublishDeadline.String(),
		"idle_poll":        worker.DefaultIdlePoll.String(),
		"reap_every":       worker.DefaultReapEvery.String(),
		"max_attempts":     fmt.Sprint(worker.DefaultMaxAttempts),
		"grace":            worker.DefaultGrace.String(),
	}
}
