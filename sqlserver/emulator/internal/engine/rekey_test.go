package engine

import "testing"

// Unique keys are checked when a statement is done: rows may pass keys on to each
// other, and two that end with one key fail, with all as it was.
func TestUpdateMovesUniqueKeys(t *testing.T) {
	play(t, []batch{
		{`CREATE TABLE t (id INT NOT NULL PRIMARY KEY, k INT NULL, s TINYINT NOT NULL)`, ""},
		{`CREATE UNIQUE INDEX u ON t (k)`, ""},
		{`INSERT t (id, k, s) VALUES (1, 10, 0), (2, 20, 1), (3, 30, 2)`, ""},
		{`UPDATE t SET id = 3 - id WHERE id < 3`, ""},
		{`SELECT id, k, s FROM t ORDER BY id`, "1|20|1\n2|10|0\n3|30|2"},
		{`UPDATE t SET id = id + 1`, ""},
		{`UPDATE t SET id = id - 1`, ""},
		{`UPDATE t SET k = CASE k WHEN 20 THEN 10 WHEN 10 THEN 20 ELSE k END`, ""},
		{`SELECT id, k, s FROM t ORDER BY id`, "1|10|1\n2|20|0\n3|30|2"},
		{`UPDATE t SET k = 5 WHERE id < 3`, "error 2601"},
		{`UPDATE t SET id = CASE id WHEN 1 THEN 2 WHEN 2 THEN 3 ELSE id END`, "error 2627"},
		{`SELECT id, k, s FROM t ORDER BY k`, "1|10|1\n2|20|0\n3|30|2"},
		{`SELECT COUNT(*) FROM t WITH (INDEX (u))`, "3"},

		{`DECLARE @t TABLE (id INT NOT NULL PRIMARY KEY, v INT);
INSERT @t (id, v) VALUES (1, 1), (2, 2), (3, 3);
UPDATE @t SET id = 4 - id;
UPDATE @t SET id = id + 1 WHERE v > 1;
SELECT id, v FROM @t ORDER BY id`, "error 2627\n1|3\n2|2\n3|1"},
	})
}
