-- Whether a deployment is one of the last that succeeded of its application is asked of each that became too old: found without a
-- look at those that failed.
CREATE INDEX deployments_succeeded ON deployments (application_id, started_at) WHERE phase = 'Succeeded';
