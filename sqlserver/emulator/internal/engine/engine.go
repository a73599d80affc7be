// Package engine executes the T-SQL that reaches the embedded SQL Server. What
// it models, accepts as syntax only and refuses is told by the comment of
// package emulator; this one is about how.
//
// A text goes through guard (bounds, and what the parser would let pass), the
// parser teesql, and a builder that makes a module: a tree of nodes. The parts of
// a node that need names are units, bound before the first statement of the
// module runs and again when the catalog or a SET option has changed. Modules
// are cached by text and SET options (plancache.go). A compiler binds a unit to
// closures; the planner chooses an access for each table by rules, and nested
// loops join them. Statements with a plan are measured (measured.go) and keep
// the shape of their plan (planshape.go) for the views.
//
// Where to add something: a statement in statement.go or definition.go, a
// function in a func_*.go, an @@ variable in globals.go, a system procedure in
// sysprocs.go, a function that gives rows in rowfunctions.go, a view in a
// view_*.go. Each is one entry of a table. What a view cannot answer truly it
// leaves out, or has as NULL.
//
// Rows, versions and locks are package storage's, types and collations package
// sqltype's. A session belongs to one goroutine at a time; what others may see
// of it is atomic (sessionstate.go). The catalog holds definitions that never
// change: DDL replaces them.
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
	// Admin is the login whose user is dbo, whatever users there are.
	Admin string
	// Server is what @@SERVERNAME says; "emulator" when empty.
	Server string
	// Logger gets one debug line a statement; nil is silent.
	Logger *zap.Logger
	// Edition is the product that it stands for.
	Edition Edition
	// ServiceObjective of an Azure SQL database; "GP_Gen5_2" when empty.
	ServiceObjective string
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

	resumables resumables

	sessionsMu sync.Mutex
	sessions   map[*session]struct{}

	// spids maps storage's session ids to the sessions', which outlive a reset.
	spids sync.Map

	fakesMu sync.RWMutex
	fakes   map[string]*fakeView

	lastTransaction atomic.Uint64
	started         time.Time
}

// New returns an empty database.
func New(config Config) *Engine {
	config.Database = cmp.Or(config.Database, "outbox")
	config.Server = cmp.Or(config.Server, "emulator")
	if config.Edition == AzureSQLDatabase {
		config.ServiceObjective = cmp.Or(config.ServiceObjective, "GP_Gen5_2")
	}
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
		database: config.Edition.database(),
		sessions: make(map[*session]struct{}),
		fakes:    make(map[string]*fakeView),
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
