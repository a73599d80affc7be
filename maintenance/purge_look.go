package maintenance

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/golang-sql/civil"
)

// The next rows by key, and what there is to say of them.
//
//   - FORCESEEK: from @from on by an index that begins with id, and never a scan.
//   - READPAST: where row versioning is off, the look would wait for every
//     writer in the window; what is locked is no purge's business. ROWLOCK,
//     because READPAST skips row locks and not page locks, and
//     READCOMMITTEDLOCK, without which READPAST is refused where row versioning
//     is on (sql-docs, hints-transact-sql-table.md).
//   - MAXDOP 1: a few thousand rows do not need threads.
//
// shifted and stray are those whose times cannot be: processed in the future, or
// before they were created; shifted by a minute up to what time zones are apart,
// stray by more. A shifted one is due by @long_before, which is as much earlier than
// @before: whichever of its times is wrong, it was processed before @before then. A
// stray one that is not old enough yet may be in flight, and is
// told of once it is. The difference is taken before it is compared, because
// DATEADD to a column's value overflows in the years 1 and 9999 (error 517);
// DATEDIFF_BIG in milliseconds holds all that DATETIME2 does (sql-docs,
// datediff-big-transact-sql.md).
const purgeLookSQL = `DECLARE @before DATETIME2(3) = @cutoff;
DECLARE @long_before DATETIME2(3) = @shifted_cutoff;
DECLARE @latest DATETIME2(3) = DATEADD(MILLISECOND, @skew_ms, SYSUTCDATETIME());
DECLARE @far DATETIME2(3) = DATEADD(MILLISECOND, @zones_ms, SYSUTCDATETIME());

SELECT /* outbox:PurgeLook */ COUNT(*) AS seen,
       MIN(w.id) AS first_id,
       MAX(w.id) AS last_id,
       MIN(w.created_at) AS oldest,
       ISNULL(SUM(CASE WHEN w.status = 1 AND w.processed_at < CASE WHEN w.ahead_ms <= @skew_ms THEN @before ELSE @long_before END AND w.ahead_ms <= @zones_ms THEN 1 ELSE 0 END), 0) AS due,
       ISNULL(SUM(CASE WHEN w.status = 1 AND w.processed_at < CASE WHEN w.ahead_ms <= @skew_ms THEN @before ELSE @long_before END AND w.ahead_ms <= @zones_ms THEN w.text_bytes ELSE 0 END), 0) AS text_bytes,
       ISNULL(SUM(CASE WHEN w.status = 0 THEN 1 ELSE 0 END), 0) AS pending,
       ISNULL(SUM(CASE WHEN w.status = 2 THEN 1 ELSE 0 END), 0) AS failed,
       ISNULL(SUM(CASE WHEN w.status = 1 AND w.processed_at IS NULL THEN 1 ELSE 0 END), 0) AS unstamped,
       ISNULL(SUM(CASE WHEN w.status = 1 AND (w.processed_at > @latest OR w.ahead_ms > @skew_ms) AND w.processed_at <= @far AND w.ahead_ms <= @zones_ms THEN 1 ELSE 0 END), 0) AS shifted,
       MIN(CASE WHEN w.status = 1 AND (w.processed_at > @latest OR w.ahead_ms > @skew_ms) AND w.processed_at <= @far AND w.ahead_ms <= @zones_ms THEN w.id END) AS shifted_id,
       ISNULL(SUM(CASE WHEN w.status = 1 AND (w.processed_at > @far OR w.processed_at < @before AND w.ahead_ms > @zones_ms) THEN 1 ELSE 0 END), 0) AS stray,
       MIN(CASE WHEN w.status = 1 AND (w.processed_at > @far OR w.processed_at < @before AND w.ahead_ms > @zones_ms) THEN w.id END) AS stray_id,
       MAX(CASE WHEN w.status = 1 AND (w.processed_at > @far OR w.processed_at < @before AND w.ahead_ms > @zones_ms) THEN w.id END) AS last_stray_id
FROM   (SELECT TOP (@rows)
               e.id,
               e.status,
               e.created_at,
               e.processed_at,
               ISNULL(DATEDIFF_BIG(MILLISECOND, e.processed_at, e.created_at), 0) AS ahead_ms,
               {text_bytes} AS text_bytes
        FROM   {events} AS e WITH (FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
        WHERE  e.id >= CAST(@from AS {id_t})
        ORDER BY e.id) AS w
OPTION (MAXDOP 1);`

// The other end of the table, where a worker's wrong clock shows first: a time
// of a zone in the east lies in the future for some hours only.
const purgeNewestSQL = `DECLARE @before DATETIME2(3) = @cutoff;
DECLARE @latest DATETIME2(3) = DATEADD(MILLISECOND, @skew_ms, SYSUTCDATETIME());
DECLARE @far DATETIME2(3) = DATEADD(MILLISECOND, @zones_ms, SYSUTCDATETIME());

SELECT /* outbox:PurgeNewest */ ISNULL(SUM(CASE WHEN w.status = 1 AND (w.processed_at > @latest OR w.ahead_ms > @skew_ms) AND w.processed_at <= @far AND w.ahead_ms <= @zones_ms THEN 1 ELSE 0 END), 0) AS shifted,
       MIN(CASE WHEN w.status = 1 AND (w.processed_at > @latest OR w.ahead_ms > @skew_ms) AND w.processed_at <= @far AND w.ahead_ms <= @zones_ms THEN w.id END) AS shifted_id,
       ISNULL(SUM(CASE WHEN w.status = 1 AND (w.processed_at > @far OR w.processed_at < @before AND w.ahead_ms > @zones_ms) THEN 1 ELSE 0 END), 0) AS stray,
       MIN(CASE WHEN w.status = 1 AND (w.processed_at > @far OR w.processed_at < @before AND w.ahead_ms > @zones_ms) THEN w.id END) AS stray_id,
       MAX(CASE WHEN w.status = 1 AND (w.processed_at > @far OR w.processed_at < @before AND w.ahead_ms > @zones_ms) THEN w.id END) AS last_stray_id,
       MAX(w.id) AS last_id
FROM   (SELECT TOP (@rows)
               e.id,
               e.status,
               e.processed_at,
               ISNULL(DATEDIFF_BIG(MILLISECOND, e.processed_at, e.created_at), 0) AS ahead_ms
        FROM   {events} AS e WITH (FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
        WHERE  e.id >= CAST(@from AS {id_t})
        ORDER BY e.id DESC) AS w
OPTION (MAXDOP 1);`

// purgeDeleteSQL deletes what a look has found. Its hints are the look's; ROWLOCK
// also keeps the worker's statements from meeting a page lock, and a batch stays
// below the 5,000 locks at which they would become a table lock. Rows that came
// into the range since are too young to match.
const purgeDeleteSQL = `DECLARE @before DATETIME2(3) = @cutoff;
DECLARE @long_before DATETIME2(3) = @shifted_cutoff;
DECLARE @deleted INT;

DELETE /* outbox:PurgeDelete */ e
FROM   {events} AS e WITH (FORCESEEK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE  e.id >= CAST(@from AS {id_t})
AND    e.id <= CAST(@to AS {id_t})
AND    e.status = 1
AND    e.processed_at < CASE WHEN ISNULL(DATEDIFF_BIG(MILLISECOND, e.processed_at, e.created_at), 0) <= @skew_ms THEN @before ELSE @long_before END
AND    ISNULL(DATEDIFF_BIG(MILLISECOND, e.processed_at, e.created_at), 0) <= @zones_ms
OPTION (MAXDOP 1);
SET @deleted = @@ROWCOUNT;

SELECT /* outbox:PurgeDelete */ @deleted AS deleted;`

// look is what PurgeLook says of a window.
type look struct {
	seen                       int64
	first, last                int64
	oldest                     sql.NullTime
	due, textBytes             int64
	pending, failed, unstamped int64
	oddities
}

// oddities are the rows whose times cannot be, and between which ids they are.
type oddities struct {
	shifted, stray                  int64
	shiftedID, strayID, lastStrayID sql.NullInt64
}

func (o *oddities) add(more oddities) {
	o.shifted, o.stray = o.shifted+more.shifted, o.stray+more.stray
	if !o.shiftedID.Valid { // windows come in the order of ids
		o.shiftedID = more.shiftedID
	}
	if !o.strayID.Valid {
		o.strayID = more.strayID
	}
	if more.lastStrayID.Valid {
		o.lastStrayID = more.lastStrayID
	}
}

// young says that nothing in the window can be old enough: an event is
// processed after it is created.
func (l look) young(cutoff time.Time) bool {
	return l.seen > 0 && l.oldest.Valid && !l.oldest.Time.Before(cutoff)
}

// purgeTexts are the statements for one table.
type purgeTexts struct {
	look, newest, delete, cutoff, holder string
	// rowBytes is what a row has beside its texts.
	rowBytes int64
	// lowest and highest are the ids that the column can hold.
	lowest, highest int64
}

func (p Purge) texts(t purgeTable) purgeTexts {
	fill := func(text string) string {
		text = strings.NewReplacer("{text_bytes}", t.textBytes(), "{id_t}", t.idType()).Replace(text)
		return p.Replacer().Replace(text)
	}
	lowest, highest := t.idRange()
	return purgeTexts{
		look: fill(purgeLookSQL), newest: fill(purgeNewestSQL), delete: fill(purgeDeleteSQL),
		cutoff: fill(purgeCutoffSQL), holder: fill(purgeHolderSQL),
		rowBytes: t.rowBytes(), lowest: lowest, highest: highest,
	}
}

func (s purgeTexts) lookAt(ctx context.Context, conn *sql.Conn, from int64, rows int, cutoff time.Time) (look, error) {
	var l look
	var first, last sql.NullInt64
	row := conn.QueryRowContext(ctx, s.look, sql.Named("from", from), sql.Named("rows", rows), sql.Named("cutoff", atUTC(cutoff)),
		sql.Named("shifted_cutoff", atUTC(shiftedCutoff(cutoff))), sql.Named("skew_ms", clockSkew.Milliseconds()), sql.Named("zones_ms", zonesApart.Milliseconds()))
	err := row.Scan(&l.seen, &first, &last, &l.oldest, &l.due, &l.textBytes, &l.pending, &l.failed, &l.unstamped, &l.shifted, &l.shiftedID, &l.stray, &l.strayID, &l.lastStrayID)
	l.first, l.last = first.Int64, last.Int64
	return l, err
}

func (s purgeTexts) deleteIn(ctx context.Context, conn *sql.Conn, from, to int64, cutoff time.Time) (deleted int64, err error) {
	row := conn.QueryRowContext(ctx, s.delete, sql.Named("from", from), sql.Named("to", to), sql.Named("cutoff", atUTC(cutoff)),
		sql.Named("shifted_cutoff", atUTC(shiftedCutoff(cutoff))), sql.Named("skew_ms", clockSkew.Milliseconds()), sql.Named("zones_ms", zonesApart.Milliseconds()))
	return deleted, row.Scan(&deleted)
}

// after is the id behind last; more is false where the column has none.
func (s purgeTexts) after(last int64) (next int64, more bool) {
	if last >= s.highest {
		return 0, false
	}
	return last + 1, true
}

// atUTC is a time as DATETIME2: a time.Time would travel as DATETIMEOFFSET.
func atUTC(t time.Time) civil.DateTime { return civil.DateTimeOf(t.UTC()) }
