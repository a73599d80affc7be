SELECT /* outbox:ClaimEvents */ TOP (@batch)
       e.id,
       ISNULL(DATALENGTH(e.payload), 0) AS payload_bytes,
       CONVERT(VARBINARY(MAX), e.payload) AS payload,
       e.aggregate_type,
       e.aggregate_id,
       e.created_at,
       e.retry_count
FROM   dbo.outbox_event AS e WITH (INDEX(IX_outbox_claim), FORCESEEK, UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE  e.event_type = CAST(@event_type AS VARCHAR(100))
AND    e.status = 0
AND    e.id >= CAST(@from AS BIGINT)
ORDER BY e.id;
