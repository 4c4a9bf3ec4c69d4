-- Tokens of one minute, by the digest: somebody, on one runtime, within what they came in with.
CREATE TABLE passes (
    digest BYTEA PRIMARY KEY,
    user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    runtime_id BIGINT NOT NULL REFERENCES runtimes (id),
    how TEXT NOT NULL,
    scope TEXT NOT NULL,
    until BIGINT NOT NULL
);
CREATE INDEX passes_until ON passes (until);
CREATE INDEX passes_user ON passes (user_id);

-- Somebody who is disabled signs in by nothing, and keeps name, teams and history.
ALTER TABLE users ADD COLUMN disabled BIGINT NOT NULL DEFAULT 0;

-- What is set on pages rather than in files, as JSON, by name.
CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
);
