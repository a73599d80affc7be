package maintenance

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"azsqloutbox/internal/quantity"
	"azsqloutbox/sqlserver"
)

// migrationPlan is what the catalog says, and what follows from it.
type migrationPlan struct {
	column   *migrationColumn
	table    migrationTable
	indexes  []restoreIndex // those that hold the column
	deflt    *columnDefault
	guard    string // the name of the trigger
	offline  string // why not online; empty where it can be
	already  bool
	blockers []MigrationBlocker
	notes    []string
	// utf8 is the collation that would lose nothing.
	utf8 string
}

// readPlan looks at everything before anything is touched.
func (m Migration) readPlan(ctx context.Context, d *sqlserver.Dedicated) (*migrationPlan, error) {
	p := new(migrationPlan)
	var guards []guard
	err := m.patiently(ctx, func() error {
		return d.Use(ctx, m.op("read the catalog"), func(conn *sql.Conn) (err error) {
			if p.column, err = m.readColumn(ctx, conn); err != nil {
				return err
			}
			if p.already, err = m.migrated(p.column); err != nil {
				return err
			}
			if guards, err = m.readGuards(ctx, conn); err != nil || p.already {
				return err
			}
			return m.readObstacles(ctx, conn, p)
		})
	})
	if err != nil {
		return nil, err
	}
	for _, g := range guards {
		p.notes = append(p.notes, fmt.Sprintf("the trigger %s of an earlier run is there, or that run is still at it; a run with --execute takes it away when nobody else works, and puts back what it remembers", g.name))
	}
	if p.already {
		return p, nil
	}
	return p, m.readBoundObjects(ctx, d, p)
}

func (m Migration) readObstacles(ctx context.Context, conn *sql.Conn, p *migrationPlan) (err error) {
	if p.table, err = m.readTable(ctx, conn); err != nil {
		return err
	}
	indexes, err := m.readIndexes(ctx, conn)
	if err != nil {
		return err
	}
	if p.deflt, err = m.readDefault(ctx, conn, p.column); err != nil {
		return err
	}
	held, err := m.readBlockers(ctx, conn, p.column)
	if err != nil {
		return err
	}
	if p.utf8, err = m.readLossless(ctx, conn, p.column); err != nil {
		return err
	}
	p.guard, p.offline = m.guardName(GuardPrefix, p.table.objectID), p.table.offline()
	p.blockers = append(m.columnBlockers(p.column), p.table.blockers(m, indexes)...)
	p.blockers = append(p.blockers, held...)
	for _, i := range indexes {
		if i.holds(m.Column) {
			m.planIndex(p, i)
		}
	}
	m.planDefault(p)
	return m.planWorkers(ctx, conn, p)
}

// planIndex finds out how an index that holds the column is treated.
func (m Migration) planIndex(p *migrationPlan, i *tableIndex) {
	if b, blocks := i.blocker(m.Column); blocks {
		p.blockers = append(p.blockers, b)
		return
	}
	if m.Guard == GuardTrigger && i.unique && !m.standsIn(p, i) {
		p.blockers = append(p.blockers, MigrationBlocker{
			"unique index", i.name, "holds the column, and duplicates could come in while it is away",
			"--guard lock, which keeps writers out until it is back",
		})
		return
	}
	r := restoreIndex{
		Index: i.name, original: i,
		Create: i.create(m.Events(), how{online: m.online(p)}),
		Again:  i.create(m.Events(), how{online: m.online(p), dropExisting: true}),
	}
	if i.disabled {
		r.Disable = i.disable(m.Events())
	}
	p.indexes = append(p.indexes, r)
}

// standsIn says whether an index is not dropped: it loses the column and stays.
// Workers claim through the claim index, and error 308 makes them pause as long
// as it is away; a unique index keeps duplicates out.
func (m Migration) standsIn(p *migrationPlan, i *tableIndex) bool {
	claims := strings.EqualFold(i.name, m.Names.WithDefaults().ClaimIndex)
	return m.online(p) && (claims || i.unique) && i.includes(m.Column) && !i.disabled
}

// online says whether the change is made so. Under a table lock it makes no
// sense.
func (m Migration) online(p *migrationPlan) bool { return m.Guard == GuardTrigger && p.offline == "" }

func (m Migration) planDefault(p *migrationPlan) {
	if p.deflt == nil {
		return
	}
	if m.Guard == GuardTrigger {
		p.blockers = append(p.blockers, MigrationBlocker{
			"default", p.deflt.name, "belongs to the column: " + p.deflt.definition + "; while it is away, inserts that rely on it would fail or write NULL",
			"--guard lock, which takes it away and puts it back in one transaction",
		})
	} else if p.deflt.definition == "" {
		p.blockers = append(p.blockers, MigrationBlocker{
			"default", p.deflt.name, "has a definition that this login may not see, so that it could not be put back",
			"GRANT VIEW DEFINITION on the table",
		})
	}
}

// readBoundObjects is apart because it needs a right that a reader of the table
// lacks.
func (m Migration) readBoundObjects(ctx context.Context, d *sqlserver.Dedicated, p *migrationPlan) error {
	var list []MigrationBlocker
	err := d.Use(ctx, m.op("look for schema-bound objects"), func(conn *sql.Conn) (err error) {
		list, err = m.readBound(ctx, conn, p.column)
		return err
	})
	if _, denied := sqlserver.Denied(err); denied {
		p.notes = append(p.notes, "schema-bound views and functions could not be looked for: GRANT VIEW DEFINITION TO this user and GRANT SELECT ON sys.sql_expression_dependencies; one that uses the column makes the ALTER fail")
		return nil
	}
	p.blockers = append(p.blockers, list...)
	return err
}

// The UTF-8 collation that sorts as the column does has the same name with
// _UTF8 or _SC_UTF8 behind it, where there is one (sql-docs,
// collation-and-unicode-support.md).
const migrateCollationsSQL = `SELECT /* outbox:MigrateCollations */ CONVERT(INT, COLLATIONPROPERTY(@plain, 'CodePage')) AS plain,
       CONVERT(INT, COLLATIONPROPERTY(@supplementary, 'CodePage')) AS supplementary;`

const utf8CodePage = 65001

func (m Migration) readLossless(ctx context.Context, q querier, c *migrationColumn) (string, error) {
	if c.toUTF8 {
		return c.toCollation, nil
	}
	plain, supplementary := c.collation+"_UTF8", c.collation+"_SC_UTF8"
	var plainPage, supplementaryPage sql.NullInt64
	err := q.QueryRowContext(ctx, migrateCollationsSQL, sql.Named("plain", plain), sql.Named("supplementary", supplementary)).
		Scan(&plainPage, &supplementaryPage)
	switch {
	case err != nil:
		return "", fmt.Errorf("look for a UTF-8 collation: %w", err)
	case supplementaryPage.Int64 == utf8CodePage:
		return supplementary, nil
	case plainPage.Int64 == utf8CodePage:
		return plain, nil
	}
	return losesNothing, nil
}

// A running worker reads payload and headers in a way that fits both types; the
// aggregate's two by the type that it found at its start, and go-mssqldb takes
// the bytes of a UTF-8 collation for those of a Windows code page.
const migrateWorkersSQL = `DECLARE @since DATETIME2(3) = DATEADD(SECOND, -60, SYSUTCDATETIME());
SELECT /* outbox:MigrateWorkers */ COUNT(*) AS live
FROM   {workers} AS w
WHERE  w.seen_at > @since;`

func (m Migration) planWorkers(ctx context.Context, q querier, p *migrationPlan) error {
	if !p.column.toUTF8 || (m.Column != "aggregate_type" && m.Column != "aggregate_id") {
		return nil
	}
	var live int
	if err := q.QueryRowContext(ctx, m.Names.Replacer().Replace(migrateWorkersSQL)).Scan(&live); err != nil {
		return fmt.Errorf("look for running workers: %w", err)
	}
	if live > 0 {
		p.blockers = append(p.blockers, MigrationBlocker{
			"running workers", m.Workers(), fmt.Sprintf("shows %s of the last minute, which would read the UTF-8 bytes of %s as another code page and publish other text", quantity.Of(live, "worker"), m.Column),
			"stop them for the migration; they read it right from their next start on",
		})
	}
	return nil
}

// steps is the plan as a list of statements, in order.
func (m Migration) steps(p *migrationPlan) ([]MigrationStep, error) {
	var list []MigrationStep
	check := MigrationStep{Step: "check every row"} // a statement for each window of ids
	if m.Guard == GuardTrigger {
		text, err := m.createGuard(p)
		if err != nil {
			return nil, err
		}
		list = append(list, MigrationStep{"create the guard", text}, check)
	} else {
		list = append(list, check, m.lockStep(), MigrationStep{Step: "check every row again"})
	}
	list = append(list, m.changes(p)...)
	if m.Guard == GuardTrigger {
		list = append(list, m.dropGuard(p.guard))
	}
	return list, nil
}

// dropIndex is a step that is done at once, and may be tried again.
const dropIndex = "MigrateDropIndex"

// named is a step whose statement carries a name, as every one does.
func named(step, name, text string) MigrationStep {
	return MigrationStep{step, "/* outbox:" + name + " */\n" + text}
}

func (m Migration) lockStep() MigrationStep {
	return MigrationStep{"lock the table", m.Names.Replacer().Replace(migrateLockSQL)}
}

// changes are the statements between a clean check and the end.
func (m Migration) changes(p *migrationPlan) []MigrationStep {
	return append(append(m.takeAway(p), m.alter(p)), m.bringBack(p)...)
}

// takeAway is what makes the column free.
func (m Migration) takeAway(p *migrationPlan) (list []MigrationStep) {
	if p.deflt != nil {
		list = append(list, named("drop the default "+p.deflt.name, "MigrateDropDefault", p.deflt.drop(m.Events())))
	}
	for _, r := range p.indexes {
		if m.standsIn(p, r.original) {
			without := r.original.create(m.Events(), how{online: true, dropExisting: true, without: m.Column})
			list = append(list, named("take the column out of "+r.Index, "MigrateNarrowIndex", without))
		} else {
			list = append(list, named("drop "+r.Index, dropIndex, r.original.drop(m.Events())))
		}
	}
	return list
}

// bringBack makes everything as it was.
func (m Migration) bringBack(p *migrationPlan) (list []MigrationStep) {
	if p.deflt != nil {
		list = append(list, named("put the default "+p.deflt.name+" back", "MigrateAddDefault", p.deflt.create(m.Events(), m.Column)))
	}
	for _, r := range p.indexes {
		list = append(list, r.back(m.standsIn(p, r.original))...)
	}
	return list
}

// back makes the index again, over one that has its name or not.
func (r restoreIndex) back(over bool) []MigrationStep {
	if over {
		return []MigrationStep{named("put the column back into "+r.Index, "MigrateWidenIndex", r.Again)}
	}
	list := []MigrationStep{named("create "+r.Index, "MigrateCreateIndex", r.Create)}
	if r.Disable != "" {
		list = append(list, r.sleep())
	}
	return list
}

func (r restoreIndex) sleep() MigrationStep {
	return named("disable "+r.Index+", as it was", "MigrateDisableIndex", r.Disable)
}

// alter restates nullability and collation, which ALTER COLUMN takes for NULL
// and the database's otherwise.
func (m Migration) alter(p *migrationPlan) MigrationStep {
	text := "ALTER TABLE " + m.Events() + " ALTER COLUMN " + quoted(m.Column) + " " + p.column.after()
	if m.online(p) {
		text += " WITH (ONLINE = ON)"
	}
	return named("change the column", "MigrateAlterColumn", text+";")
}

// describe says in the notes what a person has to know before.
func (m Migration) describe(p *migrationPlan) {
	note := func(format string, args ...any) { p.notes = append(p.notes, fmt.Sprintf(format, args...)) }
	if m.Guard == GuardTrigger {
		note("while the guard is there, a transaction that writes text which would be lost or cut is rolled back with error 50000, and statements with OUTPUT but no INTO fail on the table with error 334 (EF Core 7 and later use them)")
		note("a bulk load fires no trigger unless it asks for it (FIRE_TRIGGERS), nor does a write by another trigger where the server option nested triggers is off: keep both away until the end")
	} else {
		note("from the lock to the commit everybody waits who touches the table, workers too: they go on by themselves")
	}
	switch {
	case m.online(p):
		note("the change is online: it needs about twice the space of the column, and writers wait only for its first and last moments")
	case m.Guard == GuardTrigger:
		note("the change is not online, as %s: everybody waits who touches the table while every row is rewritten", p.offline)
	}
	for _, r := range p.indexes {
		claims := strings.EqualFold(r.Index, m.Names.WithDefaults().ClaimIndex)
		switch {
		case m.standsIn(p, r.original):
			note("%s stays, without the column, until the change is done: claims through it cost one lookup an event more", r.Index)
		case claims && m.Guard == GuardTrigger:
			note("%s is away from its drop until it is built again: workers pause with error 308 and go on by themselves, and events wait as long as the change lasts", r.Index)
		}
	}
	if !p.column.toUTF8 {
		note("after the change nothing notices a character that %s lacks: only a UTF-8 collation keeps what is written later. sqlserver.Writer sees the new type and refuses such text; the procedure does too if it is made anew from this version's 010_enqueue.sql", p.column.toCollation)
	}
	if !m.online(p) {
		note("the old text stays in the rows until they are rebuilt: run outboxctl rebuild afterwards")
	}
}

// estimate adds what the check made known: how much log the change writes, and
// how long that takes at the rate of the larger General Purpose sizes.
func (r *MigrationReport) estimate() {
	const rowOverhead = 100  // bytes of a log record and its row header, about
	const logRate = 50 << 20 // bytes a second (sql-docs, resource-limits-vcore-single-databases.md: at most 50 MB/s in General Purpose)
	log := r.BytesBefore + r.BytesAfter + rowOverhead*r.Rows
	if log < logRate {
		return
	}
	lasts := time.Duration(log/logRate) * time.Second
	r.Notes = append(r.Notes, fmt.Sprintf("the change writes about %d MiB of log for %s: it lasts %s or more at 50 MB/s, the most that General Purpose has (4.5 MB/s a vCore), and everything that waits for it waits so long",
		log>>20, quantity.Of(r.Rows, "row"), lasts))
}
