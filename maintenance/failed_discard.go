package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"

	"azsqloutbox/internal/quantity"
)

// A discard writes its reason in front of the error that the event had:
//
//	discarded by ops@host: headers were never JSON; was: headers are not valid JSON
//
// Both matter to whoever asks later why the event was never sent. Where a column
// is too narrow for both, the error is cut and says so by its dots.
const (
	errorWas = "; was: "
	errorCut = "..."
)

// lastError is what the column last_error holds.
type lastError struct {
	declaration string
	// room is in characters of ASCII, each of unit bytes.
	room, unit int64
}

// max_length is in bytes, of nvarchar and nchar two a character, and -1 for MAX
// (sql-docs, sys-columns-transact-sql.md).
const lastErrorColumnSQL = `SELECT /* outbox:LastErrorColumn */ TYPE_NAME(c.system_type_id) AS type_name, c.max_length
FROM   sys.columns AS c
WHERE  c.object_id = OBJECT_ID(@events)
AND    c.name = N'last_error';`

func readLastError(ctx context.Context, t Target, conn *sql.Conn) (l lastError, err error) {
	var kind string
	var bytes int64
	err = conn.QueryRowContext(ctx, lastErrorColumnSQL, sql.Named("events", t.Events())).Scan(&kind, &bytes)
	if errors.Is(err, sql.ErrNoRows) {
		return l, fmt.Errorf("the table %s has no column last_error, or this login has no right on it", t.Names)
	}
	l.unit = 1
	if kind = strings.ToUpper(kind); strings.HasPrefix(kind, "N") {
		l.unit = 2
	}
	l.room = bytes / l.unit
	l.declaration = fmt.Sprintf("%s(%d)", kind, l.room)
	if bytes < 0 {
		l.room, l.declaration = math.MaxInt32, kind+"(MAX)"
	}
	return l, err
}

// left is what reason leaves of the column for the error before it.
func (l lastError) left(reason string) int64 { return l.room - int64(len(reason)+len(errorWas)) }

// fits refuses a reason that would have to be cut, or would leave no room to
// show that an error was.
func (l lastError) fits(reason, by string) error {
	left := l.left(reason) - int64(len(errorCut))
	if left >= 0 {
		return nil
	}
	before := discardedBy(by)
	limit := int64(len(reason)-len(before)) + left
	found := "the reason has " + quantity.Of(len(reason)-len(before), "character")
	if limit <= 0 {
		return fmt.Errorf("%w: %s, and last_error, %s, has no room for any after %q: widen the column, or name who discards in fewer", ErrSetting, found, l.declaration, before)
	}
	return fmt.Errorf("%w: %s, and last_error, %s, has room for %d after %q and a word of the old error", ErrSetting, found, l.declaration, limit, before)
}

// reason is what a discard writes first, in what every collation holds.
func (s SettleFailed) reason() string {
	if !s.Discard {
		return ""
	}
	return discardedBy(s.By) + ascii(s.Reason)
}

func discardedBy(by string) string { return "discarded by " + ascii(by) + ": " }
