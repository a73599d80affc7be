package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/worker"
)

// Pause tells all workers of the table to stop claiming, or to go on. What they
// have claimed already they finish. They read it with their next heartbeat, and
// it outlives them.
type Pause struct {
	Target
	// Scope and Name say what: everything (no name), an event type by the name of
	// its route, or a queue or topic.
	Scope worker.Scope
	Name  string
	// Resume ends a pause instead.
	Resume bool
	// By is who says so, Reason why; at most 128 and 400 characters.
	By, Reason string
}

// Validate names the field that cannot be.
func (p Pause) Validate() error {
	if err := p.Target.Validate(); err != nil {
		return err
	}
	switch p.Scope {
	case worker.ScopeAll:
		if p.Name != "" {
			return errors.New("field Name is for one event type or entity, and Scope is all")
		}
	case worker.ScopeEventType, worker.ScopeEntity:
		if p.Name == "" {
			return fmt.Errorf("field Name is empty: which %s?", p.Scope)
		}
	default:
		return fmt.Errorf("field Scope is %q", p.Scope)
	}
	for _, f := range []struct {
		field, value string
		most         int
	}{{"Name", p.Name, 260}, {"By", p.By, 128}, {"Reason", p.Reason, 400}} {
		if n := utf8.RuneCountInString(f.value); n > f.most {
			return fmt.Errorf("field %s has %d characters, at most %d fit", f.field, n, f.most)
		}
	}
	if p.By == "" {
		return errors.New("field By is empty: who says so?")
	}
	return nil
}

// PauseResult is what a Pause did or would do.
type PauseResult struct {
	Executed bool         `json:"executed"`
	Scope    worker.Scope `json:"scope"`
	Name     string       `json:"name"`
	// Paused is the state that was asked for; WasPaused the one before.
	Paused    bool       `json:"paused"`
	WasPaused bool       `json:"was_paused"`
	ChangedAt *time.Time `json:"changed_at,omitempty"`
	// Workers are the living ones: they obey with their next heartbeat.
	Workers int `json:"workers"`
	// StillPaused are the other pauses in force.
	StillPaused []PauseStatus `json:"still_paused"`
	// Warnings say why it may not do what was meant.
	Warnings []string `json:"warnings"`
}

// Text prints the result for a person.
func (r PauseResult) Text(w io.Writer) error {
	what := controlled(r.Scope, r.Name)
	workers := quantity.Of(r.Workers, "live worker")
	state := map[bool]string{true: "paused", false: "not paused"}
	would := map[bool]string{true: "be paused", false: "go on"}
	var b strings.Builder
	switch {
	case !r.Executed:
		fmt.Fprintf(&b, "%s is %s and would %s; %s would see it with the next heartbeat.\n",
			what, state[r.WasPaused], would[r.Paused], workers)
		if r.Scope == worker.ScopeAll && !r.Paused {
			b.WriteString("Workers that were started with --paused would begin.\n")
		}
		b.WriteString("Nothing was changed: add --execute.\n")
	case r.Paused:
		fmt.Fprintf(&b, "%s is paused now; %s will see it with the next heartbeat, within 11 s.\n", what, workers)
	case r.WasPaused:
		fmt.Fprintf(&b, "the pause of %s is over; %s will see it with the next heartbeat, within 11 s.\n", what, workers)
	case r.Scope == worker.ScopeAll:
		fmt.Fprintf(&b, "everything was not paused; workers that were started with --paused, if any, go on; %s will see it with the next heartbeat, within 11 s.\n", workers)
	default:
		fmt.Fprintf(&b, "%s was not paused.\n", what)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "! %s\n", Printable(warning))
	}
	for _, p := range r.StillPaused {
		fmt.Fprintf(&b, "still paused: %s, since %s by %s", controlled(p.Scope, p.Name), p.Since.UTC().Format(time.RFC3339), Printable(p.By))
		if p.Reason != "" {
			fmt.Fprintf(&b, ": %s", Printable(p.Reason))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const controlStateSQL = `SELECT /* outbox:ControlState */ (SELECT c.paused
        FROM   {controls} AS c
        WHERE  c.scope = CAST(@scope AS VARCHAR(20))
        AND    c.name = @name) AS was_paused,
       (SELECT COUNT(*)
        FROM   {workers} AS w
        WHERE  w.seen_at BETWEEN DATEADD(SECOND, -@live_s, SYSUTCDATETIME()) AND DATEADD(SECOND, @live_s, SYSUTCDATETIME())) AS live;`

// HOLDLOCK: two people who say the same at the same moment must not insert
// twice.
const setControlSQL = `DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
BEGIN TRANSACTION;

UPDATE /* outbox:SetControl */ {controls} WITH (UPDLOCK, HOLDLOCK)
SET    paused = @paused,
       changed_by = @by,
       reason = @reason,
       changed_at = @now
WHERE  scope = CAST(@scope AS VARCHAR(20))
AND    name = @name;

IF @@ROWCOUNT = 0
    INSERT /* outbox:SetControl */ INTO {controls} (scope, name, paused, changed_by, reason, changed_at)
    VALUES (CAST(@scope AS VARCHAR(20)), @name, @paused, @by, @reason, @now);

COMMIT TRANSACTION;
SELECT /* outbox:SetControl */ @now AS changed_at;`

// Plan says what is and what would be.
func (p Pause) Plan(ctx context.Context) (PauseResult, error) {
	if err := p.Validate(); err != nil {
		return p.result(), err
	}
	p.Target = p.Target.withDefaults()
	c := p.connectToRead()
	defer c.close()
	r, known, err := p.state(ctx, c)
	if err != nil {
		return r, err
	}
	p.look(ctx, c, &r, known)
	return r, nil
}

// Run does it. Saying the same again changes only who said it and when.
func (p Pause) Run(ctx context.Context) (PauseResult, error) {
	if err := p.Validate(); err != nil {
		return p.result(), err
	}
	p.Target = p.Target.withDefaults()
	c := p.connect("")
	defer c.close()
	r, known, err := p.state(ctx, c)
	if err != nil {
		return r, err
	}
	err = c.do(ctx, "write the controls of "+p.Names.String(), func(ctx context.Context, conn *sql.Conn) error {
		var at time.Time
		err := conn.QueryRowContext(ctx, p.Replacer().Replace(setControlSQL),
			sql.Named("scope", string(p.Scope)), sql.Named("name", p.Name), sql.Named("paused", !p.Resume),
			sql.Named("by", p.By), sql.Named("reason", sql.NullString{String: p.Reason, Valid: p.Reason != ""})).Scan(&at)
		r.ChangedAt = &at
		return err
	})
	if err != nil {
		return r, err
	}
	r.Executed = true
	p.look(ctx, c, &r, known) // after it: a pause is often urgent
	return r, nil
}

func (p Pause) result() PauseResult {
	return PauseResult{Scope: p.Scope, Name: p.Name, Paused: !p.Resume, StillPaused: []PauseStatus{}, Warnings: []string{}}
}

// state is what was before; known says that the name has been paused before.
func (p Pause) state(ctx context.Context, c *connection) (r PauseResult, known bool, err error) {
	r = p.result()
	err = c.do(ctx, "read the controls of "+p.Names.String(), func(ctx context.Context, conn *sql.Conn) error {
		var was sql.NullBool
		row := conn.QueryRowContext(ctx, p.Replacer().Replace(controlStateSQL),
			sql.Named("scope", string(p.Scope)), sql.Named("name", p.Name), sql.Named("live_s", int64(workerLiveFor/time.Second)))
		err := row.Scan(&was, &r.Workers)
		r.WasPaused, known = was.Bool, was.Valid
		return err
	})
	return r, known, err
}
