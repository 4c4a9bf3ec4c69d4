-- Of a ReplicaSet how many of its pods are ready, how many there are to be, and of which revision they are: what a state says in words,
-- in numbers.
ALTER TABLE transitions ADD COLUMN pods_ready BIGINT;
ALTER TABLE transitions ADD COLUMN pods_wanted BIGINT;
ALTER TABLE transitions ADD COLUMN pods_revision BIGINT;
