-- What lists, searches and the first page need of an application, beside its history: filled with each report of it. Of
-- what was kept before, states are taken over here; the rest comes with the next report.
ALTER TABLE runtimes ADD COLUMN seen_at BIGINT;
ALTER TABLE runtimes ADD COLUMN lag BIGINT;

ALTER TABLE applications ADD COLUMN project TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN environment TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN cluster TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN destination TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN repository TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN path TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN images TEXT NOT NULL DEFAULT '[]';
ALTER TABLE applications ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN revision TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN author TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN message TEXT NOT NULL DEFAULT '';
-- Lines in lower case: names, commit, images, and each label as `key=value`.
ALTER TABLE applications ADD COLUMN search TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN health TEXT NOT NULL DEFAULT 'Unknown';
ALTER TABLE applications ADD COLUMN health_since BIGINT NOT NULL DEFAULT 0;
ALTER TABLE applications ADD COLUMN health_message TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN sync TEXT NOT NULL DEFAULT 'Unknown';
ALTER TABLE applications ADD COLUMN sync_since BIGINT NOT NULL DEFAULT 0;
-- Of its last operation.
ALTER TABLE applications ADD COLUMN phase TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN phase_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE applications ADD COLUMN phase_message TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN deployed_at BIGINT;
ALTER TABLE applications ADD COLUMN reported_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE applications ADD COLUMN deleted BIGINT NOT NULL DEFAULT 0;

ALTER TABLE deployments ADD COLUMN message TEXT NOT NULL DEFAULT '';

CREATE INDEX transitions_at ON transitions (entity_id, at, id);
CREATE INDEX deployments_started ON deployments (started_at);

UPDATE applications SET
    (health, health_since, health_message, sync, sync_since, revision, deleted, reported_at, search) = (
        SELECT COALESCE(NULLIF(t.health, ''), 'Unknown'), t.at, COALESCE(t.health_message, ''),
               COALESCE(NULLIF(t.sync, ''), 'Unknown'), t.at, COALESCE(t.revision, ''), t.deleted, e.at,
               lower(applications.name)
        FROM entities e JOIN transitions t ON t.id = e.current
        WHERE e.application_id = applications.id AND e.kind = '')
    WHERE EXISTS (SELECT 1 FROM entities e WHERE e.application_id = applications.id AND e.kind = '' AND e.current IS NOT NULL);
UPDATE applications SET deployed_at =
    (SELECT max(d.finished_at) FROM deployments d WHERE d.application_id = applications.id AND d.phase = 'Succeeded');
