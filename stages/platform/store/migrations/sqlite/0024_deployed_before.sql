-- Whether a revision was deployed before is asked of each of up to 20,000 deployments: found without a look at all others of its
-- application.
CREATE INDEX deployments_revision ON deployments (application_id, revision, started_at) WHERE phase = 'Succeeded';
