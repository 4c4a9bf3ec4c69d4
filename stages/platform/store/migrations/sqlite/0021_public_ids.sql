-- What a runtime is told by where its name may not stand, as in the host of its tunnel. Every name of before was of the form that
-- such an id has, and is its own. No two runtimes have one; a platform of the version before, which fills none in, is in nobody's way.
ALTER TABLE runtimes ADD COLUMN public_id TEXT NOT NULL DEFAULT '';
UPDATE runtimes SET public_id = name;
CREATE UNIQUE INDEX runtimes_public_id ON runtimes (public_id) WHERE public_id <> '';
