-- When a report or a digest of a runtime arrived last: that another role of it lives says nothing of what its applications are.
ALTER TABLE runtimes ADD COLUMN reporter_at BIGINT;
UPDATE runtimes SET reporter_at = seen_at;
