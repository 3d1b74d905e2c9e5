-- The trace id of the request or hook that asked for a run or brought an event: log lines of all services carry it.
ALTER TABLE kiln.run ADD COLUMN trace uuid;
ALTER TABLE kiln.event ADD COLUMN trace uuid;
