-- By it resources of one name are found among those of all applications. Applications themselves stand under empty names: with all of
-- them in it, and a statement that finds an entity by its own key, a server of Postgres took this index for as good as that key, and
-- read every application to find one. What asks by it says that the name is not empty.
DROP INDEX entities_object;
CREATE INDEX entities_object ON entities (name, kind, namespace) WHERE name <> '';
