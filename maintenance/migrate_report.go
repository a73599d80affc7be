package maintenance

import (
	"fmt"
	"strconv"

	"azsqloutbox/internal/quantity"
)

// What a MigrationReport can say of a migration.
const (
	MigrationChecked     = "checked"     // only looked at
	MigrationDone        = "migrated"    // by this run
	MigrationAlready     = "already"     // VARCHAR before this run
	MigrationRefused     = "refused"     // something was found, nothing was changed
	MigrationInterrupted = "interrupted" // stopped or failed; Stands says where the table stands
)

// MigrationReport is what Check and Run found and did.
type MigrationReport struct {
	Table  string `json:"table"`
	Column string `json:"column"`
	// From and To are the column's declarations.
	From  string `json:"from"`
	To    string `json:"to"`
	State string `json:"state"`
	Guard Guard  `json:"guard"`

	// What was checked: ids FromID to ThroughID, empty where nothing was.
	// Complete says that it was every row there is.
	FromID    string `json:"from_id"`
	ThroughID string `json:"through_id"`
	Complete  bool   `json:"complete"`

	Rows int64 `json:"rows"`
	// MaxChars counts as NVARCHAR(n) does, MaxBytes as VARCHAR(n) does, after the
	// conversion.
	MaxChars int64 `json:"max_chars"`
	MaxBytes int64 `json:"max_bytes"`
	// LossyRows come back from a VARCHAR as other text; TooLongRows have more bytes
	// than the new length.
	LossyRows   int64 `json:"lossy_rows"`
	TooLongRows int64 `json:"too_long_rows"`
	// BytesBefore and BytesAfter are the text of all rows that were checked.
	BytesBefore int64             `json:"bytes_before"`
	BytesAfter  int64             `json:"bytes_after"`
	Samples     []MigrationSample `json:"samples"`
	// Lossless is the type that would lose nothing; nil where To does not.
	Lossless *MigrationLossless `json:"lossless,omitempty"`

	Blockers []MigrationBlocker `json:"blockers"`
	Plan     []MigrationStep    `json:"plan"`
	Notes    []string           `json:"notes"`
	// Stands is how an interrupted run left the table.
	Stands  string  `json:"stands,omitempty"`
	Seconds float64 `json:"seconds"`

	utf8MaxBytes, utf8Bytes, utf8LossyRows int64
	nextID                                 int64
}

// MigrationSample is one row that a VARCHAR would not hold.
type MigrationSample struct {
	ID      string `json:"id"`
	Bytes   int64  `json:"bytes"` // after the conversion
	TooLong bool   `json:"too_long"`
	// Characters are what would be lost, each once.
	Characters []LostCharacter `json:"characters"`
	// Payload is the text of the row, where it was asked for.
	Payload *string `json:"payload,omitempty"`
}

// LostCharacter is a character and what it would become, as code points: U+0101
// and U+0061. A surrogate that stands alone is U+D83D and its like.
type LostCharacter struct {
	CodePoint string `json:"code_point"`
	Becomes   string `json:"becomes"`
	Times     int    `json:"times"`
}

// MigrationLossless is a type that would hold every row that was checked.
type MigrationLossless struct {
	Collation string `json:"collation"`
	// Length is a number of bytes, or MAX.
	Length   string `json:"length"`
	MaxBytes int64  `json:"max_bytes"`
	// Bytes is what the text of all rows takes with it, BytesMore what that is
	// more than with the type that was asked for.
	Bytes     int64 `json:"bytes"`
	BytesMore int64 `json:"bytes_more"`
	// UnsavableRows hold half a surrogate pair, which no VARCHAR can.
	UnsavableRows int64 `json:"unsavable_rows"`
}

// MigrationBlocker is something that ALTER COLUMN refuses and that a person has
// to take away first.
type MigrationBlocker struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy"`
}

// MigrationStep is one step of the plan. SQL is its statement; empty for a check,
// which is many.
type MigrationStep struct {
	Step string `json:"step"`
	SQL  string `json:"sql"`
}

// Found says whether something stands against the migration.
func (r *MigrationReport) Found() bool {
	return r.LossyRows > 0 || r.TooLongRows > 0 || len(r.Blockers) > 0
}

// conclude works out what would lose nothing.
func (r *MigrationReport) conclude(c *migrationColumn, utf8 string) {
	if r.LossyRows == 0 && r.TooLongRows == 0 {
		return
	}
	l := &MigrationLossless{Collation: c.toCollation, MaxBytes: r.MaxBytes, Bytes: r.BytesAfter}
	if r.LossyRows > 0 {
		l.Collation, l.MaxBytes, l.Bytes = utf8, r.utf8MaxBytes, r.utf8Bytes
		l.UnsavableRows = r.utf8LossyRows
	}
	l.BytesMore = l.Bytes - r.BytesAfter
	switch {
	case c.toLength < 0 || l.MaxBytes > longestVarchar:
		l.Length = "MAX"
	default:
		l.Length = strconv.FormatInt(max(int64(c.toLength), l.MaxBytes), 10)
	}
	r.Lossless = l
}

// Advice is what Lossless means, in a sentence.
func (r *MigrationReport) Advice() string {
	l := r.Lossless
	if l == nil {
		return ""
	}
	text := fmt.Sprintf("--collation %s --length %s would lose nothing of what was checked: the longest value takes %s, all together %d", l.Collation, l.Length, quantity.Of(l.MaxBytes, "byte"), l.Bytes)
	if l.BytesMore > 0 {
		text += fmt.Sprintf(", %d more than asked for", l.BytesMore)
	}
	text += fmt.Sprintf("; as NVARCHAR they take %d", r.BytesBefore)
	if l.UnsavableRows > 0 {
		text += fmt.Sprintf("; but there is half a surrogate pair in %s, which no VARCHAR can hold: mend or remove it first", quantity.Of(l.UnsavableRows, "row"))
	}
	return text
}
