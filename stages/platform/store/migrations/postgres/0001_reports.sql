-- Times are milliseconds since 1970, digests SHA-256, kept texts rows of `blobs`.
CREATE TABLE runtimes (
    id BIGSERIAL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL
);

CREATE TABLE tokens (
    id BIGSERIAL PRIMARY KEY,
    runtime_id BIGINT NOT NULL REFERENCES runtimes (id),
    prefix TEXT NOT NULL UNIQUE,
    hash BYTEA NOT NULL,
    created_at BIGINT NOT NULL
);

-- Idempotency keys that were taken.
CREATE TABLE reports (
    runtime_id BIGINT NOT NULL REFERENCES runtimes (id),
    key BYTEA NOT NULL,
    received_at BIGINT NOT NULL,
    PRIMARY KEY (runtime_id, key)
);
CREATE INDEX reports_received ON reports (received_at);

-- An application by name; what belongs to none stands under empty names. `held_uid` and `listed` are what the compare
-- protocol speaks of: the incarnation that is held, and the resources that its last report lists, eight bytes each.
CREATE TABLE applications (
    id BIGSERIAL PRIMARY KEY,
    runtime_id BIGINT NOT NULL REFERENCES runtimes (id),
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    epoch BIGINT NOT NULL DEFAULT 0,
    held_uid TEXT NOT NULL DEFAULT '',
    listed BYTEA NOT NULL DEFAULT '',
    UNIQUE (runtime_id, namespace, name)
);

-- What is reported of: the application itself, under empty names, and its resources. `current` is the state, `latest` what
-- came last, `held_key` the first 16 bytes of the digest of its last idempotency key.
CREATE TABLE entities (
    id BIGSERIAL PRIMARY KEY,
    application_id BIGINT NOT NULL REFERENCES applications (id),
    api_version TEXT NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    listing BYTEA NOT NULL,
    current BIGINT,
    latest BIGINT,
    content BYTEA NOT NULL DEFAULT '',
    held_key BYTEA,
    uid TEXT NOT NULL DEFAULT '',
    version BIGINT,
    object_created_at BIGINT,
    at BIGINT NOT NULL DEFAULT 0,
    UNIQUE (application_id, kind, name, namespace, api_version)
);
CREATE INDEX entities_object ON entities (name, kind, namespace);

-- Every state that an entity was reported in: once for however many reports that differ in their time alone.
CREATE TABLE transitions (
    id BIGSERIAL PRIMARY KEY,
    entity_id BIGINT NOT NULL REFERENCES entities (id),
    at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    received_at BIGINT NOT NULL,
    reports BIGINT NOT NULL DEFAULT 1,
    uid TEXT NOT NULL,
    version BIGINT,
    deleted BIGINT NOT NULL,
    sync TEXT,
    health TEXT,
    health_message TEXT,
    revision TEXT,
    object_is_json BIGINT NOT NULL,
    object BYTEA,
    actual BYTEA,
    desired BYTEA,
    git BYTEA,
    details BYTEA
);
CREATE INDEX transitions_entity ON transitions (entity_id, id);
CREATE INDEX transitions_received ON transitions (received_at, id);

-- Texts, once each, compressed; `refs` counts the transitions that name them.
CREATE TABLE blobs (
    digest BYTEA PRIMARY KEY,
    refs BIGINT NOT NULL,
    size BIGINT NOT NULL,
    zstd BYTEA NOT NULL
);

-- Operations that deployed, by when they began.
CREATE TABLE deployments (
    id BIGSERIAL PRIMARY KEY,
    application_id BIGINT NOT NULL REFERENCES applications (id),
    started_at BIGINT NOT NULL,
    finished_at BIGINT,
    phase TEXT NOT NULL,
    revision TEXT NOT NULL,
    initiated_by TEXT NOT NULL,
    commit_author TEXT NOT NULL,
    commit_message TEXT NOT NULL,
    commit_date TEXT NOT NULL,
    images TEXT NOT NULL,
    UNIQUE (application_id, started_at)
);

-- From when to when an entity was out of sync, and how many of its states were.
CREATE TABLE drifts (
    id BIGSERIAL PRIMARY KEY,
    entity_id BIGINT NOT NULL REFERENCES entities (id),
    onset BIGINT NOT NULL,
    ended BIGINT,
    repeats BIGINT NOT NULL DEFAULT 1
);
CREATE INDEX drifts_entity ON drifts (entity_id, ended);
