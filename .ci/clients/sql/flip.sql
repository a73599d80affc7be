DECLARE @now DATETIME2(3) = SYSUTCDATETIME();
DECLARE @lease_until DATETIME2(3) = DATEADD(MILLISECOND, 60000, @now);
DECLARE @flipped INT;

UPDATE /* outbox:FlipClaim */ e
SET    status = 1,
       processed_at = @now
FROM   OPENJSON(@ids) WITH (id BIGINT '$') AS c
INNER LOOP JOIN dbo.outbox_event AS e WITH (FORCESEEK, ROWLOCK) ON e.id = c.id
WHERE  e.status = 0
OPTION (MAXDOP 1);
SET @flipped = @@ROWCOUNT;

INSERT /* outbox:FlipClaim */ INTO dbo.outbox_event_claim (claim_id, owner, event_type, claimed_at, lease_until, event_count, event_ids)
VALUES (NEWID(), @owner, CAST(@event_type AS VARCHAR(100)), @now, @lease_until, @flipped, @ids);

SELECT /* outbox:FlipClaim */ @flipped AS flipped;
