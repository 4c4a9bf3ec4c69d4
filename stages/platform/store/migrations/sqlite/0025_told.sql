-- What a runtime told of its clusters: of each what it told last. Times are as it wrote them, but for `at`, when it was told.
CREATE TABLE clusters (
    runtime_id INTEGER NOT NULL REFERENCES runtimes (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    server TEXT NOT NULL,
    status TEXT NOT NULL,
    message TEXT,
    attempted_at TEXT,
    server_version TEXT,
    resources INTEGER,
    apis INTEGER,
    cached_at TEXT,
    api_versions TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (runtime_id, name)
) WITHOUT ROWID;
-- Private keys that a runtime has here against their loss, as base64 of PEM, by the digest of that.
CREATE TABLE sealing_keys (
    id TEXT PRIMARY KEY,
    runtime_id INTEGER NOT NULL REFERENCES runtimes (id) ON DELETE CASCADE,
    digest BLOB NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (runtime_id, digest)
) WITHOUT ROWID;
