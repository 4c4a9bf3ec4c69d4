-- Since when an entity is in its state, and whether that is an end: kept with the state, so that a search of all resources puts them
-- in their order without reading the transition of each.
ALTER TABLE entities ADD COLUMN since BIGINT NOT NULL DEFAULT 0;
ALTER TABLE entities ADD COLUMN gone BIGINT NOT NULL DEFAULT 0;
UPDATE entities SET since = t.at, gone = t.deleted FROM transitions t WHERE t.id = entities.current;
