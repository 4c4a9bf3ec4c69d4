-- In which of the lists of its clusters, by number, a runtime named a cluster last: one that it names no more is forgotten.
ALTER TABLE clusters ADD COLUMN list BIGINT NOT NULL DEFAULT 0;
