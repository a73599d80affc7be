package engine

import "testing"

// outboxTable is the shape of table that the project is about.
const outboxTable = `
CREATE TABLE dbo.e (
  id BIGINT NOT NULL, event_type VARCHAR(100) NOT NULL, payload VARCHAR(2000) COLLATE Latin1_General_100_BIN2_UTF8 NOT NULL,
  status TINYINT NOT NULL CONSTRAINT DF_e_status DEFAULT (0), created_at DATETIME2(3) NOT NULL CONSTRAINT DF_e_created DEFAULT (SYSUTCDATETIME()),
  processed_at DATETIME2(3) NULL, retry_count INT NOT NULL DEFAULT 0,
  CONSTRAINT PK_e PRIMARY KEY CLUSTERED (id) WITH (FILLFACTOR = 98, OPTIMIZE_FOR_SEQUENTIAL_KEY = ON),
  CONSTRAINT CK_e_status CHECK (status IN (0, 1, 2)));
CREATE NONCLUSTERED INDEX IX_claim ON dbo.e (event_type, id) INCLUDE (payload, created_at, retry_count) WHERE status = 0;`

func TestClaimCycle(t *testing.T) {
	play(t, []batch{
		{outboxTable, ""},
		{`INSERT INTO e (id, event_type, payload) VALUES (1, 'a', N'x'), (2, 'a', N'ü'), (3, 'b', 'z'), (4, 'a', 'w')`, ""},
		{`BEGIN TRAN;
		  DECLARE @n INT = 2, @type VARCHAR(100) = 'a', @after BIGINT = 1;
		  SELECT TOP (@n) id, CONVERT(VARBINARY(MAX), payload) FROM e WITH (INDEX(IX_claim), UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
		  WHERE event_type = CAST(@type AS VARCHAR(100)) AND status = 0 AND id > @after ORDER BY id`, "began\n2|0xC3BC\n4|0x77"},
		{`DECLARE @ids NVARCHAR(MAX) = N'[2,4]', @now DATETIME2(3) = SYSUTCDATETIME();
		  UPDATE x SET status = 1, processed_at = @now FROM OPENJSON(@ids) WITH (id BIGINT '$') AS c
		  INNER LOOP JOIN e AS x WITH (FORCESEEK, ROWLOCK) ON x.id = c.id WHERE x.status = 0 OPTION (MAXDOP 1);
		  SELECT @@ROWCOUNT; COMMIT`, "2\ncommitted"},
		{`SELECT id, status FROM e ORDER BY id`, "1|0\n2|1\n3|0\n4|1"},
		{`DELETE FROM e OUTPUT deleted.id, deleted.event_type WHERE id = 3`, "3|b"},
		{`INSERT INTO e (id, event_type, payload, status) VALUES (9, 'a', 'x', 7)`, "error 547"},
		{`INSERT INTO e (id, event_type, payload) VALUES (1, 'a', 'x')`, "error 2627"},
		{`INSERT INTO e (id, event_type) VALUES (9, 'a')`, "error 515"},
		{`INSERT INTO e (id, event_type, payload) VALUES (9, REPLICATE('a', 101), 'x')`, "error 2628"},
		{`SELECT id FROM nowhere`, "error 208"},
		{`SELECT nothing FROM e`, "error 207"},
		{`SELECT id FROM e WITH (INDEX(IX_no))`, "error 308"},
		{`DECLARE @s TINYINT = 0; SELECT id FROM e WITH (INDEX(IX_claim)) WHERE status = @s`, "error 8622"},
	})
}
