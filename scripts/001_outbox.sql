-- The outbox: the sequence, the event table, its two filtered indexes, the
-- receipts of claims, the heartbeats of workers and what those are told. Safe to
-- run again: it adds what is missing and changes nothing that is there.
--
--   sqlcmd -S <server> -d <database> -G -b -i 001_outbox.sql
--
-- -b stops at the first error. sqlcmd connects with QUOTED_IDENTIFIER OFF;
-- creating or writing a table with a filtered index then fails with error 1934.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO

-- Writers take ids in blocks of INCREMENT BY: the value they get is the first
-- of 50 that are theirs, so 50 events cost one call. MINVALUE must be said,
-- because a BIGINT sequence starts at -9223372036854775808 without it. Beside a
-- table that has ids already it would hand them out again, and every insert
-- would fail with error 2627.
IF OBJECT_ID(N'[dbo].[outbox_event_seq]', N'SO') IS NULL
BEGIN
    IF COLUMNPROPERTY(OBJECT_ID(N'[dbo].[outbox_event]'), N'id', 'IsIdentity') = 0
        IF EXISTS (SELECT 1 FROM [dbo].[outbox_event] WHERE id >= 1)
            THROW 50000, N'outbox: the table [dbo].[outbox_event] has rows: create the sequence [dbo].[outbox_event_seq] by hand, START WITH a number above the highest id', 1;

    CREATE SEQUENCE [dbo].[outbox_event_seq] AS BIGINT
        START WITH 1
        INCREMENT BY 50
        MINVALUE 1
        NO CYCLE
        CACHE 100;
END;
GO

-- FILLFACTOR 98: a row does not grow later, the flip writes fixed-length
-- columns only. OPTIMIZE_FOR_SEQUENTIAL_KEY: every insert goes to the last page.
-- A UTF-8 collation takes one byte a character for ASCII and loses nothing else.
IF OBJECT_ID(N'[dbo].[outbox_event]', N'U') IS NULL
    CREATE TABLE [dbo].[outbox_event] (
        id             BIGINT        NOT NULL,
        aggregate_type /*aggregate*/ VARCHAR(100) COLLATE /*text_collation*/ database_default NOT NULL,
        aggregate_id   /*aggregate*/ VARCHAR(100) COLLATE /*text_collation*/ database_default NOT NULL,
        event_type     /*event_type*/ VARCHAR(100) NOT NULL,
        payload        /*payload*/ VARCHAR(2000) COLLATE /*collation*/ Latin1_General_100_BIN2_UTF8 NOT NULL,
        headers        /*headers*/ VARCHAR(2000) COLLATE /*collation*/ Latin1_General_100_BIN2_UTF8 NULL,
        status         TINYINT       NOT NULL CONSTRAINT [DF_outbox_event_status] DEFAULT (0),
        created_at     DATETIME2(3)  NOT NULL CONSTRAINT [DF_outbox_event_created_at] DEFAULT (SYSUTCDATETIME()),
        processed_at   DATETIME2(3)  NULL,
        retry_at       DATETIME2(3)  NULL,
        retry_count    INT           NOT NULL CONSTRAINT [DF_outbox_event_retry_count] DEFAULT (0),
        last_error     VARCHAR(400)  NULL,
        CONSTRAINT [PK_outbox_event] PRIMARY KEY CLUSTERED (id)
            WITH (FILLFACTOR = 98, OPTIMIZE_FOR_SEQUENTIAL_KEY = ON),
        CONSTRAINT [CK_outbox_event_status] CHECK (status IN (0, 1, 2))
    );
GO

-- Holds the backlog and nothing else: 0 is PENDING. status is in the WHERE and
-- not in the key, so the flip removes the entry instead of moving it.
IF NOT EXISTS (SELECT 1 FROM sys.indexes WHERE object_id = OBJECT_ID(N'[dbo].[outbox_event]') AND name = N'IX_outbox_claim')
    CREATE NONCLUSTERED INDEX [IX_outbox_claim]
        ON [dbo].[outbox_event] (event_type, id)
        /*include*/ INCLUDE (aggregate_type, aggregate_id, payload, headers, created_at, retry_count)
        WHERE status = 0;
GO

-- 2 is FAILED: those with a retry_at wait for it, those without for a person.
IF NOT EXISTS (SELECT 1 FROM sys.indexes WHERE object_id = OBJECT_ID(N'[dbo].[outbox_event]') AND name = N'IX_outbox_retry')
    CREATE NONCLUSTERED INDEX [IX_outbox_retry]
        ON [dbo].[outbox_event] (retry_at, id)
        WHERE status = 2;
GO

-- One row per claimed batch, from the flip until the batch is settled: as long
-- as it is there, its events may not have gone out, and after lease_until any
-- worker gives them back.
IF OBJECT_ID(N'[dbo].[outbox_event_claim]', N'U') IS NULL
    CREATE TABLE [dbo].[outbox_event_claim] (
        claim_id    UNIQUEIDENTIFIER NOT NULL,
        owner       VARCHAR(100)     NOT NULL,
        event_type  /*receipt_event_type*/ VARCHAR(100) NOT NULL,
        claimed_at  DATETIME2(3)     NOT NULL,
        lease_until DATETIME2(3)     NOT NULL,
        event_count INT              NOT NULL,
        event_ids   VARCHAR(MAX)     NOT NULL,
        CONSTRAINT [PK_outbox_event_claim] PRIMARY KEY CLUSTERED (claim_id)
    );
GO

-- One row per worker, written every few seconds, so that someone can see who works
-- here. A worker that stops takes its own away; that of one which was killed stays a
-- day. state is a JSON object of what else a worker says of itself.
IF OBJECT_ID(N'[dbo].[outbox_event_worker]', N'U') IS NULL
    CREATE TABLE [dbo].[outbox_event_worker] (
        owner      VARCHAR(100) NOT NULL,
        version    VARCHAR(50)  NOT NULL,
        source     VARCHAR(128) NOT NULL,
        lease_ms   INT          NOT NULL,
        lanes      INT          NOT NULL,
        in_flight  INT          NOT NULL,
        breakers   VARCHAR(MAX) NULL,
        rates      VARCHAR(MAX) NULL,
        started_at DATETIME2(3) NOT NULL,
        seen_at    DATETIME2(3) NOT NULL,
        state      VARCHAR(MAX) NULL,
        CONSTRAINT [PK_outbox_event_worker] PRIMARY KEY CLUSTERED (owner)
    );
GO

-- What a person tells all workers: one row for everything, an event type or an
-- entity that was ever paused. It outlives the workers, which read it with every
-- heartbeat. Event types are compared to the letter, entities without regard to case.
IF OBJECT_ID(N'[dbo].[outbox_event_control]', N'U') IS NULL
    CREATE TABLE [dbo].[outbox_event_control] (
        scope      VARCHAR(20)   NOT NULL,
        name       NVARCHAR(260) COLLATE Latin1_General_100_BIN2 NOT NULL,
        paused     BIT           NOT NULL,
        changed_by NVARCHAR(128) NOT NULL,
        reason     NVARCHAR(400) NULL,
        changed_at DATETIME2(3)  NOT NULL,
        CONSTRAINT [PK_outbox_event_control] PRIMARY KEY CLUSTERED (scope, name)
    );
GO
