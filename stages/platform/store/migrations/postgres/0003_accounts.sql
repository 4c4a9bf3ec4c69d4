-- People who sign in. A password is kept as its Argon2id hash, in PHC form.
CREATE TABLE users (
    id BIGSERIAL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    password TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Sessions, by the digest of their token.
CREATE TABLE sessions (
    id BIGSERIAL PRIMARY KEY,
    digest BYTEA NOT NULL UNIQUE,
    user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    until BIGINT NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_until ON sessions (until);

-- One-time links, by the digest of their token; the one that makes the first user is of nobody.
CREATE TABLE links (
    digest BYTEA PRIMARY KEY,
    until BIGINT NOT NULL
);
