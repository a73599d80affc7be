-- Rows of this type that are tied to a receipt of this owner by the time of
-- their claim, as the reaper and a settle find them.
SELECT COUNT(*) AS tied
FROM   dbo.outbox_event_claim AS r
CROSS APPLY OPENJSON(r.event_ids) WITH (id BIGINT '$') AS c
INNER JOIN dbo.outbox_event AS e ON e.id = c.id
WHERE  r.owner = @owner
AND    e.event_type = CAST(@event_type AS VARCHAR(100))
AND    e.status = 1
AND    e.processed_at = r.claimed_at;
