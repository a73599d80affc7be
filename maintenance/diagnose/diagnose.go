package diagnose

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"azsqloutbox/maintenance"
	"azsqloutbox/sqlserver"
)

// Config is what to diagnose.
type Config struct {
	DB *sql.DB
	sqlserver.Names
	// Top is how many rows the longer tables show; default 20.
	Top int
	// Since is how far back Query Store is asked for; default 24 hours. SinceTime,
	// where it is set, is the same as a point in time, UTC.
	Since     time.Duration
	SinceTime time.Time
	// LockTimeout is what a statement waits for a lock; default 2 s.
	LockTimeout time.Duration
	// StatementTimeout is what one statement may take; default 2 min. Sampling the
	// pages of a large table takes the longest.
	StatementTimeout time.Duration
	// Only are the ids of the sections to run; empty means all.
	Only []string
	// Progress, where it is not nil, is called before each section.
	Progress func(done, total int, title string)
}

// errSlow ends a statement that took longer than StatementTimeout.
var errSlow = errors.New("no answer within the time that one statement may take")

// errSecondary keeps what could hold up a replica from it.
var errSecondary = errors.New("pages are not sampled on a read-only replica, where that can block redo")

// section is a subject: it collects its facts, judges them and returns what it
// found; an error makes it unknown.
type section struct {
	id, title string
	// scope is the right that the views of the section need.
	scope scope
	run   func(context.Context, *source, Section) (Section, error)
}

var sections = []section{
	{"statements", "What the statements cost", ofServer, statementsSection},
	{"plan_cache", "One text, several plans", ofServer, planCacheSection},
	{"claim_plan", "The plan of the claim", ofServer, claimPlanSection},
	{"physics", "Size against memory and log rate", ofDatabase, physicsSection},
	{"indexes", "Indexes", ofDatabase, indexesSection},
	{"waits", "Waits and load", ofDatabase, waitsSection},
	{"query_store", "What got worse", ofDatabase, regressionsSection},
}

// Run asks the database and reports. It fails only where there is nothing to
// report: no connection, or no such table. One Run at a time on a Config's DB is
// enough; several may run at once.
func Run(ctx context.Context, c Config) (*Report, error) {
	c.Top = cmp.Or(c.Top, 20)
	c.Since = cmp.Or(c.Since, 24*time.Hour)
	c.LockTimeout = cmp.Or(c.LockTimeout, 2*time.Second)
	c.StatementTimeout = cmp.Or(c.StatementTimeout, 2*time.Minute)
	if c.DB == nil {
		return nil, errors.New("diagnose: field DB is nil")
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("diagnose: %w", err)
	}
	if c.Progress == nil {
		c.Progress = func(int, int, string) {}
	}
	begun := time.Now()
	s := newSource(c)
	defer s.conn.Close()
	if err := s.readEnvironment(ctx); err != nil {
		return nil, err
	}
	// The catalog needs no right but one on the table; without it there is no
	// table to speak of.
	if _, err := s.indexes.read(ctx); err != nil {
		return nil, err
	}
	s.since = s.env.now.Add(-c.Since)
	if !c.SinceTime.IsZero() {
		s.since = c.SinceTime.UTC()
	}
	if !s.since.Before(s.env.now) {
		return nil, fmt.Errorf("%w: since is %s UTC, and the database's clock says %s UTC", maintenance.ErrSetting, format(s.since, Moment), format(s.env.now, Moment))
	}
	r := &Report{Table: c.String(), Database: s.env.Database, At: s.env.now, Since: s.since, Verdict: OK, Notes: s.notes()}
	known := false
	for i, sec := range sections {
		if len(c.Only) > 0 && !slices.Contains(c.Only, sec.id) {
			continue
		}
		c.Progress(i, len(sections), sec.title)
		found, err := sec.run(ctx, s, newSection(sec.id, sec.title))
		if ctx.Err() != nil {
			return nil, fmt.Errorf("diagnose %s: %w", c.String(), context.Cause(ctx))
		}
		if err != nil {
			found = newSection(sec.id, sec.title).unknown(s.env.reason(sec.scope, err))
		}
		found = found.sorted()
		r.Sections = append(r.Sections, found)
		if found.Verdict != Unknown {
			known = true
			r.Verdict = worst(r.Verdict, found.Verdict)
		}
	}
	if !known {
		r.Verdict = Unknown
	}
	c.Progress(len(sections), len(sections), "done")
	r.Seconds = time.Since(begun).Seconds()
	return r, nil
}

func (s *source) notes() []string {
	notes := []string{
		fmt.Sprintf("Query Store is read from %s on. Plan cache counters run since each plan was compiled, waits and index use since the engine last started or failed over, whatever --since says.", format(s.since, Moment)),
	}
	if s.env.updatability == "READ_ONLY" {
		notes = append(notes, "This is a read-only replica: its counters are its own. The primary does the outbox's work; run diagnose there.")
	}
	if !s.env.rcsi {
		notes = append(notes, "READ_COMMITTED_SNAPSHOT is off in this database: readers wait for writers.")
	}
	return notes
}
