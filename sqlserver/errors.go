package sqlserver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/worker"
)

// Class says what can be done about an error of the database.
type Class uint8

const (
	// Transient: wait, then try again. It is also the class of what is not known,
	// for the worker's sake: giving up is the worse mistake. Whoever has a person
	// waiting looks closer; Error says that the number is not known.
	Transient Class = iota
	// Contention: a deadlock or a lock timeout; the transaction was rolled back
	// and may be tried again at once.
	Contention
	// Reconnect: this connection leads to the wrong replica or has an expired
	// token; a new one may not.
	Reconnect
	// IndexUnusable: the claim index is missing, disabled, or does not match.
	// Claiming pauses; the statements never fall back to a scan.
	IndexUnusable
	// Permanent: a right, an object or a login is missing; waiting does not help.
	Permanent
)

func (c Class) String() string {
	switch c {
	case Contention:
		return "contention"
	case Reconnect:
		return "reconnect"
	case IndexUnusable:
		return "index unusable"
	case Permanent:
		return "permanent"
	default:
		return "transient"
	}
}

// Error is an error of the database with what is known about its number. It
// wraps the driver's error, and worker.ErrPermanent where Class is Permanent.
type Error struct {
	// Op is what was tried on what.
	Op string
	// Number is the server's error number; 0 where none came from it.
	Number int32
	Class  Class
	// Wait is how long the service asks to wait; 0 where it says nothing.
	Wait time.Duration
	// Advice is what a person can do about it; may be empty.
	Advice string

	err error
	// unknown: the server's number is none that knownErrors has.
	unknown bool
	// cause is the message that Number came with; err may end in a later one.
	cause string
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op + ": ")
	}
	text := e.err.Error()
	b.WriteString(text)
	if !strings.Contains(text, e.cause) {
		b.WriteString(": " + e.cause)
	}
	if number := strconv.Itoa(int(e.Number)); e.Number != 0 && !strings.Contains(text, number) {
		b.WriteString(" [error " + number + "]")
	}
	switch {
	case e.Advice != "":
		b.WriteString(" (" + e.Advice + ")")
	case e.unknown:
		b.WriteString(" (nothing is known here about this error: trying again may not help)")
	}
	return b.String()
}

// RetryAfter is Wait, for loops that ask an error how long to pause and know
// nothing of this package.
func (e *Error) RetryAfter() time.Duration { return e.Wait }

// Unwrap lets errors.Is and errors.As see the driver's error and the class.
func (e *Error) Unwrap() []error {
	if e.Class == Permanent {
		return []error{e.err, worker.ErrPermanent}
	}
	return []error{e.err}
}

// known is one row of the table of error numbers.
type known struct {
	class  Class
	wait   time.Duration
	advice string
	// denied: a right is missing.
	denied bool
}

// knownErrors sorts the server's error numbers. The transient ones are those of
// Microsoft.Data.SqlClient's SqlConfigurableRetryFactory.BaselineTransientErrors
// and of Azure SQL's page of common connection errors; what the numbers mean is
// told by sql-docs, database-engine-events-and-errors.md.
var knownErrors = map[int32]known{
	// Contention. sql-server-transaction-locking-and-row-versioning-guide.md.
	1205: {class: Contention},
	1222: {class: Contention, advice: "another session holds a lock for longer than LOCK_TIMEOUT"},

	// The service moves, throttles or scales.
	40197: {class: Transient, advice: "the service is failing over or being upgraded"},
	40143: {class: Transient}, 40166: {class: Transient}, 40020: {class: Transient}, 40540: {class: Transient},
	40501: {class: Transient, wait: 10 * time.Second, advice: "the service is busy and asks to wait 10 seconds"},
	40613: {class: Transient, wait: 5 * time.Second, advice: "the database is not available; a paused serverless one needs about a minute to wake"},
	42108: {class: Transient, wait: 5 * time.Second, advice: "the SQL pool is paused"},
	42109: {class: Transient, wait: 5 * time.Second, advice: "the SQL pool is warming up"},
	49918: {class: Transient, wait: 10 * time.Second}, 49919: {class: Transient, wait: 10 * time.Second}, 49920: {class: Transient, wait: 10 * time.Second},
	10928: {class: Transient, wait: 10 * time.Second, advice: "a resource limit of the database is reached: workers or sessions"},
	10929: {class: Transient, wait: 10 * time.Second, advice: "the server is too busy for this database's guaranteed minimum"},
	10936: {class: Transient, wait: 10 * time.Second, advice: "the elastic pool's request limit is reached"},
	4221:  {class: Transient, advice: "login to a secondary waits for row versions"},
	926:   {class: Transient, advice: "the database is being recovered"},
	615:   {class: Transient}, 64: {class: Transient}, 233: {class: Transient}, 20: {class: Transient},
	10053: {class: Transient}, 10054: {class: Transient}, 10060: {class: Transient},
	// A moving database refuses logins for a while too, so it is no proof of a
	// wrong name: SqlClient has it among its transient errors.
	4060: {class: Transient, wait: 10 * time.Second, advice: "the database cannot be opened: its name is wrong, the login has no right to it, or a failover is under way; which of them cannot be told"},
	// The disk or the log is full: someone has to act, yet it mends while we wait.
	1105: {class: Transient, wait: 30 * time.Second, advice: "the filegroup is full"},
	9002: {class: Transient, wait: 30 * time.Second, advice: "the transaction log is full"},
	// resource-limits-logical-server.md: the database reached its size quota.
	40544: {class: Transient, wait: 30 * time.Second, advice: "the database has reached its size limit"},
	701:   {class: Transient, wait: 10 * time.Second, advice: "the database is short of memory"},
	802:   {class: Transient, wait: 10 * time.Second, advice: "the database is short of memory"},

	// The wrong replica, or a token that is too old.
	3906:  {class: Reconnect, advice: "the database is read-only here: a secondary, or the primary before a failover"},
	3908:  {class: Reconnect, advice: "the database is in emergency mode or read-only"},
	978:   {class: Reconnect, advice: "this replica takes read-only connections only"},
	983:   {class: Reconnect, advice: "the availability group is changing roles"},
	37396: {class: Reconnect, advice: "the access token has expired"},

	// The claim index. hints-transact-sql-table.md and create-index-transact-sql.md.
	308:  {class: IndexUnusable, advice: "the index is not there: outboxctl schema apply says how it is made, or a migration is rebuilding it and has only to be waited for"},
	315:  {class: IndexUnusable, advice: "the index is disabled: rebuild it"},
	8622: {class: IndexUnusable, advice: "the index does not match the statement: its filter must be status = 0, its key (event_type, id), and the SET options those that filtered indexes need"},

	// What a person has to mend.
	207:   {class: Permanent, advice: "a column is missing: outboxctl schema check names it, schema apply adds it"},
	208:   {class: Permanent, advice: "the table is missing, has another name, or the login has no right to see it: outboxctl schema apply, with the same --schema and --table, shows what is missing and adds it with --execute; if it is OPENJSON that is not known, the compatibility level is below 130"},
	229:   {class: Permanent, denied: true, advice: "the login lacks a right"},
	230:   {class: Permanent, denied: true, advice: "the login lacks a right on a column"},
	262:   {class: Permanent, denied: true, advice: "the login lacks a right in the database"},
	297:   {class: Permanent, denied: true, advice: "the login lacks a right"},
	300:   {class: Permanent, denied: true, advice: "the login lacks a right on the server"},
	468:   {class: Permanent, advice: "the column event_type and the database have collations that cannot be compared"},
	515:   {class: Permanent, advice: "a column that may not be NULL got none: the table has a column of its own without a default"},
	547:   {class: Permanent, advice: "a constraint of the table refuses the value"},
	650:   {class: Permanent, advice: "READPAST needs READ COMMITTED or REPEATABLE READ"},
	1934:  {class: Permanent, advice: "a SET option is not what filtered indexes need"},
	195:   {class: Permanent, advice: "a function is not known here: SQL Server 2019 and compatibility level 130 or higher are needed"},
	8152:  {class: Permanent, advice: "a value is longer than its column"},
	2628:  {class: Permanent, advice: "a value is longer than its column"},
	18456: {class: Permanent, advice: "the login was refused: user, password, or no user in this database"},
	18452: {class: Permanent, advice: "the login was refused: the server does not take this kind of login"},
	18470: {class: Permanent, advice: "the login is disabled"},
	18487: {class: Permanent, advice: "the password has expired"},
	18488: {class: Permanent, advice: "the password must be changed"},
	40532: {class: Permanent, advice: "the user name does not name this server"},
	40615: {class: Permanent, advice: "the server's firewall refuses this address"},
	40914: {class: Permanent, advice: "the server's virtual network rules refuse this subnet"},
	47073: {class: Permanent, advice: "public network access is off for this server"},
}

// Classify wraps err with what is known about its number, once: an error that
// is classified already is returned as it is. op says what was tried on what.
func Classify(op string, err error) error {
	if err == nil {
		return nil
	}
	var done *Error
	if errors.As(err, &done) {
		return err
	}
	e := &Error{Op: op, err: err}
	var server mssql.Error
	switch {
	case errors.Is(err, worker.ErrPermanent):
		e.Class = Permanent
	case errors.As(err, &server):
		e.Number = server.Number
		e.classify(server)
	}
	return e
}

// classify looks at every message of the answer. The driver's error is the last
// one, which is often only "the statement has been terminated", or "login
// failed" after the reason why it did.
func (e *Error) classify(server mssql.Error) {
	for _, m := range append(server.All[:len(server.All):len(server.All)], server) {
		if k, ok := knownErrors[m.Number]; ok {
			e.Number, e.Class, e.Wait, e.Advice, e.cause = m.Number, k.class, k.wait, k.advice, m.Message
			return
		}
	}
	e.unknown = server.Number < 50000 // from there on it is somebody's THROW, which explains itself
}

// contended says whether the same transaction may be tried again at once.
func contended(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Class == Contention
}

// isLockTimeout says whether err is a wait for a lock that LOCK_TIMEOUT has ended.
func isLockTimeout(err error) bool {
	var e *Error
	return errors.As(Classify("", err), &e) && e.Number == 1222
}

// ClassOf is the class of an error that this package returned.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	if errors.Is(err, worker.ErrPermanent) {
		return Permanent
	}
	return Transient
}

var (
	// errNothingToCommit ends a transaction that has changed nothing, by a
	// rollback that is no failure.
	errNothingToCommit = errors.New("nothing to commit")
	// errCommitUnknown: the commit was sent and no answer came.
	errCommitUnknown = errors.New("the commit was not answered")
	// errNoMarker: the request ended before its last statement.
	errNoMarker = errors.New("the answer ended without its marker row")
	// errColumnChanged: the table is not what the statements were made for.
	errColumnChanged = errors.New("a column of the event table has changed since it was looked at")
)

// isAnswer says whether err is one of the results that a statement can have
// without anything being wrong with it or its connection.
func isAnswer(err error) bool {
	return errors.Is(err, errNothingToCommit) || errors.Is(err, worker.ErrLeaseLost)
}

func missingTable(names Names) error {
	return &Error{
		Number: 208, Class: Permanent,
		Advice: "it is missing, has another name, or the login has no right to see it; outboxctl schema apply" + names.Flags() + " --execute makes one of this name",
		err:    fmt.Errorf("the table %s cannot be seen", names),
	}
}

func missingColumns(name string, columns []string) error {
	return &Error{
		Number: 207, Class: Permanent, Advice: knownErrors[207].advice,
		err: fmt.Errorf("the table %s has no column %s", name, strings.Join(columns, ", ")),
	}
}
