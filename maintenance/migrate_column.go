package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"azsqloutbox/worker"
)

// The join by system_type_id finds the base type of an alias type (sql-docs,
// sys-columns-transact-sql.md, sys-types-transact-sql.md). The collation that is
// asked for has a code page where the server knows it, 65001 for UTF-8
// (collationproperty-transact-sql.md).
const migrateColumnSQL = `SELECT /* outbox:MigrateColumn */ c.column_id, t.name AS type_name, c.max_length, ISNULL(c.collation_name, N'') AS collation_name, c.is_nullable,
       CASE WHEN c.user_type_id = c.system_type_id THEN 0 ELSE 1 END AS is_alias,
       c.is_computed, c.is_sparse, c.is_masked,
       CASE WHEN c.encryption_type IS NULL THEN 0 ELSE 1 END AS is_encrypted,
       CONVERT(NVARCHAR(128), DATABASEPROPERTYEX(DB_NAME(), 'Collation')) AS database_collation,
       CONVERT(INT, COLLATIONPROPERTY(@collation, 'CodePage')) AS code_page,
       (SELECT k.name
        FROM   sys.columns AS i
        INNER JOIN sys.types AS k ON k.user_type_id = i.system_type_id
        WHERE  i.object_id = c.object_id
        AND    i.name = N'id') AS id_type
FROM   sys.columns AS c
INNER JOIN sys.types AS t ON t.user_type_id = c.system_type_id
WHERE  c.object_id = OBJECT_ID(@table)
AND    c.name = @column;`

// migrationColumn is the column as it is, and what it is to become.
type migrationColumn struct {
	id        int
	kind      string // the base type's name in lower case
	bytes     int    // max_length: -1 for MAX, two a character for nvarchar
	collation string
	nullable  bool
	alias     bool
	computed  bool
	sparse    bool
	masked    bool
	encrypted bool

	toLength    int // bytes, -1 for MAX
	toCollation string
	toUTF8      bool

	// idType is that of the column id, in lower case; the others are the ids that
	// it holds.
	idType              string
	lowestID, highestID int64
}

// readColumn reads the column and works out its new type.
func (m Migration) readColumn(ctx context.Context, conn *sql.Conn) (*migrationColumn, error) {
	asked := m.Collation
	if strings.EqualFold(asked, databaseDefault) {
		asked = ""
	}
	var c migrationColumn
	var database string
	var codePage sql.NullInt64
	var idType sql.NullString
	row := conn.QueryRowContext(ctx, migrateColumnSQL,
		sql.Named("table", m.Events()), sql.Named("column", m.Column), sql.Named("collation", asked))
	err := row.Scan(&c.id, &c.kind, &c.bytes, &c.collation, &c.nullable, &c.alias, &c.computed, &c.sparse, &c.masked, &c.encrypted,
		&database, &codePage, &idType)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("the table %s or its column %s cannot be seen: it is not there, has another name, or the login has no right on it: %w", m.Names, m.Column, worker.ErrPermanent)
	}
	if err != nil {
		return nil, fmt.Errorf("read the column %s of %s: %w", m.Column, m.Names, err)
	}
	c.kind = strings.ToLower(c.kind)
	if err := c.walk(idType.String); err != nil {
		return nil, fmt.Errorf("the table %s %w", m.Names, err)
	}
	switch {
	case m.Collation == "":
		c.toCollation = c.collation
	case asked == "":
		c.toCollation = database
	case !codePage.Valid:
		return nil, fmt.Errorf("%w: this server has no collation %s", ErrSetting, m.Collation)
	case codePage.Int64 == 0:
		return nil, fmt.Errorf("%w: the collation %s is for Unicode text only and has no code page that a VARCHAR could use", ErrSetting, m.Collation)
	default:
		c.toCollation = m.Collation
	}
	c.toUTF8 = strings.HasSuffix(strings.ToUpper(c.toCollation), "_UTF8")
	c.toLength = c.bytes
	if c.kind == "nvarchar" && c.bytes > 0 {
		c.toLength = c.bytes / 2
	}
	switch m.Length {
	case "":
	case "MAX":
		c.toLength = -1
	default:
		c.toLength, _ = strconv.Atoi(m.Length) // Validate has looked at it
	}
	return &c, nil
}

// walk prepares for a walk along the ids.
func (c *migrationColumn) walk(idType string) error {
	var ok bool
	c.idType = strings.ToLower(idType)
	if c.lowestID, c.highestID, ok = idRange(c.idType); ok {
		return nil
	}
	if idType == "" {
		return fmt.Errorf("has no column id, in whose order the text is checked: %w", ErrSetting)
	}
	return fmt.Errorf("has an id of type %s, and the text is checked in the order of whole numbers: %w", strings.ToUpper(idType), ErrSetting)
}

// before and after are the column as T-SQL declares it.
func (c *migrationColumn) before() string {
	kind, n := strings.ToUpper(c.kind), c.bytes
	if strings.HasPrefix(kind, "N") && n > 0 {
		n /= 2
	}
	return declared(kind, n, c.collation, c.nullable)
}

func (c *migrationColumn) after() string {
	return declared("VARCHAR", c.toLength, c.toCollation, c.nullable)
}

func declared(kind string, n int, collation string, nullable bool) string {
	null := "NOT NULL"
	if nullable {
		null = "NULL"
	}
	return fmt.Sprintf("%s(%s) COLLATE %s %s", kind, lengthText(n), collation, null)
}

func lengthText(n int) string {
	if n < 0 {
		return "MAX"
	}
	return strconv.Itoa(n)
}

// migrated says whether the column is VARCHAR already. One that is so in another
// way than was asked for is a Refusal: this task does not change it.
func (m Migration) migrated(c *migrationColumn) (bool, error) {
	if c.kind != "varchar" {
		return false, nil
	}
	var differs []string
	if m.Length != "" && c.toLength != c.bytes {
		differs = append(differs, "--length "+m.Length)
	}
	if m.Collation != "" && !strings.EqualFold(c.toCollation, c.collation) {
		differs = append(differs, "--collation "+m.Collation)
	}
	if len(differs) > 0 {
		return true, &Refusal{
			Task:   m.op("migrate-varchar"),
			Found:  fmt.Sprintf("the column is %s already, which is not %s", c.before(), strings.Join(differs, " ")),
			Remedy: "migrate-varchar only turns NVARCHAR into VARCHAR; change a VARCHAR by ALTER TABLE … ALTER COLUMN, after a check of your own that nothing is lost",
		}
	}
	return true, nil
}

// columnBlockers says what keeps the column itself from being changed.
func (m Migration) columnBlockers(c *migrationColumn) (list []MigrationBlocker) {
	add := func(kind, problem, remedy string) {
		list = append(list, MigrationBlocker{Kind: kind, Name: m.Column, Problem: problem, Remedy: remedy})
	}
	if c.kind != "nvarchar" {
		add("type", "is "+strings.ToUpper(c.kind)+": only NVARCHAR is migrated", "change it by hand, after a check of your own")
	}
	if c.alias {
		add("alias type", "has a user-defined type", "change it to the base type first: ALTER TABLE … ALTER COLUMN")
	}
	if c.computed {
		add("computed column", "is computed", "drop it, and add it again as a plain column")
	}
	if c.sparse {
		add("sparse column", "is SPARSE, which ALTER COLUMN would take away", "ALTER TABLE … ALTER COLUMN … DROP SPARSE first")
	}
	if c.masked {
		add("masked column", "is masked", "ALTER TABLE … ALTER COLUMN … DROP MASKED first, and add the mask again afterwards")
	}
	if c.encrypted {
		add("encrypted column", "is under Always Encrypted: the server cannot look at its text", "decrypt it first")
	}
	return list
}
