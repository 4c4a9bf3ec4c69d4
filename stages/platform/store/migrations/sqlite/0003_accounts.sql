-- People who sign in. A password is kept as its Argon2id hash, in PHC form.
CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    password TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at INTEGER NOT NULL
);

-- Sessions, by the digest of their token.
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    until INTEGER NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_until ON sessions (until);

-- One-time links, by the digest of their token; the one that makes the first user is of nobody.
CREATE TABLE links (
    digest BLOB PRIMARY KEY,
    until INTEGER NOT NULL
) WITHOUT ROWID;
