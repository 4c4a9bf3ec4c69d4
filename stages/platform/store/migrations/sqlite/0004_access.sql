-- Who is in which team; a team is there for as long as somebody is in it or a rule names it.
CREATE TABLE members (
    team TEXT NOT NULL,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    PRIMARY KEY (user_id, team)
);

-- What teams may; `body` is the rule, as JSON.
CREATE TABLE rules (
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL
);

-- Keys of people for programs: found by `prefix`, known by their digest.
CREATE TABLE keys (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    prefix TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL,
    name TEXT NOT NULL,
    scope TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    until INTEGER NOT NULL
);
CREATE INDEX keys_user ON keys (user_id);

-- Who did what.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    who TEXT NOT NULL,
    how TEXT NOT NULL,
    act TEXT NOT NULL,
    subject TEXT NOT NULL
);
CREATE INDEX audit_at ON audit (at);

-- What a runtime said of itself when it was installed, as JSON, and the key that its own secrets are kept under.
CREATE TABLE registrations (
    runtime_id INTEGER PRIMARY KEY REFERENCES runtimes (id),
    body TEXT NOT NULL,
    store_key TEXT NOT NULL,
    created_at INTEGER NOT NULL
);

-- What a runtime last said is wrong with it, as JSON.
CREATE TABLE problems (
    runtime_id INTEGER PRIMARY KEY REFERENCES runtimes (id),
    body TEXT NOT NULL,
    at INTEGER NOT NULL
);
