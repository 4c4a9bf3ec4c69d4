-- The version that a runtime runs, as it said last; empty: it never did. What it said when it was registered is taken over.
ALTER TABLE runtimes ADD COLUMN version TEXT NOT NULL DEFAULT '';
UPDATE runtimes SET version = COALESCE((SELECT json_extract(g.body, '$.runtimeVersion') FROM registrations g
    WHERE g.runtime_id = runtimes.id AND json_valid(g.body)), '');
