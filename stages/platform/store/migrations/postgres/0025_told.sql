-- What a runtime told of its clusters: of each what it told last. Times are as it wrote them, but for `at`, when it was told.
CREATE TABLE clusters (
    runtime_id BIGINT NOT NULL REFERENCES runtimes (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    server TEXT NOT NULL,
    status TEXT NOT NULL,
    message TEXT,
    attempted_at TEXT,
    server_version TEXT,
    resources BIGINT,
    apis BIGINT,
    cached_at TEXT,
    api_versions TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (runtime_id, name)
);
-- Private keys that a runtime has here against their loss, as base64 of PEM, by the digest of that.
CREATE TABLE sealing_keys (
    id TEXT PRIMARY KEY,
    runtime_id BIGINT NOT NULL REFERENCES runtimes (id) ON DELETE CASCADE,
    digest BYTEA NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (runtime_id, digest)
);
