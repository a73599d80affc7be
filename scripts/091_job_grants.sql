-- What the jobs may do that look after an outbox table: outboxctl purge deletes
-- processed events, outboxctl rebuild rebuilds indexes. The worker may do neither, so
-- this is a role of its own. Give it to the jobs' identity:
--
--   CREATE USER [outbox-jobs] FROM EXTERNAL PROVIDER;   -- a managed identity, by its display name
--   ALTER ROLE [outbox_event_jobs_role] ADD MEMBER [outbox-jobs];
--
-- Run this file as often as you like.
IF DATABASE_PRINCIPAL_ID(N'outbox_event_jobs_role') IS NULL
    CREATE ROLE [outbox_event_jobs_role];
GO

-- ALTER is what ALTER INDEX wants; VIEW DEFINITION shows the filters of the indexes.
GRANT SELECT, DELETE, ALTER, VIEW DEFINITION ON [dbo].[outbox_event] TO [outbox_event_jobs_role];
GO

-- Open claims hold the purge back, and the longest lease says how far.
GRANT SELECT ON [dbo].[outbox_event_claim] TO [outbox_event_jobs_role];
GO

GRANT SELECT ON [dbo].[outbox_event_worker] TO [outbox_event_jobs_role];
GO

-- To slow down while the log is short, to see the density of indexes, and to tell the
-- progress of a rebuild. Both jobs work without it, and say what they cannot see.
GRANT VIEW DATABASE STATE TO [outbox_event_jobs_role];
GO
