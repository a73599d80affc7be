package sqlserver

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/azuread"
	"github.com/microsoft/go-mssqldb/msdsn"
)

const (
	// dialTimeout and connectionTimeout bound a login, which has run past its
	// context in go-mssqldb. The second is also the longest silence of a server
	// that is read from: a statement that answers nothing for so long loses its
	// connection. Nothing a worker sends comes near it.
	dialTimeout       = 15 * time.Second
	connectionTimeout = 60 * time.Second
	// maxOpen is what a worker with many lanes uses, and far below the workers
	// that even a small database has.
	maxOpen = 32
	// connMaxLifetime is below the life of an Entra token (SqlClient issue 2792).
	connMaxLifetime = 30 * time.Minute
)

// ConnectionsFor is the size of a pool on which no call of a worker with so many
// lanes waits for another: one a lane, the settler, the reaper, the heartbeat,
// the look for event types without a route, the count of the backlog, and some
// that hang until their watchdog closes them.
func ConnectionsFor(lanes int) int { return lanes + 8 }

// Options are what a program adds to the DSN.
type Options struct {
	// AppName is what sys.dm_exec_sessions shows where the DSN names no app.
	AppName string
	// MaxOpenConns bounds the pool; default 32.
	MaxOpenConns int
	// LongStatements is for what may run for hours without a byte of answer, an
	// index rebuild: there is no connection timeout, whatever the DSN says.
	LongStatements bool
}

// Open checks a go-mssqldb URL and opens a pool on it; it does not connect. With
// the parameter fedauth it logs in by Entra. Its errors name the parameter that
// is wrong and never hold a secret.
func Open(dsn string, o Options) (*sql.DB, error) {
	u, entra, err := parseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("the DSN %w", err)
	}
	q := u.Query()
	setDefault(q, "app name", o.AppName)
	setDefault(q, "dial timeout", fmt.Sprintf("%.0f", dialTimeout.Seconds()))
	if o.LongStatements {
		setAlways(q, "connection timeout", "0")
	} else {
		setDefault(q, "connection timeout", fmt.Sprintf("%.0f", connectionTimeout.Seconds()))
	}
	// Without it a UNIQUEIDENTIFIER comes in SQL Server's mixed byte order.
	setDefault(q, "guid conversion", "true")
	u.RawQuery = q.Encode()

	config, err := msdsn.Parse(u.String())
	if err != nil {
		return nil, fmt.Errorf("the DSN cannot be used: %s", withoutSecrets(err, u))
	}
	// The driver would read every time of the table as one of that zone, and
	// the ids of messages are made from such a time.
	if zone := config.Encoding.GetTimezone(); zone.String() != time.UTC.String() {
		return nil, fmt.Errorf("the DSN has a parameter timezone, %q: the times in the table are UTC, leave it out", zone)
	}
	inner := mssql.NewConnectorConfig(config)
	if entra {
		if inner, err = azuread.NewConnector(u.String()); err != nil {
			return nil, fmt.Errorf("the DSN cannot be used: %s", withoutSecrets(err, u))
		}
	}
	db := sql.OpenDB(newConnector(inner, config.KeepAlive))
	limit := maxOpen
	if o.MaxOpenConns > 0 {
		limit = o.MaxOpenConns
	}
	db.SetMaxOpenConns(limit)
	db.SetMaxIdleConns(limit)
	db.SetConnMaxIdleTime(sessionMaxIdle)
	db.SetConnMaxLifetime(connMaxLifetime)
	return db, nil
}

// CheckDSN says what is wrong with a DSN, without opening anything.
func CheckDSN(dsn string) error {
	db, err := Open(dsn, Options{})
	if err != nil {
		return err
	}
	return db.Close()
}

// parameters are the names that go-mssqldb and its azuread package read from a
// URL (their README). The driver ignores any other without a word, so that a
// typo in encrypt would leave its default.
var parameters = []string{
	"database", "encrypt", "trustservercertificate", "certificate", "servercertificate", "tlsmin",
	"packet size", "log", "connection timeout", "dial timeout", "hostnameincertificate", "keepalive",
	"serverspn", "workstation id", "app name", "applicationintent", "failoverpartner", "failoverport",
	"failoverpartnerspn", "disableretry", "protocol", "pipe", "multisubnetfailover", "notraceid",
	"guid conversion", "timezone", "epa enabled", "user id", "password", "authenticator",
	"krb5-configfile", "krb5-realm", "krb5-keytabfile", "krb5-credcachefile", "krb5-dnslookupkdc", "krb5-udppreferencelimit",
	"fedauth", "applicationclientid", "clientcertpath", "resource id", "serviceconnectionid", "systemtoken",
	"clientassertion", "userassertion", "tokenfilepath", "additionallyallowedtenants", "disableinstancediscovery", "sendcertificatechain",
	"columnencryption",
}

// fedauths are the values of fedauth, in their only right spelling: the
// package compares some of them without regard to case and takes any other
// word for ActiveDirectoryDefault.
var fedauths = []string{
	azuread.ActiveDirectoryDefault, azuread.ActiveDirectoryManagedIdentity, azuread.ActiveDirectoryMSI,
	azuread.ActiveDirectoryWorkloadIdentity, azuread.ActiveDirectoryAzCli, azuread.ActiveDirectoryAzureDeveloperCli,
	azuread.ActiveDirectoryServicePrincipal, azuread.ActiveDirectoryApplication,
	azuread.ActiveDirectoryServicePrincipalAccessToken, azuread.ActiveDirectoryPassword,
	azuread.ActiveDirectoryEnvironment, azuread.ActiveDirectoryAzurePipelines,
	azuread.ActiveDirectoryClientAssertion, azuread.ActiveDirectoryOnBehalfOf,
	azuread.ActiveDirectoryDeviceCode, azuread.ActiveDirectoryInteractive,
}

func parseDSN(dsn string) (u *url.URL, entra bool, err error) {
	if strings.TrimSpace(dsn) == "" {
		return nil, false, errors.New("is empty: want sqlserver://user:password@host:port?database=name")
	}
	if strings.Contains(dsn, ";") && !strings.Contains(dsn, "://") {
		return nil, false, errors.New("is an ADO connection string: want a URL, sqlserver://host?database=name&fedauth=ActiveDirectoryManagedIdentity or sqlserver://user:password@host?database=name")
	}
	if strings.TrimSpace(dsn) != dsn || strings.ContainsFunc(dsn, unicode.IsControl) {
		return nil, false, errors.New("has white space at an end or a control character in it: what is read from a file ends in a line break")
	}
	u, err = url.Parse(dsn)
	if err != nil {
		// The parser's own error quotes the text, password and all.
		return nil, false, errors.New("is no URL: a password with one of : / ? # [ ] @ % in it must be percent-encoded")
	}
	if u.Scheme != "sqlserver" {
		return nil, false, errors.New("must begin with sqlserver://")
	}
	if u.Hostname() == "" {
		return nil, false, errors.New("names no host: want sqlserver://user:password@host:port?database=name")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, false, errors.New("has a query part that cannot be read: its values must be percent-encoded")
	}
	seen := make(map[string]bool, len(q))
	for _, name := range slices.Sorted(mapKeys(q)) {
		lower := strings.ToLower(name)
		if !slices.Contains(parameters, lower) {
			return nil, false, unknownParameter(name)
		}
		if seen[lower] || len(q[name]) > 1 {
			return nil, false, fmt.Errorf("has the parameter %q twice", lower)
		}
		seen[lower] = true
		if lower == "fedauth" {
			entra = true
			if value := q.Get(name); !slices.Contains(fedauths, value) {
				return nil, false, fmt.Errorf("has an unknown fedauth%s; it may be %s", didYouMean(value, fedauths), strings.Join(fedauths, ", "))
			}
		}
	}
	return u, entra, nil
}

// unknownParameter names a parameter that looks like one. What does not may be
// the rest of a password that was not encoded.
func unknownParameter(name string) error {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != ' ' && c != '-' {
			return errors.New("has a parameter that is unknown; a password with one of : / ? # [ ] @ % & in it must be percent-encoded")
		}
	}
	return fmt.Errorf("has an unknown parameter %q%s", name, didYouMean(strings.ToLower(name), parameters))
}

func mapKeys(q url.Values) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range q {
			if !yield(k) {
				return
			}
		}
	}
}

func setDefault(q url.Values, name, value string) {
	if value == "" {
		return
	}
	for k := range q {
		if strings.EqualFold(k, name) {
			return
		}
	}
	q.Set(name, value)
}

// setAlways takes out what the DSN says, in any case, as the driver reads it.
func setAlways(q url.Values, name, value string) {
	for k := range q {
		if strings.EqualFold(k, name) {
			q.Del(k)
		}
	}
	q.Set(name, value)
}

// didYouMean finds the word that differs in case, or by one edit or two.
func didYouMean(word string, words []string) string {
	best, bestDistance := "", 3
	for _, w := range words {
		if d := distance(strings.ToLower(word), strings.ToLower(w)); d < bestDistance {
			best, bestDistance = w, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q", best)
}

// distance is the number of letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// withoutSecrets is the text of err with every secret of the URL blotted out.
func withoutSecrets(err error, u *url.URL) string {
	text := err.Error()
	password, _ := u.User.Password()
	secrets := []string{u.String(), u.RawQuery, password, url.QueryEscape(password), url.PathEscape(password)}
	for name, values := range u.Query() {
		switch strings.ToLower(name) {
		case "password", "systemtoken", "clientassertion", "userassertion":
			secrets = append(secrets, values...)
		}
	}
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}
