package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// Columns of sys.indexes and sys.index_columns that every version has (sql-docs,
// sys-indexes-transact-sql.md); INDEXPROPERTY is NULL where it does not know the
// property (indexproperty-transact-sql.md), so that this runs before SQL Server
// 2019 too.
const tableIndexesSQL = `SELECT /* outbox:TableIndexes */ i.name, i.type, i.is_unique, i.is_disabled, i.has_filter, ISNULL(i.filter_definition, N'') AS filter_text,
       i.ignore_dup_key, i.allow_row_locks, i.fill_factor,
       INDEXPROPERTY(i.object_id, i.name, 'IsOptimizedForSequentialKey') AS for_sequential_key,
       c.name AS column_name, ic.key_ordinal
FROM   sys.indexes AS i
INNER JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id
INNER JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
WHERE  i.object_id = OBJECT_ID(@table)
ORDER BY i.name, ic.key_ordinal, ic.index_column_id;`

// index is an index with its key columns in order.
type index struct {
	name              string
	clustered, unique bool
	disabled          bool
	filtered          bool
	// filter is empty also where the login may not see it: definitions need
	// VIEW DEFINITION (sql-docs, metadata-visibility-configuration.md).
	filter       string
	ignoreDupKey bool
	rowLocks     bool
	fillFactor   int // 0 is 100
	// sequential is OPTIMIZE_FOR_SEQUENTIAL_KEY; it is not valid where the server
	// has no such thing.
	sequential sql.NullBool
	// key and included are in lower case.
	key, included []string
}

// clusteredType is sys.indexes.type of a clustered rowstore index.
const clusteredType = 1

func readIndexes(ctx context.Context, q querier, names Names) (map[string]index, error) {
	rows, err := q.QueryContext(ctx, tableIndexesSQL, sql.Named("table", names.Events()))
	if err != nil {
		return nil, fmt.Errorf("read the indexes: %w", err)
	}
	defer rows.Close()
	indexes := make(map[string]index)
	for rows.Next() {
		var name sql.NullString
		var i index
		var kind, ordinal int
		var column string
		if err := rows.Scan(&name, &kind, &i.unique, &i.disabled, &i.filtered, &i.filter,
			&i.ignoreDupKey, &i.rowLocks, &i.fillFactor, &i.sequential, &column, &ordinal); err != nil {
			return nil, fmt.Errorf("read the indexes: %w", err)
		}
		i.name, i.clustered = name.String, kind == clusteredType
		if seen, ok := indexes[i.name]; ok {
			i = seen
		}
		if column = strings.ToLower(column); ordinal > 0 {
			i.key = append(i.key, column)
		} else {
			i.included = append(i.included, column)
		}
		indexes[i.name] = i
	}
	return indexes, rows.Err()
}

// normalFilter makes filters comparable: brackets, parentheses and blanks are
// how the server happens to store them.
func normalFilter(filter string) string {
	return strings.ToLower(strings.NewReplacer("[", "", "]", "", "(", "", ")", "", " ", "").Replace(filter))
}

// indexNeed is one of the two indexes that statements name in a hint.
type indexNeed struct {
	name, filter string
	key          []string
}

func (n Names) indexNeeds() []indexNeed {
	n = n.WithDefaults()
	return []indexNeed{
		{n.ClaimIndex, "([status]=(0))", []string{"event_type", "id"}},
		{n.RetryIndex, "([status]=(2))", []string{"retry_at", "id"}},
	}
}

// indexNamed finds an index as the hint of a statement does: names of objects
// compare by the collation of the database, which is without case unless someone
// chose another.
func indexNamed(indexes map[string]index, name string) (index, bool) {
	if i, ok := indexes[name]; ok {
		return i, true
	}
	for n, i := range indexes {
		if strings.EqualFold(n, name) {
			return i, true
		}
	}
	return index{}, false
}

// problem says what keeps the statements from using the index, and the error
// that they would meet. A filter that cannot be seen is left to the rehearsal.
func (i index) problem(need indexNeed) (number int32, problem string) {
	switch {
	case i.disabled:
		return 315, "is disabled"
	case !i.filtered || i.filter != "" && normalFilter(i.filter) != normalFilter(need.filter):
		return 8622, fmt.Sprintf("%s, must be filtered by %q", i.filterText(), need.filter)
	case len(i.key) == 0 || i.key[0] != need.key[0]:
		return 8622, fmt.Sprintf("has %s as its first key column, must have %s", strings.Join(i.key, ", "), need.key[0])
	}
	return 0, ""
}

func (i index) filterText() string {
	if !i.filtered {
		return "has no filter"
	}
	return fmt.Sprintf("is filtered by %q", i.filter)
}

// indexDefects are what is wrong with the two indexes that the statements name.
func indexDefects(indexes map[string]index, names Names) []defect {
	var found []defect
	for _, need := range names.indexNeeds() {
		object := "index " + need.name
		i, ok := indexNamed(indexes, need.name)
		number, problem := int32(308), "is not there"
		if ok {
			number, problem = i.problem(need)
		}
		if problem != "" {
			found = append(found, defect{number: number, stops: true, Finding: Finding{
				Severity: Must, Object: object, Problem: fmt.Sprintf("the index %s %s", need.name, problem),
			}})
			continue
		}
		if !sorted(i, need.key, indexes) {
			found = append(found, defect{Finding: Finding{
				Severity: Must, Object: object,
				Problem: fmt.Sprintf("the index %s has the key (%s), must have (%s): every read of it would sort the whole backlog", need.name, strings.Join(i.key, ", "), strings.Join(need.key, ", ")),
			}})
		}
		if !i.rowLocks {
			found = append(found, defect{Finding: Finding{
				Severity: Must, Object: object,
				Problem: fmt.Sprintf("the index %s has ALLOW_ROW_LOCKS = OFF: READPAST skips row locks only, so that claims would wait for each other", need.name),
				SQL:     fmt.Sprintf("ALTER INDEX %s ON %s SET (ALLOW_ROW_LOCKS = ON);", quoteName(need.name), names.Events()),
			}})
		}
	}
	return found
}

// sorted says whether an index gives its rows in the order of the key. A
// nonclustered index has the clustered key behind its own.
func sorted(i index, key []string, indexes map[string]index) bool {
	whole := slices.Clone(i.key)
	for _, c := range indexes {
		if c.clustered {
			whole = append(whole, c.key...)
		}
	}
	return len(whole) >= len(key) && slices.Equal(whole[:len(key)], key)
}

// covering are what the claim reads beside its key.
var covering = []string{"aggregate_type", "aggregate_id", "payload", "headers", "created_at", "retry_count"}

// idIndexDefects are about the index that finds a row by its id: the flip, the
// settle and the reap seek it with FORCESEEK, once an event.
func idIndexDefects(indexes map[string]index, names Names) []defect {
	var by *index
	var found []defect
	for _, i := range indexes {
		if i.clustered && i.key[0] != "id" {
			found = append(found, defect{Finding: Finding{
				Severity: Should, Object: "index " + i.name,
				Problem: fmt.Sprintf("the table is clustered by (%s): inserts do not go to its end, and every event costs a lookup more", strings.Join(i.key, ", ")),
			}})
		}
		if i.unique && !i.filtered && !i.disabled && slices.Equal(i.key, []string{"id"}) && (by == nil || i.clustered) {
			by = &i
		}
	}
	if by == nil {
		return append(found, defect{Finding: Finding{
			Severity: Must, Object: "table " + names.String(),
			Problem: "no unique index has id as its only key: events are flipped and settled by id (FORCESEEK, error 8622), and no two may have the same",
			SQL: fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s PRIMARY KEY CLUSTERED (id) WITH (FILLFACTOR = 98, OPTIMIZE_FOR_SEQUENTIAL_KEY = ON);",
				names.Events(), quoteName("PK_"+names.WithDefaults().Table)),
			Advice: "it sorts and writes the whole table: choose a quiet hour",
		}})
	}
	object := "index " + by.name
	alter := fmt.Sprintf("ALTER INDEX %s ON %s ", quoteName(by.name), names.Events())
	add := func(s Severity, problem, sql, advice string) {
		found = append(found, defect{Finding: Finding{Severity: s, Object: object, Problem: problem, SQL: sql, Advice: advice}})
	}
	if by.ignoreDupKey {
		add(Must, fmt.Sprintf("the index %s has IGNORE_DUP_KEY = ON: an event whose id is taken vanishes without an error", by.name), alter+"SET (IGNORE_DUP_KEY = OFF);", "")
	}
	if !by.rowLocks {
		add(Must, fmt.Sprintf("the index %s has ALLOW_ROW_LOCKS = OFF: claims would wait for each other", by.name), alter+"SET (ALLOW_ROW_LOCKS = ON);", "")
	}
	if by.sequential.Valid && !by.sequential.Bool {
		add(Should, fmt.Sprintf("the index %s has OPTIMIZE_FOR_SEQUENTIAL_KEY = OFF: inserts of a burst convoy at its last page", by.name), alter+"SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON);", "")
	}
	if by.fillFactor > 0 && by.fillFactor < LeastFillFactor {
		add(Should, fmt.Sprintf("the index %s has fill factor %d: a rebuild leaves room for growth that never comes, as the flip writes fixed-length columns", by.name, by.fillFactor),
			"", "outboxctl rebuild says what a rebuild would free")
	}
	return found
}

// LeastFillFactor is where leaving room begins to cost: the script's 98 and
// anything near it are fine. New rows are never put into the room that a fill factor
// left behind them where keys ascend, and reads cost as much more as there is of it
// (sql-docs, specify-fill-factor-for-an-index.md).
const LeastFillFactor = 95

// moreIndexDefects are what costs more than it has to.
func moreIndexDefects(indexes map[string]index, names Names) []defect {
	var found []defect
	claim, retry := names.WithDefaults().ClaimIndex, names.WithDefaults().RetryIndex
	for name, i := range indexes {
		// The worker stops without these two; indexDefects mends them in place.
		named := strings.EqualFold(name, claim) || strings.EqualFold(name, retry)
		if slices.Contains(i.key, "status") && !named {
			found = append(found, defect{Finding: Finding{
				Severity: Should, Object: "index " + name,
				Problem: fmt.Sprintf("the index %s has status in its key: every flip deletes its whole entry and inserts it elsewhere", name),
				SQL:     fmt.Sprintf("DROP INDEX %s ON %s;", quoteName(name), names.Events()),
				Advice:  "outboxctl diagnose says whether anybody reads it",
			}})
		}
		if !strings.EqualFold(name, claim) || len(i.included) == 0 {
			continue
		}
		var missing []string
		for _, c := range covering {
			if !slices.Contains(i.included, c) && !slices.Contains(i.key, c) {
				missing = append(missing, c)
			}
		}
		if len(missing) > 0 {
			found = append(found, defect{Finding: Finding{
				Severity: Should, Object: "index " + name,
				Problem: fmt.Sprintf("the index %s includes columns and yet not %s: a claim pays for both, the wider entry and a lookup an event", name, strings.Join(missing, ", ")),
				Advice:  "outboxctl schema print shows the covering form, and with --slim the narrow one",
			}})
		}
	}
	slices.SortFunc(found, func(a, b defect) int { return strings.Compare(a.Problem, b.Problem) })
	return found
}
