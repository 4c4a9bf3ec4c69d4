-- Which commits changed an application in a sync, by when that began, as JSON: it may come before anything else is told of
-- the sync, and of an application that nobody has reported. `known` says by whom it is told: see `change.rs`.
CREATE TABLE changes (
    runtime_id BIGINT NOT NULL REFERENCES runtimes (id),
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    known BIGINT NOT NULL,
    sources TEXT NOT NULL,
    PRIMARY KEY (runtime_id, namespace, name, started_at)
);
CREATE INDEX changes_started ON changes (started_at);
