-- What owns an entity, as `group/kind/name` of something in its namespace or of the whole cluster; empty: nothing does, or it was not
-- reported since. It is read of the object when that is kept, so that a tree reads no manifests.
ALTER TABLE entities ADD COLUMN owner TEXT NOT NULL DEFAULT '';
