package engine

import (
	"context"
	"testing"
	"time"
)

// Whatever text comes in, the engine answers, and stops when it is told to.
func FuzzBatch(f *testing.F) {
	for _, s := range []string{
		outboxTable,
		`SELECT TOP (1) id, CONVERT(VARBINARY(MAX), payload) AS p FROM e WITH (INDEX(IX_claim), UPDLOCK, READPAST, READCOMMITTEDLOCK) WHERE event_type = 'a' AND status = 0 ORDER BY id OPTION (MAXDOP 1)`,
		`UPDATE x SET status = 1 OUTPUT inserted.id FROM OPENJSON('[1]') WITH (id BIGINT '$') AS c INNER LOOP JOIN e AS x WITH (FORCESEEK) ON x.id = c.id`,
		`WITH c AS (SELECT a.id, ROW_NUMBER() OVER (PARTITION BY g ORDER BY id) AS n FROM a) DELETE FROM c WHERE n > 1`,
		`BEGIN TRY THROW 50000, 'x', 1 END TRY BEGIN CATCH SELECT ERROR_MESSAGE() END CATCH`,
		`DECLARE @t TABLE (a INT PRIMARY KEY); INSERT @t DEFAULT VALUES; MERGE @t AS x USING y ON 1=1 WHEN MATCHED THEN DELETE;`,
		`CREATE OR ALTER PROCEDURE p @a INT = 1, @b NVARCHAR(MAX) OUTPUT WITH EXECUTE AS OWNER AS RETURN 0`,
		`SELECT CASE WHEN 1 IN (1, 2) THEN DATEADD(day, 1, '2026-01-01') END, IIF(NULL IS NULL, 1, 0), N'x' + 'y' LIKE 'z%'`,
		`ALTER TABLE e ADD CONSTRAINT c CHECK (id BETWEEN 1 AND 2); ALTER INDEX ALL ON e REBUILD WITH (ONLINE = ON); DROP INDEX IF EXISTS i ON e`,
		`SET LOCK_TIMEOUT 5; SET TRANSACTION ISOLATION LEVEL SNAPSHOT; IF @@TRANCOUNT > 0 ROLLBACK ELSE PRINT 'x'`,
		`SELECT g, COUNT(DISTINCT n), STRING_AGG(t, ',') FROM a LEFT JOIN b ON a.id = b.id GROUP BY g HAVING SUM(n) > 1 UNION ALL SELECT 1, 2, NULL`,
		`SELECT qs.execution_count, st.text, qp.query_plan FROM sys.dm_exec_query_stats AS qs CROSS APPLY sys.dm_exec_sql_text(qs.sql_handle) AS st OUTER APPLY sys.dm_exec_query_plan(qs.plan_handle) AS qp`,
		`SELECT s.record_count, r.wait_type FROM sys.dm_db_index_physical_stats(DB_ID(), NULL, DEFAULT, 0, 'DETAILED') AS s CROSS JOIN sys.dm_exec_requests AS r`,
		`CREATE TRIGGER tr ON a AFTER INSERT, UPDATE NOT FOR REPLICATION AS IF UPDATE(g) AND NOT EXISTS (SELECT 1 FROM deleted) THROW 50001, 'x', 1; INSERT a SELECT id + 1 FROM inserted`,
		`ALTER TRIGGER tr ON a FOR DELETE AS ROLLBACK; DISABLE TRIGGER ALL ON a; ENABLE TRIGGER tr ON a; DROP TRIGGER IF EXISTS tr`,
		`ALTER TABLE a ALTER COLUMN g NVARCHAR(20) COLLATE Latin1_General_100_BIN2_UTF8 NOT NULL WITH (ONLINE = ON); CREATE STATISTICS st ON a (g, n) WHERE n > 1 WITH FULLSCAN; DROP STATISTICS a.st`,
		`ALTER INDEX i ON a REBUILD WITH (ONLINE = ON (WAIT_AT_LOW_PRIORITY (MAX_DURATION = 1 MINUTES, ABORT_AFTER_WAIT = SELF)), RESUMABLE = ON, MAX_DURATION = 5); ALTER INDEX i ON a RESUME WITH (MAXDOP = 2)`,
		`CREATE USER u WITHOUT LOGIN; CREATE ROLE r AUTHORIZATION dbo; ALTER ROLE r ADD MEMBER u; GRANT SELECT (id, g), UPDATE ON OBJECT::dbo.a TO r, public WITH GRANT OPTION; EXECUTE AS USER = 'u'; SELECT id FROM a; REVERT`,
		`SELECT 1 FROM a INNER LOOP JOIN (a AS b LEFT JOIN a AS c ON b.id = c.id) ON 1 = 1 CROSS APPLY OPENJSON(N'[]') AS j OPTION (MAXDOP 1, LOOP JOIN, HASH JOIN, RECOMPILE)`,
		`CREATE SEQUENCE q START WITH 1 INCREMENT BY 5; SELECT NEXT VALUE FOR q OVER (ORDER BY id), g + 'x' COLLATE Latin1_General_BIN2 FROM a; ALTER SEQUENCE q RESTART`,
		`DENY CONTROL ON SCHEMA::dbo TO u CASCADE; REVOKE GRANT OPTION FOR SELECT ON a FROM u; SELECT HAS_PERMS_BY_NAME('a', 'OBJECT', 'SELECT', 'g', 'COLUMN'), IS_ROLEMEMBER('r', 'u') FROM fn_my_permissions(NULL, 'DATABASE') AS p`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		s := open(t, newEngine(t))
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		r := &recorder{}
		_ = s.Batch(ctx, `CREATE TABLE a (id INT NOT NULL PRIMARY KEY, g VARCHAR(10) NULL, n INT NULL); INSERT a VALUES (1, 'x', 2), (2, 'x', NULL)`, r)
		_ = s.Batch(ctx, sql, r)
	})
}
