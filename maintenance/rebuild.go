package maintenance

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/sqlserver"
)

// Rebuild makes the indexes of the event table dense again: each that gains is
// rebuilt with FillFactor, online and where it can be resumably.
type Rebuild struct {
	Target
	// Index is the only one that is looked at; empty for all of the table.
	Index string
	// FillFactor of what is rebuilt, 1 to 100; default 98. Below
	// sqlserver.LeastFillFactor there is a warning.
	FillFactor int
	// Offline rebuilds while nobody else can use the table, for editions that
	// cannot do it online.
	Offline bool
	// MaxDuration pauses a resumable rebuild, and lets no other begin, after so
	// long; whole minutes, 1 minute to 7 days, default 60 minutes. A rebuild that
	// is not resumable and has begun is not cut off.
	MaxDuration time.Duration
	// LowPriorityWait is how long an online rebuild lets others pass before it
	// gives up; whole minutes. 0 waits LockTimeout, with everybody behind it.
	LowPriorityWait time.Duration
	// MaxDOP bounds the threads of a rebuild; 0 leaves it to the server.
	MaxDOP int
	// Force rebuilds what gains nothing too.
	Force bool
	// Poll is the pause between two looks at how far the server is, and between
	// two tries for a lock; default 2 s.
	Poll time.Duration
}

func (r Rebuild) withDefaults() Rebuild {
	r.Target = r.Target.withDefaults()
	r.FillFactor = cmp.Or(r.FillFactor, 98)
	r.MaxDuration = cmp.Or(r.MaxDuration, time.Hour)
	r.Poll = cmp.Or(r.Poll, 2*time.Second)
	return r
}

// Validate names the field that cannot be. The bounds are those of ALTER INDEX
// (sql-docs, alter-index-transact-sql.md).
func (r Rebuild) Validate() error {
	r = r.withDefaults()
	switch {
	case r.FillFactor < 1 || r.FillFactor > 100:
		return fmt.Errorf("field FillFactor is %d, must be 1 to 100", r.FillFactor)
	case r.MaxDuration%time.Minute != 0 || r.MaxDuration < time.Minute || r.MaxDuration > 7*24*time.Hour:
		return fmt.Errorf("field MaxDuration is %s, must be whole minutes from 1m to 168h", r.MaxDuration)
	case r.LowPriorityWait%time.Minute != 0 || r.LowPriorityWait < 0 || r.LowPriorityWait > 24*time.Hour:
		return fmt.Errorf("field LowPriorityWait is %s, must be whole minutes to 24h, or 0", r.LowPriorityWait)
	case r.MaxDOP < 0 || r.MaxDOP > 64:
		return fmt.Errorf("field MaxDOP is %d, must be 0 to 64", r.MaxDOP)
	}
	return r.Target.Validate()
}

// RebuildReport is the plan, and after Run what became of it. Numbers that the
// server did not show are null.
type RebuildReport struct {
	Table      string `json:"table"`
	Edition    string `json:"edition"`
	Online     bool   `json:"online"`
	FillFactor int    `json:"fill_factor"`
	// Executed says that it was done and not only planned.
	Executed   bool           `json:"executed"`
	Indexes    []RebuildIndex `json:"indexes"`
	FreesBytes *int64         `json:"frees_bytes"`
	LogBytes   *int64         `json:"log_bytes"`
	Log        LogState       `json:"log"`
	// Warnings are what to know before; Notes what could not be seen.
	Warnings []string `json:"warnings"`
	Notes    []string `json:"notes"`
}

// RebuildIndex is one index.
type RebuildIndex struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Filter   string `json:"filter,omitempty"`
	Disabled bool   `json:"disabled"`
	// FillFactor is what it was built with last.
	FillFactor       int                 `json:"fill_factor"`
	ForSequentialKey *bool               `json:"optimize_for_sequential_key"`
	Rows             int64               `json:"rows"`
	Pages            *int64              `json:"pages"`
	Bytes            *int64              `json:"bytes"`
	Density          *float64            `json:"density_percent"`
	Fragmentation    *float64            `json:"fragmentation_percent"`
	Ghosts           *int64              `json:"ghost_records"`
	Operation        *ResumableOperation `json:"operation"`

	Action RebuildAction `json:"action"`
	Reason string        `json:"reason"`
	// Resumable says that it can be paused and go on; NotResumable why not.
	Resumable    bool     `json:"resumable"`
	NotResumable string   `json:"not_resumable,omitempty"`
	FreesBytes   *int64   `json:"frees_bytes"`
	LogBytes     *int64   `json:"log_bytes"`
	SQL          []string `json:"sql"`

	// What Run did. Outcome is empty where nothing was done.
	Outcome      RebuildOutcome `json:"outcome,omitempty"`
	Seconds      float64        `json:"seconds"`
	BytesAfter   *int64         `json:"bytes_after"`
	DensityAfter *float64       `json:"density_after_percent"`

	state rebuildState
}

// RebuildOutcome is what became of an index.
type RebuildOutcome string

const (
	RebuildDone    RebuildOutcome = "done"
	RebuildPaused  RebuildOutcome = "paused"  // it goes on with the next run
	RebuildStopped RebuildOutcome = "stopped" // rolled back, because we were told to stop
	RebuildFailed  RebuildOutcome = "failed"
	RebuildSkipped RebuildOutcome = "skipped" // the time was over, or something before it is paused
)

// ResumableOperation is a row of sys.index_resumable_operations.
type ResumableOperation struct {
	State           string     `json:"state"` // PAUSED or RUNNING
	PercentComplete float64    `json:"percent_complete"`
	Started         time.Time  `json:"started"` // the server's local time, as the next
	LastPaused      *time.Time `json:"last_paused"`
	Minutes         int        `json:"minutes"` // it has run for so long
}

// Plan looks at the table and says what Run would do. It changes nothing. A
// Refusal comes with the plan: Run would meet it.
func (r Rebuild) Plan(ctx context.Context) (RebuildReport, error) {
	r = r.withDefaults()
	if err := r.Validate(); err != nil {
		return RebuildReport{}, fmt.Errorf("rebuild: %w", err)
	}
	d := sqlserver.NewDedicated(r.DB, r.LockTimeout, nil)
	defer d.Close()
	return r.plan(ctx, d)
}

func (r Rebuild) plan(ctx context.Context, d *sqlserver.Dedicated) (RebuildReport, error) {
	report := RebuildReport{
		Table: r.Names.String(), FillFactor: r.FillFactor,
		Indexes: []RebuildIndex{}, Warnings: []string{}, Notes: []string{},
	}
	var edition sqlserver.Edition
	var orphans []string
	err := d.Use(ctx, "look at the indexes of "+report.Table, func(conn *sql.Conn) (err error) {
		if edition, err = sqlserver.ReadEdition(ctx, conn); err != nil {
			return err
		}
		l := rebuildLook{r: r, report: &report}
		orphans, err = l.read(ctx, conn)
		return err
	})
	if err != nil {
		return report, err
	}
	report.Edition, report.Online = edition.String(), !r.Offline
	for i := range report.Indexes {
		r.decide(&report.Indexes[i], report.Online)
	}
	report.FreesBytes = together(report.Indexes, func(i RebuildIndex) *int64 { return i.FreesBytes })
	report.LogBytes = together(report.Indexes, func(i RebuildIndex) *int64 { return i.LogBytes })
	if rate := report.Log.MaxBytesPerSecond; rate != nil && *rate > 0 && report.LogBytes != nil {
		least := float64(*report.LogBytes) / float64(*rate)
		report.Log.LeastSeconds = &least
	}
	r.warn(&report)
	return report, r.refusal(report, edition, orphans)
}

// together is a sum, and nil where a part of it is not known.
func together(indexes []RebuildIndex, part func(RebuildIndex) *int64) *int64 {
	sum := new(int64)
	for _, i := range indexes {
		n := part(i)
		if n == nil {
			return nil
		}
		*sum += *n
	}
	return sum
}

// decide fills in what is to be done with an index.
func (r Rebuild) decide(i *RebuildIndex, online bool) {
	d := decideRebuild(i.state, r.FillFactor, r.Force, r.Index != "")
	i.Action, i.Reason, i.FreesBytes, i.LogBytes = d.action, d.reason, d.frees, d.log
	i.SQL = []string{}
	if d.set {
		i.SQL = append(i.SQL, r.render(setSequentialKeySQL, i.Name, ""))
	}
	switch i.Action {
	case RebuildResume:
		i.Resumable = true
		i.SQL = append(i.SQL, r.render(resumeRebuildSQL, i.Name, r.resumeHow()))
	case RebuildWhole:
		i.NotResumable = i.state.unresumable()
		if !online {
			i.NotResumable = "offline"
		}
		i.Resumable = i.NotResumable == ""
		i.SQL = append(i.SQL, r.render(rebuildIndexSQL, i.Name, r.rebuildHow(i.state, online)))
	}
}

// render fills a statement in, in one pass: no name is taken for a placeholder.
func (r Rebuild) render(text, index, how string) string {
	return strings.NewReplacer("{index}", mssql.TSQLQuoter{}.ID(index), "{events}", r.Events(), "{how}", how).Replace(text)
}

// refusal is what forbids the plan.
func (r Rebuild) refusal(report RebuildReport, edition sqlserver.Edition, orphans []string) error {
	refuse := func(found, remedy string) error {
		return &Refusal{Task: "rebuild of " + report.Table, Found: found, Remedy: remedy}
	}
	if r.Index != "" && len(report.Indexes) == 0 {
		return fmt.Errorf("the table %s has no index %q: %w", report.Table, r.Index, ErrSetting)
	}
	rebuilds := slices.ContainsFunc(report.Indexes, func(i RebuildIndex) bool { return i.Action == RebuildWhole })
	for _, i := range report.Indexes {
		if i.Action == RebuildWait {
			return refuse("another session rebuilds "+i.Name, "wait for it to end; sys.index_resumable_operations shows how far it is")
		}
		if report.Online && i.Action == RebuildWhole && i.state.offlineOnly() != "" {
			return refuse(i.Name+" is "+i.state.offlineOnly()+", which no edition rebuilds online", "say --offline: nobody can use the table meanwhile")
		}
	}
	switch {
	case rebuilds && report.Online && !edition.Online():
		return refuse("this edition has no ONLINE: "+edition.String(), "say --offline, in a quiet hour: nobody can use the table meanwhile, and the worker waits")
	case rebuilds && len(orphans) > 0:
		return refuse("a resumable CREATE INDEX of "+strings.Join(orphans, ", ")+" is not done, and other changes of the table are refused until it is (error 10637)",
			"let it go on or end it: ALTER INDEX … RESUME, or ABORT")
	}
	return nil
}

// warn says what to know before.
func (r Rebuild) warn(report *RebuildReport) {
	heavy := func(i RebuildIndex) bool { return i.Action == RebuildWhole || i.Action == RebuildResume }
	if !slices.ContainsFunc(report.Indexes, heavy) {
		return
	}
	add := func(format string, args ...any) {
		report.Warnings = append(report.Warnings, fmt.Sprintf(format, args...))
	}
	if report.Online {
		// sql-docs, guidelines-for-online-index-operations.md.
		add("while it runs, writes of the table cost up to twice as much, and in a rare deadlock the server ends a statement of an application or a worker (error 1205), not the rebuild")
	} else {
		add("offline: nobody reads or writes the table until it is done; the worker waits and goes on by itself")
	}
	if r.FillFactor < sqlserver.LeastFillFactor && slices.ContainsFunc(report.Indexes, func(i RebuildIndex) bool { return i.Action == RebuildWhole }) {
		add("fill factor %d leaves %d %% of every page empty for good: ids ascend and rows do not grow, so that nothing comes into the room, and memory, reads and backups carry it", r.FillFactor, 100-r.FillFactor)
	}
	whole := int64(0)
	for _, i := range report.Indexes {
		if heavy(i) && !i.Resumable && i.LogBytes != nil {
			whole = max(whole, *i.LogBytes)
		}
	}
	if free := report.Log.free(); free != nil && whole > *free {
		add("the log has %s free as large as it is now, and a rebuild that is not resumable keeps about %s of it until it is done: it will grow", quantity.Bytes(*free), quantity.Bytes(whole))
	}
	if w := report.Log.ReuseWait; w != "" && w != "NOTHING" && w != "CHECKPOINT" && w != "LOG_BACKUP" {
		add("the log cannot be reused now (%s): what the rebuild writes comes on top of what is held", w)
	}
	for _, t := range report.Log.Transactions {
		add("session %d has had a transaction open for %s: if it has touched the table, the rebuild waits for it and gives up%s", t.Session, (time.Duration(t.Seconds) * time.Second).String(), r.after())
	}
}

func (r Rebuild) after() string {
	if r.LowPriorityWait == 0 || r.Offline {
		return " after " + r.LockTimeout.String()
	}
	return " after " + r.LowPriorityWait.String()
}
