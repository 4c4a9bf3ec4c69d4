-- Since when an entity is in its state, and whether that is an end: kept with the state, so that a search of all resources puts them
-- in their order without reading the transition of each.
ALTER TABLE entities ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entities ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;
UPDATE entities SET since = t.at, gone = t.deleted FROM transitions t WHERE t.id = entities.current;
-- All that such a search reads of an entity but of the few that it shows. Postgres has none: there each change of a state would have
-- to change every index of the row.
CREATE INDEX entities_found ON entities (application_id, kind, name, since, gone);
