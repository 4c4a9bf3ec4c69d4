-- What is told of runtimes beside their reports. First what of their requests was not taken, counted by why; the number 0 is for
-- requests of which nobody knows whose they are.
CREATE TABLE refusals (
    runtime_id BIGINT NOT NULL,
    reason TEXT NOT NULL,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (runtime_id, reason)
);
-- Then which role of theirs was heard of last when, and in which version.
CREATE TABLE roles (
    runtime_id BIGINT NOT NULL REFERENCES runtimes (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    version TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (runtime_id, role)
);
