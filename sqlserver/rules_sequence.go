package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// TRY_CONVERT: a sequence may be DECIMAL(38) and hold what is no BIGINT.
// last_used_value is NULL until the first value was taken (sql-docs,
// sys-sequences-transact-sql.md; SQL Server 2017 and later).
const sequenceSQL = `SELECT /* outbox:Sequence */ TRY_CONVERT(BIGINT, s.increment) AS increment,
       TRY_CONVERT(BIGINT, s.minimum_value) AS minimum_value,
       TRY_CONVERT(BIGINT, s.maximum_value) AS maximum_value,
       TRY_CONVERT(BIGINT, s.current_value) AS current_value,
       CASE WHEN s.last_used_value IS NULL THEN 0 ELSE 1 END AS used,
       s.is_cycling, s.is_cached
FROM   sys.sequences AS s
WHERE  s.object_id = OBJECT_ID(@sequence);`

// One seek to the end of the index on id.
const highestIDSQL = `SELECT /* outbox:HighestID */ TOP (1) CONVERT(BIGINT, e.id) AS id
FROM   {events} AS e
ORDER BY e.id DESC
OPTION (RECOMPILE);`

// sequence is what the catalog says of the sequence of ids.
type sequence struct {
	increment, minimum, maximum, current sql.NullInt64
	used, cycling, cached                bool
}

// readSequence is nil where there is none, or none that the login may see.
func readSequence(ctx context.Context, conn *sql.Conn, names Names) (*sequence, error) {
	var s sequence
	err := conn.QueryRowContext(ctx, sequenceSQL, sql.Named("sequence", names.Sequence())).
		Scan(&s.increment, &s.minimum, &s.maximum, &s.current, &s.used, &s.cycling, &s.cached)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the sequence %s: %w", names.Sequence(), err)
	}
	return &s, nil
}

func readHighestID(ctx context.Context, conn *sql.Conn, names Names) (id sql.NullInt64, err error) {
	err = conn.QueryRowContext(ctx, names.Replacer().Replace(highestIDSQL)).Scan(&id)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return id, fmt.Errorf("look for the highest id of %s: %w", names, err)
	}
	return id, nil
}

// defects are what would give an id twice, or waste or exhaust the ids. block
// is how many ids a writer takes with one value.
func (s sequence) defects(names Names, block int64, highest sql.NullInt64, id column) []defect {
	alter := "ALTER SEQUENCE " + names.Sequence() + " "
	var found []defect
	add := func(severity Severity, sql, advice, problem string, args ...any) {
		found = append(found, defect{Finding: Finding{
			Severity: severity, Object: "sequence " + names.String() + "_seq",
			Problem: fmt.Sprintf(problem, args...), SQL: sql, Advice: advice,
		}})
	}
	increment := s.increment.Int64
	switch {
	case increment < 1:
		add(Must, "", "make a new sequence", "the sequence does not ascend: INCREMENT BY is %d", increment)
		return found
	case increment < block:
		add(Must, fmt.Sprintf("%sINCREMENT BY %d;", alter, block), "stop the writers for it, or give each of them --block-size as its allocation size",
			"INCREMENT BY is %d and writers take blocks of %d: two of them would use the same ids (error 2627)", increment, block)
	case increment > block:
		add(Should, "", "say --block-size where the writers take larger ones",
			"INCREMENT BY is %d and writers take blocks of %d: the rest of each block is never used", increment, block)
	}
	if s.cycling {
		add(Must, alter+"NO CYCLE;", "", "the sequence has CYCLE: ids begin again after the last one")
	}
	if next := s.next(); s.current.Valid && highest.Valid && highest.Int64 >= next {
		add(Must, fmt.Sprintf("%sRESTART WITH %d;", alter, (highest.Int64-1)/increment*increment+2*increment+1), "look for blocks that writers hold and have not used yet: restart above them too",
			"the next block begins at %d and the table has ids to %d: inserts would fail with error 2627", next, highest.Int64)
	}
	if s.minimum.Valid && s.current.Int64 < 1 {
		add(Should, "", "it works; START WITH and MINVALUE would have begun at 1", "the sequence is at %d: a BIGINT sequence begins at -9223372036854775808 unless told otherwise", s.current.Int64)
	}
	if _, most := id.span(); s.maximum.Valid && s.maximum.Int64 > most {
		add(Should, "", "a BIGINT column never ends", "ids go to %d and the column id takes %d at most", s.maximum.Int64, most)
	}
	if !s.cached {
		add(Should, alter+"CACHE 100;", "", "the sequence has NO CACHE: every block is a write of its own")
	}
	return found
}

// next is the first id of the block that the next writer gets: a sequence that
// was used has handed out all of its current block.
func (s sequence) next() int64 {
	if s.used {
		return s.current.Int64 + s.increment.Int64
	}
	return s.current.Int64
}
