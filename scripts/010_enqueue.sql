-- The way in for writers in any language: one call in the business
-- transaction writes a batch of events.
--
--   EXEC dbo.outbox_event_enqueue @events = N'[
--     {"aggregate_type": "order", "aggregate_id": "42", "event_type": "order.created",
--      "payload": {"total": 12.5}, "headers": {"tenant": "north"}}]';
--
-- payload and headers may be JSON values or strings. Nothing is cut and no
-- character is replaced: an event that does not fit fails the call, and because
-- of XACT_ABORT the transaction with it, so that business data is never
-- committed without its event.
--
-- A procedure keeps these two settings of its creation; with them OFF its
-- writes to a table with filtered indexes fail with error 1934.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO

-- A writer needs two rights, and none on the table:
--
--   GRANT EXECUTE ON dbo.outbox_event_enqueue TO <writer>;
--   GRANT UPDATE ON OBJECT::dbo.outbox_event_seq TO <writer>;
--
-- The second is asked for by sp_sequence_get_range, and makes the sequence
-- visible in sys.sequences; neither follows the ownership chain. (Where the id
-- is an IDENTITY column: VIEW DEFINITION on the table instead, to see that it
-- is.) EXECUTE AS OWNER would save the grant and break in an imported database
-- whose dbo has no login: error 15517.
CREATE OR ALTER PROCEDURE [dbo].[outbox_event_enqueue]
    @events NVARCHAR(MAX)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    IF @events IS NULL
        THROW 50000, N'outbox: @events is NULL: a JSON array of events is expected', 1;

    DECLARE @message NVARCHAR(2048), @count BIGINT;

    SELECT @count = COUNT(*) FROM OPENJSON(@events);
    IF @count = 0
        RETURN 0;

    -- From 5,000 locks of one statement on, the server would lock the table.
    IF @count > 4000
        THROW 50000, N'outbox: at most 4000 events a call', 1;

    -- Anything but an object (type 5) would give no rows, or more than one: an
    -- event that is lost or has another one's id. The keys of an array are 0, 1, …
    IF EXISTS (SELECT 1
               FROM   OPENJSON(@events) AS j
               WHERE  j.type <> 5
               OR     ISNULL(TRY_CAST(j.[key] AS BIGINT), -1) NOT BETWEEN 0 AND @count - 1)
        THROW 50000, N'outbox: @events must be a JSON array of objects', 1;

    -- A value fits when it comes back from the column's own type as it went in:
    -- the conversion cuts what is too long and replaces what the code page does
    -- not have, both in silence. The two are compared as bytes, because a
    -- collation may call different characters equal; the dot makes trailing
    -- blanks and zero bytes count.
    SELECT TOP (1) @message = CONCAT(N'outbox: event ', p.i, N' of the batch: ', p.problem)
    FROM (
        SELECT v.i,
               CASE WHEN v.aggregate_type IS NULL THEN N'aggregate_type is missing'
                    WHEN v.aggregate_id   IS NULL THEN N'aggregate_id is missing'
                    WHEN v.event_type     IS NULL THEN N'event_type is missing'
                    WHEN v.event_type     = N''   THEN N'event_type is empty: it chooses the route'
                    WHEN v.payload        IS NULL THEN N'payload is missing'
                    WHEN CONVERT(VARBINARY(MAX), CONVERT(NVARCHAR(MAX), CONVERT(/*aggregate*/ VARCHAR(100), v.aggregate_type)) + N'.') <> CONVERT(VARBINARY(MAX), v.aggregate_type + N'.')
                    THEN N'aggregate_type is too long for its column, or has characters that its collation cannot hold'
                    WHEN CONVERT(VARBINARY(MAX), CONVERT(NVARCHAR(MAX), CONVERT(/*aggregate*/ VARCHAR(100), v.aggregate_id)) + N'.') <> CONVERT(VARBINARY(MAX), v.aggregate_id + N'.')
                    THEN N'aggregate_id is too long for its column, or has characters that its collation cannot hold'
                    WHEN TRY_CONVERT(/*event_type*/ VARCHAR(100), v.event_type) IS NULL
                      OR CONVERT(VARBINARY(MAX), CONVERT(NVARCHAR(MAX), TRY_CONVERT(/*event_type*/ VARCHAR(100), v.event_type)) + N'.') <> CONVERT(VARBINARY(MAX), v.event_type + N'.')
                    THEN N'event_type does not fit its column'
                    WHEN CONVERT(VARBINARY(MAX), CONVERT(NVARCHAR(MAX), CONVERT(/*payload*/ VARCHAR(2000), v.payload)) + N'.') <> CONVERT(VARBINARY(MAX), v.payload + N'.')
                    THEN N'payload is too long for its column, or has characters that its collation cannot hold'
                    WHEN CONVERT(VARBINARY(MAX), CONVERT(NVARCHAR(MAX), CONVERT(/*headers*/ VARCHAR(2000), v.headers)) + N'.') <> CONVERT(VARBINARY(MAX), v.headers + N'.')
                    THEN N'headers are too long for their column, or have characters that its collation cannot hold'
               END AS problem
        FROM (
            SELECT CAST(j.[key] AS BIGINT) AS i,
                   e.aggregate_type COLLATE /*text_collation*/ database_default AS aggregate_type,
                   e.aggregate_id COLLATE /*text_collation*/ database_default AS aggregate_id,
                   e.event_type COLLATE /*text_collation*/ database_default AS event_type,
                   ISNULL(e.payload, e.payload_json) COLLATE /*collation*/ Latin1_General_100_BIN2_UTF8 AS payload,
                   ISNULL(e.headers, e.headers_json) COLLATE /*collation*/ Latin1_General_100_BIN2_UTF8 AS headers
            FROM   OPENJSON(@events) AS j
            CROSS APPLY OPENJSON(j.value) WITH (
                aggregate_type NVARCHAR(MAX) '$.aggregate_type',
                aggregate_id   NVARCHAR(MAX) '$.aggregate_id',
                event_type     NVARCHAR(MAX) '$.event_type',
                payload        NVARCHAR(MAX) '$.payload',
                payload_json   NVARCHAR(MAX) '$.payload' AS JSON,
                headers        NVARCHAR(MAX) '$.headers',
                headers_json   NVARCHAR(MAX) '$.headers' AS JSON) AS e
        ) AS v
    ) AS p
    WHERE  p.problem IS NOT NULL
    ORDER BY p.i;

    IF @message IS NOT NULL
        THROW 50000, @message, 1;

    DECLARE @increment BIGINT, @blocks BIGINT, @range SQL_VARIANT, @first BIGINT, @used SQL_VARIANT;
    DECLARE @ids TABLE (id BIGINT NOT NULL PRIMARY KEY); -- of an IDENTITY column

    -- Inside the caller's transaction, where there is one. Where there is none, the
    -- INSERT would be committed before what follows it could refuse it.
    BEGIN TRANSACTION;

    IF COLUMNPROPERTY(OBJECT_ID(N'[dbo].[outbox_event]'), N'id', 'IsIdentity') = 1
    BEGIN
        INSERT INTO [dbo].[outbox_event] (aggregate_type, aggregate_id, event_type, payload, headers)
        OUTPUT inserted.id INTO @ids (id)
        SELECT e.aggregate_type, e.aggregate_id, e.event_type,
               ISNULL(e.payload, e.payload_json), ISNULL(e.headers, e.headers_json)
        FROM   OPENJSON(@events) AS j
        CROSS APPLY OPENJSON(j.value) WITH (
            aggregate_type NVARCHAR(MAX) '$.aggregate_type',
            aggregate_id   NVARCHAR(MAX) '$.aggregate_id',
            event_type     NVARCHAR(MAX) '$.event_type',
            payload        NVARCHAR(MAX) '$.payload',
            payload_json   NVARCHAR(MAX) '$.payload' AS JSON,
            headers        NVARCHAR(MAX) '$.headers',
            headers_json   NVARCHAR(MAX) '$.headers' AS JSON) AS e
        ORDER BY CAST(j.[key] AS BIGINT);

        IF @@ROWCOUNT <> @count
            THROW 50000, N'outbox: not every event was written', 1;
    END;
    ELSE
    BEGIN
        -- Each value of the sequence stands for INCREMENT BY ids: the events take
        -- as many whole blocks as they need.
        SELECT @increment = CAST(s.increment AS BIGINT)
        FROM   sys.sequences AS s
        WHERE  s.object_id = OBJECT_ID(N'[dbo].[outbox_event_seq]');

        IF @increment IS NULL OR @increment < 1
            THROW 50000, N'outbox: the sequence [dbo].[outbox_event_seq] is missing, does not ascend, or this login has no UPDATE right on it', 1;

        SET @blocks = (@count + @increment - 1) / @increment;
        EXEC sys.sp_sequence_get_range
             @sequence_name      = N'[dbo].[outbox_event_seq]',
             @range_size         = @blocks,
             @range_first_value  = @range OUTPUT,
             @sequence_increment = @used OUTPUT;
        SET @first = CAST(@range AS BIGINT);

        IF CAST(@used AS BIGINT) <> @increment
            THROW 50000, N'outbox: the increment of the sequence [dbo].[outbox_event_seq] has just changed', 1;

        INSERT INTO [dbo].[outbox_event] (id, aggregate_type, aggregate_id, event_type, payload, headers)
        SELECT @first + CAST(j.[key] AS BIGINT), e.aggregate_type, e.aggregate_id, e.event_type,
               ISNULL(e.payload, e.payload_json), ISNULL(e.headers, e.headers_json)
        FROM   OPENJSON(@events) AS j
        CROSS APPLY OPENJSON(j.value) WITH (
            aggregate_type NVARCHAR(MAX) '$.aggregate_type',
            aggregate_id   NVARCHAR(MAX) '$.aggregate_id',
            event_type     NVARCHAR(MAX) '$.event_type',
            payload        NVARCHAR(MAX) '$.payload',
            payload_json   NVARCHAR(MAX) '$.payload' AS JSON,
            headers        NVARCHAR(MAX) '$.headers',
            headers_json   NVARCHAR(MAX) '$.headers' AS JSON) AS e;

        IF @@ROWCOUNT <> @count
            THROW 50000, N'outbox: not every event was written', 1;
    END;

    -- The types and collations above are those of the day when this script was
    -- made. A migration may have changed the columns since, and a conversion into
    -- a code page replaces what that does not have in silence, so the other
    -- characters are read back. The catalog would tell it for less, but shows
    -- nothing to a caller who has EXECUTE alone. (RTRIM, for CHAR pads.)
    -- ASCII survives every code page and needs no look.
    IF CHARINDEX(N'\u', @events) > 0
       OR DATALENGTH(@events) <> 2 * DATALENGTH(CONVERT(VARCHAR(MAX), CAST(@events AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2_UTF8))
        IF EXISTS (SELECT 1
                   FROM   OPENJSON(@events) AS j
                   CROSS APPLY OPENJSON(j.value) WITH (
                       aggregate_type NVARCHAR(MAX) '$.aggregate_type',
                       aggregate_id   NVARCHAR(MAX) '$.aggregate_id',
                       event_type     NVARCHAR(MAX) '$.event_type',
                       payload        NVARCHAR(MAX) '$.payload',
                       payload_json   NVARCHAR(MAX) '$.payload' AS JSON,
                       headers        NVARCHAR(MAX) '$.headers',
                       headers_json   NVARCHAR(MAX) '$.headers' AS JSON) AS e
                   LEFT JOIN (SELECT i.id, ROW_NUMBER() OVER (ORDER BY i.id) - 1 AS n FROM @ids AS i) AS k
                          ON k.n = CAST(j.[key] AS BIGINT)
                   INNER JOIN [dbo].[outbox_event] AS s ON s.id = ISNULL(k.id, @first + CAST(j.[key] AS BIGINT))
                   WHERE  CONVERT(VARBINARY(MAX), RTRIM(CONVERT(NVARCHAR(MAX), s.aggregate_type))) <> CONVERT(VARBINARY(MAX), RTRIM(e.aggregate_type))
                   OR     CONVERT(VARBINARY(MAX), RTRIM(CONVERT(NVARCHAR(MAX), s.aggregate_id))) <> CONVERT(VARBINARY(MAX), RTRIM(e.aggregate_id))
                   OR     CONVERT(VARBINARY(MAX), RTRIM(CONVERT(NVARCHAR(MAX), s.event_type))) <> CONVERT(VARBINARY(MAX), RTRIM(e.event_type))
                   OR     CONVERT(VARBINARY(MAX), RTRIM(CONVERT(NVARCHAR(MAX), s.payload))) <> CONVERT(VARBINARY(MAX), RTRIM(ISNULL(e.payload, e.payload_json)))
                   OR     CONVERT(VARBINARY(MAX), RTRIM(CONVERT(NVARCHAR(MAX), s.headers))) <> CONVERT(VARBINARY(MAX), RTRIM(ISNULL(e.headers, e.headers_json))))
            THROW 50000, N'outbox: an event has characters that its column, whose type or collation has changed, does not have: make the procedure anew from 010_enqueue.sql with the types of the table', 1;

    COMMIT TRANSACTION;
    RETURN 0;
END;
GO
