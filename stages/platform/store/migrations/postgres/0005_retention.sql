-- What is too old is looked for by when it ended. Transitions are looked through in their order.
CREATE INDEX drifts_ended ON drifts (ended) WHERE ended IS NOT NULL;
CREATE INDEX deployments_finished ON deployments (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX deployments_unfinished ON deployments (started_at) WHERE finished_at IS NULL;
DROP INDEX transitions_received;
