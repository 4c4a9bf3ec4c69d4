-- Texts stand as they did: here a table is no tree of its keys.
-- The states of an entity are found by `transitions_at` as well, which holds their numbers.
DROP INDEX transitions_entity;
