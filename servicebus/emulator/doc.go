// Package emulator is an embedded Azure Service Bus for tests and local use: an
// AMQP 1.0 server on a real socket that the real client libraries use
// unmodified.
//
// # Modelled
//
// Meant to behave as the service does:
//
//   - queues, topics and subscriptions with correlation filters and the true and
//     false filter, dead-letter queues, peek-lock and receive-and-delete,
//     complete, abandon, defer, dead-letter, lock expiry, delivery count, time to
//     live, scheduled messages, message sessions with state, duplicate detection
//     by message id
//   - batches that are taken whole or not at all, the rules of partitioned
//     entities on them; limits on the size of messages and batches by tier, on
//     their number, on ids and properties, on the entity's size, on connections
//     of the namespace, on links and tokens of a connection
//   - $cbs with SAS tokens whose policy, signature, rights, entity and expiry
//     are checked, JWTs of Entra whose audience and times are, SASL PLAIN with a
//     policy's name and key; links end when their token does
//   - $management: peek, schedule, cancel, renew, settle, receive deferred
//     messages, session state
//   - flow control by session window and link credit, drain, both settle
//     modes, heartbeats, TLS, AMQP over WebSockets, links that are idle and
//     connections without any (with Config.LinkIdleTimeout and
//     ConnectionIdleTimeout)
//   - entities that are disabled, full, made or deleted, by [Server.SetStatus],
//     [Server.SetMaxSizeBytes], [Server.CreateEntity] and [Server.DeleteEntity]
//     while clients are connected
//   - throttling of sends by credits per second (with Config.CreditsPerSecond)
//   - what azservicebus/admin reads over HTTP: properties and runtime properties
//     of queues, topics and subscriptions, rules, lists of them by page, the
//     namespace; the right to manage is needed, an entity that is not there is an
//     empty feed
//
// All of it is on one port, told apart by the first byte of a connection. As on
// the service, a message that was locked by a connection that is gone stays
// locked until its lock ends, while a session is free at once.
//
// The admin client of azservicebus speaks https whatever the connection string
// says of an emulator. With Config.TLS it works as it is, its transport trusting
// the certificate; without, it needs a transport that makes http of https.
//
// # Refused
//
// With a clear AMQP error (amqp:not-implemented, or 501 in a management reply):
// transactions, rule management over AMQP, listing sessions, dynamic nodes,
// transfer dead-letter queues, source filters other than the session filter.
// With HTTP status 501: creating, changing and deleting entities. By [Start]:
// SQL filters other than 1=1 and 1=0, rules that compare nothing, values in
// rules that no message can equal, entities that are outside the service's
// bounds on names, durations and counts. By a panic, since it is a test's
// mistake: faults, statuses and names that cannot be.
//
// # Accepted as syntax only
//
// The signature and the issuer of a JWT, which all have the rights of
// Config.EntraRights; the host in a SAS token's resource, of which only the path
// is compared; the api-version of an admin request, but for the filter counts
// that are new in 2024-05; durability and expiry policy of a terminus;
// priorities.
//
// # Not there
//
// So that nothing can be concluded about it: actions of rules, partitioning
// beyond the rules on batches, auto-forwarding, auto-delete, quotas on
// receivers and entities of a namespace, credits for what is not a send,
// geo-replication, persistence. A lock may be shorter, and an entity's size
// another, than the service offers. An entity's AccessedAt is always unknown, and
// what it was created and updated at is when the server was started. The
// service's exact error texts are imitated where they were known; where the
// condition of an error is only believed, the line that makes it says so.
//
// Faults are scripted with [Server.Inject], [Server.KillConnections],
// [Server.CloseConnections], [Server.DetachLinks], [Server.Suspend] and
// [Server.Resume]; [Server.FaultsFired] counts them. [Server.Messages],
// [Server.Each], [Server.Counts] and [Server.Stats] look inside without
// receiving; [Server.Observe] sees all that is sent. Entity.Discard is no
// behaviour of the service: it forgets what it has counted, for load tests.
package emulator
