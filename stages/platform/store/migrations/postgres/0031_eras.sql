-- How often the versions of an object's cluster had gone back, as whoever reports of it says: newer than all before, whatever they are.
ALTER TABLE entities ADD COLUMN era BIGINT NOT NULL DEFAULT 0;
