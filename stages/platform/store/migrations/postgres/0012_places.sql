-- What is told of the commits of a sync takes a number of the sequence that transitions are numbered by, when it is told first and
-- when more is known (the statement says so): an open page hears of it as it hears of them. What was told before has none.
ALTER TABLE changes ADD COLUMN place BIGINT NOT NULL DEFAULT 0;
ALTER TABLE changes ALTER COLUMN place SET DEFAULT nextval('transitions_id_seq');
CREATE INDEX changes_place ON changes (place);
