-- Times are milliseconds since 1970, digests SHA-256, kept texts rows of `blobs`.
CREATE TABLE runtimes (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
);

CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    runtime_id INTEGER NOT NULL REFERENCES runtimes (id),
    prefix TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL,
    created_at INTEGER NOT NULL
);

-- Idempotency keys that were taken.
CREATE TABLE reports (
    runtime_id INTEGER NOT NULL REFERENCES runtimes (id),
    key BLOB NOT NULL,
    received_at INTEGER NOT NULL,
    PRIMARY KEY (runtime_id, key)
) WITHOUT ROWID;
CREATE INDEX reports_received ON reports (received_at);

-- An application by name; what belongs to none stands under empty names. `held_uid` and `listed` are what the compare
-- protocol speaks of: the incarnation that is held, and the resources that its last report lists, eight bytes each.
CREATE TABLE applications (
    id INTEGER PRIMARY KEY,
    runtime_id INTEGER NOT NULL REFERENCES runtimes (id),
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    epoch INTEGER NOT NULL DEFAULT 0,
    held_uid TEXT NOT NULL DEFAULT '',
    listed BLOB NOT NULL DEFAULT x'',
    UNIQUE (runtime_id, namespace, name)
);

-- What is reported of: the application itself, under empty names, and its resources. `current` is the state, `latest` what
-- came last, `held_key` the first 16 bytes of the digest of its last idempotency key.
CREATE TABLE entities (
    id INTEGER PRIMARY KEY,
    application_id INTEGER NOT NULL REFERENCES applications (id),
    api_version TEXT NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    listing BLOB NOT NULL,
    current INTEGER,
    latest INTEGER,
    content BLOB NOT NULL DEFAULT x'',
    held_key BLOB,
    uid TEXT NOT NULL DEFAULT '',
    version INTEGER,
    object_created_at INTEGER,
    at INTEGER NOT NULL DEFAULT 0,
    UNIQUE (application_id, kind, name, namespace, api_version)
);
CREATE INDEX entities_object ON entities (name, kind, namespace);

-- Every state that an entity was reported in: once for however many reports that differ in their time alone.
CREATE TABLE transitions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    entity_id INTEGER NOT NULL REFERENCES entities (id),
    at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    reports INTEGER NOT NULL DEFAULT 1,
    uid TEXT NOT NULL,
    version INTEGER,
    deleted INTEGER NOT NULL,
    sync TEXT,
    health TEXT,
    health_message TEXT,
    revision TEXT,
    object_is_json INTEGER NOT NULL,
    object BLOB,
    actual BLOB,
    desired BLOB,
    git BLOB,
    details BLOB
);
CREATE INDEX transitions_entity ON transitions (entity_id, id);
CREATE INDEX transitions_received ON transitions (received_at, id);

-- Texts, once each, compressed; `refs` counts the transitions that name them.
CREATE TABLE blobs (
    digest BLOB PRIMARY KEY,
    refs INTEGER NOT NULL,
    size INTEGER NOT NULL,
    zstd BLOB NOT NULL
) WITHOUT ROWID;

-- Operations that deployed, by when they began.
CREATE TABLE deployments (
    id INTEGER PRIMARY KEY,
    application_id INTEGER NOT NULL REFERENCES applications (id),
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
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
    id INTEGER PRIMARY KEY,
    entity_id INTEGER NOT NULL REFERENCES entities (id),
    onset INTEGER NOT NULL,
    ended INTEGER,
    repeats INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX drifts_entity ON drifts (entity_id, ended);
