// Package engine executes the T-SQL that reaches the embedded SQL Server. It
// parses with teesql, binds names, plans with literal rules, and runs
// against the rows and locks of package storage.
//
// It is an emulator: it aims to do what SQL Server does for the statements
// that an outbox needs, with SQL Server's error numbers, and to refuse
// everything else with error 50999 (NotModelled). What it cannot show: costs
// and plans of the real optimizer, parallelism, page locks, ONLINE and
// RESUMABLE operations (accepted, done at once), permissions (every login is
// db_owner). Other than in SQL Server, names that DDL adds or drops are seen
// by other sessions before its transaction ends, and HOLDLOCK locks the table.
// Text outside Latin 1 sorts by code point, and ANSI_NULLS and
// CONCAT_NULL_YIELDS_NULL OFF change what they forbid (1934), not how
// expressions are computed.
package engine

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/sqlserver/emulator/internal/storage"
	"azsqloutbox/sqlserver/emulator/internal/tds"
)

// Config of an Engine.
type Config struct {
	// Database is the name of the one user database; "outbox" when empty.
	Database string
	// Server is what @@SERVERNAME says; "emulator" when empty.
	Server string
	// Logger gets one debug line a statement; nil is silent.
	Logger *zap.Logger
}

// Engine is one database on one server. It is safe for any number of sessions
// at once.
type Engine struct {
	config  Config
	log     *zap.Logger
	db      *storage.DB
	catalog *catalog
	plans   *planCache

	database *databaseOptions
	usage    usages

	sessionsMu sync.Mutex
	sessions   map[*session]struct{}

	// spids maps storage's session ids to the sessions', which outlive a reset.
	spids sync.Map

	lastTransaction atomic.Uint64
	started         time.Time
}

// New returns an empty database.
func New(config Config) *Engine {
	config.Database = cmp.Or(config.Database, "outbox")
	config.Server = cmp.Or(config.Server, "emulator")
	log := config.Logger
	if log == nil {
		log = zap.NewNop()
	}
	return &Engine{
		config:   config,
		log:      log,
		db:       storage.New(),
		catalog:  newCatalog(),
		plans:    newPlanCache(),
		database: newDatabaseOptions(),
		sessions: make(map[*session]struct{}),
		started:  time.Now().UTC(),
	}
}

// Storage is the rows below, for inspection by tests.
func (e *Engine) Storage() *storage.DB { return e.db }

// DatabaseName is the name of the user database.
func (e *Engine) DatabaseName() string { return e.config.Database }

// Login opens a session. Passwords are not looked at here; 4060 when the
// database is another one.
func (e *Engine) Login(ctx context.Context, l tds.Login) (tds.Session, error) {
	if l.Database != "" && !strings.EqualFold(l.Database, e.config.Database) && !strings.EqualFold(l.Database, "master") {
		return nil, &tds.Error{
			Number: 4060, Class: 11, State: 1,
			Message: "Cannot open database \"" + l.Database + "\" requested by the login. The login failed.",
		}
	}
	s := newSession(e, l)
	e.sessionsMu.Lock()
	e.sessions[s] = struct{}{}
	e.sessionsMu.Unlock()
	return s, nil
}

func (e *Engine) forget(s *session) {
	e.sessionsMu.Lock()
	delete(e.sessions, s)
	e.sessionsMu.Unlock()
}

// eachSession calls f for every open session, for sys.dm_exec_sessions.
func (e *Engine) eachSession(f func(*session)) {
	e.sessionsMu.Lock()
	defer e.sessionsMu.Unlock()
	for s := range e.sessions {
		f(s)
	}
}
