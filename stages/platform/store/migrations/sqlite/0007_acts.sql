-- Tokens of one minute, by the digest: somebody, on one runtime, within what they came in with.
CREATE TABLE passes (
    digest BLOB PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    runtime_id INTEGER NOT NULL REFERENCES runtimes (id),
    how TEXT NOT NULL,
    scope TEXT NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX passes_until ON passes (until);
CREATE INDEX passes_user ON passes (user_id);

-- Somebody who is disabled signs in by nothing, and keeps name, teams and history.
ALTER TABLE users ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0;

-- What is set on pages rather than in files, as JSON, by name.
CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;
