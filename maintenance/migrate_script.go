package maintenance

import (
	"context"
	"fmt"
	"strings"
)

// The check of a script: the same as migrateWindowSQL, in one batch. THROW ends
// the batch, so that what stands behind it is not run.
const migrateScriptCheckSQL = `DECLARE @from {id_t}, @through {id_t}, @lossy BIGINT = 0, @too_long BIGINT = 0, @message NVARCHAR(2000);

SELECT /* outbox:MigrateScriptCheck */ @from = MIN(e.id)
FROM   {events} AS e;

WHILE @from IS NOT NULL
BEGIN
    SELECT /* outbox:MigrateScriptCheck */ @through = MAX(w.id)
    FROM   (SELECT TOP (20000) e.id
            FROM   {events} AS e
            WHERE  e.id >= @from
            ORDER BY e.id) AS w;

    SELECT /* outbox:MigrateScriptCheck */ @lossy = @lossy + ISNULL(SUM(c.is_lossy), 0),
           @too_long = @too_long + ISNULL(SUM(c.is_too_long), 0)
    FROM   (SELECT CASE WHEN b.back <> k.wide
                          OR DATALENGTH(b.back) <> DATALENGTH(k.wide) THEN 1 ELSE 0 END AS is_lossy,
                   CASE WHEN {length} > 0 AND DATALENGTH(n.narrow) > {length} THEN 1 ELSE 0 END AS is_too_long
            FROM   {events} AS e
            CROSS APPLY (SELECT e.{column} COLLATE {collation} AS coded,
                                e.{column} COLLATE Latin1_General_100_BIN2 AS wide) AS k
            CROSS APPLY (SELECT CONVERT(VARCHAR(MAX), k.coded) AS narrow) AS n
            CROSS APPLY (SELECT CONVERT(NVARCHAR(MAX), n.narrow) COLLATE Latin1_General_100_BIN2 AS back) AS b
            WHERE  e.id >= @from
            AND    e.id <= @through) AS c
    OPTION (MAXDOP 1);

    SELECT /* outbox:MigrateScriptCheck */ @from = MIN(e.id)
    FROM   {events} AS e
    WHERE  e.id > @through;
END;

IF @lossy + @too_long > 0
BEGIN
    SET @message = CONCAT(N'outbox: ', @lossy, N' rows would lose text and ', @too_long, N' are too long for {type} COLLATE {collation}; nothing was changed');
    THROW 50000, @message, 1;
END;`

// Script is the whole migration for a DBA, in batches that GO ends. Run it in
// Management Studio or with sqlcmd without -b: the batches behind one that
// failed put things back. It reads the catalog and changes nothing. What stands
// against the migration is a Refusal.
func (m Migration) Script(ctx context.Context) (string, error) {
	if err := m.Validate(); err != nil {
		return "", err
	}
	m = m.withDefaults()
	d := m.session(false)
	defer d.Close()
	p, err := m.readPlan(ctx, d)
	if err != nil {
		return "", err
	}
	if p.already {
		return fmt.Sprintf("-- %s.%s is %s already: there is nothing to migrate.\n", commented(m.Names.String()), m.Column, p.column.before()), nil
	}
	if len(p.blockers) > 0 {
		return "", m.refusal(p)
	}
	m.describe(p)
	var s scriptWriter
	s.comment(fmt.Sprintf("%s.%s from %s to %s, by outboxctl migrate-varchar --print-sql.", m.Names, m.Column, p.column.before(), p.column.after()))
	s.comment("Run it in SQL Server Management Studio, or with sqlcmd -I and without -b: the batches behind one that failed put things back.")
	for _, n := range p.notes {
		s.comment("* " + n)
	}
	s.batch("SET QUOTED_IDENTIFIER ON;", "SET ANSI_NULLS ON;", "SET ARITHABORT ON;", "SET DEADLOCK_PRIORITY LOW;", lockTimeout(m.FinalLockWait))
	if m.Guard == GuardLock {
		m.scriptLock(p, &s)
	} else {
		m.scriptTrigger(p, &s)
	}
	return s.String(), nil
}

func (m Migration) refusal(p *migrationPlan) error {
	var found, remedies []string
	for _, b := range p.blockers {
		found = append(found, fmt.Sprintf("the %s %s %s", b.Kind, b.Name, b.Problem))
		remedies = append(remedies, b.Remedy)
	}
	return &Refusal{Task: m.op("migrate-varchar"), Found: strings.Join(found, "; "), Remedy: strings.Join(remedies, "; ")}
}

func (m Migration) scriptLock(p *migrationPlan, s *scriptWriter) {
	texts := []string{"SET XACT_ABORT ON;", "BEGIN TRANSACTION;", m.lockStep().SQL, m.fill(migrateScriptCheckSQL, p.column)}
	for _, step := range m.changes(p) {
		texts = append(texts, step.SQL)
	}
	s.batch(append(texts, "COMMIT TRANSACTION;")...)
}

func (m Migration) scriptTrigger(p *migrationPlan, s *scriptWriter) {
	guard := m.guardName(scriptPrefix, p.table.objectID)
	s.batch(m.guardText(guard, aboutScript, p.column))
	texts := []string{"SET XACT_ABORT ON;", m.fill(migrateScriptCheckSQL, p.column)}
	for _, step := range m.takeAway(p) {
		texts = append(texts, step.SQL)
	}
	s.batch(append(texts, m.alter(p).SQL)...)
	s.comment("From here on everything is put back, also after a failure.")
	for _, r := range p.indexes {
		text := r.Again
		if !m.standsIn(p, r.original) {
			text = fmt.Sprintf("IF NOT EXISTS (SELECT 1 FROM sys.indexes WHERE object_id = OBJECT_ID(N'%s') AND name = N'%s')\n    %s",
				literal(m.Events()), literal(r.Index), r.Create)
		}
		s.batch(text)
		if r.Disable != "" {
			s.batch(r.Disable)
		}
	}
	s.batch(m.dropGuard(guard).SQL)
}

// literal is the inside of a string.
func literal(s string) string { return strings.ReplaceAll(s, "'", "''") }

// commented is a name that cannot end a line comment.
func commented(s string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) }

// scriptWriter writes batches and comments.
type scriptWriter struct{ strings.Builder }

func (s *scriptWriter) comment(text string) {
	s.WriteString("-- " + commented(text) + "\n")
}

func (s *scriptWriter) batch(texts ...string) {
	s.WriteString(strings.Join(texts, "\n") + "\nGO\n\n")
}
