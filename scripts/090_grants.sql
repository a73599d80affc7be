-- What an outbox worker may do, and nothing else: it can claim, publish and settle,
-- not delete an event, not change a table. Give the role to the worker's identity:
--
--   CREATE USER [outbox-worker] FROM EXTERNAL PROVIDER;   -- a managed identity, by its display name
--   ALTER ROLE [outbox_event_role] ADD MEMBER [outbox-worker];
--
-- A display name that is not unique fails with 33131: add WITH OBJECT_ID = '…'.
-- Run this file as often as you like.
IF DATABASE_PRINCIPAL_ID(N'outbox_event_role') IS NULL
    CREATE ROLE [outbox_event_role];
GO

-- VIEW DEFINITION shows the filters of the indexes to the check at the start.
GRANT SELECT, UPDATE, VIEW DEFINITION ON [dbo].[outbox_event] TO [outbox_event_role];
GO

GRANT SELECT, INSERT, DELETE ON [dbo].[outbox_event_claim] TO [outbox_event_role];
GO

-- DELETE is for its own row when it stops, and for those of workers that are long gone.
GRANT SELECT, INSERT, UPDATE, DELETE ON [dbo].[outbox_event_worker] TO [outbox_event_role];
GO

GRANT SELECT ON [dbo].[outbox_event_control] TO [outbox_event_role];
GO
