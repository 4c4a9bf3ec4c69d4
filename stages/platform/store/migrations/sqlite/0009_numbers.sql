-- The numbers of rules, keys, sessions and acts are told outside: in refusals, in the audit log, in pages that are open and
-- in cursors. Without AUTOINCREMENT the number of the newest one that was deleted was given to the next, so that a page of
-- before changed another's. Each table is built anew with the same columns; no table refers to one of them. The other tables
-- are told by their names, or refer to nothing once a row is gone.
CREATE TABLE rules_numbered (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
INSERT INTO rules_numbered (id, body, created_at) SELECT id, body, created_at FROM rules;
DROP TABLE rules;
ALTER TABLE rules_numbered RENAME TO rules;

CREATE TABLE keys_numbered (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    prefix TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL,
    name TEXT NOT NULL,
    scope TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    until INTEGER NOT NULL
);
INSERT INTO keys_numbered (id, user_id, prefix, hash, name, scope, created_at, until)
    SELECT id, user_id, prefix, hash, name, scope, created_at, until FROM keys;
DROP TABLE keys;
ALTER TABLE keys_numbered RENAME TO keys;
CREATE INDEX keys_user ON keys (user_id);

CREATE TABLE sessions_numbered (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    digest BLOB NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    until INTEGER NOT NULL
);
INSERT INTO sessions_numbered (id, digest, user_id, created_at, until)
    SELECT id, digest, user_id, created_at, until FROM sessions;
DROP TABLE sessions;
ALTER TABLE sessions_numbered RENAME TO sessions;
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_until ON sessions (until);

CREATE TABLE audit_numbered (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    who TEXT NOT NULL,
    how TEXT NOT NULL,
    act TEXT NOT NULL,
    subject TEXT NOT NULL
);
INSERT INTO audit_numbered (id, at, who, how, act, subject) SELECT id, at, who, how, act, subject FROM audit;
DROP TABLE audit;
ALTER TABLE audit_numbered RENAME TO audit;
CREATE INDEX audit_at ON audit (at);

-- What was deleted before is in the audit log by its number, which begins the subject: it does not come back either.
DELETE FROM sqlite_sequence WHERE name IN ('rules', 'keys');
INSERT INTO sqlite_sequence (name, seq) SELECT 'rules', max(
    (SELECT COALESCE(max(id), 0) FROM rules),
    (SELECT COALESCE(max(CAST(subject AS INTEGER)), 0) FROM audit WHERE act IN ('rule.change', 'rule.remove')));
INSERT INTO sqlite_sequence (name, seq) SELECT 'keys', max(
    (SELECT COALESCE(max(id), 0) FROM keys),
    (SELECT COALESCE(max(CAST(subject AS INTEGER)), 0) FROM audit WHERE act = 'key.remove'));
