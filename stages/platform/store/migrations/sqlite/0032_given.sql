-- The issuer of the provider that put somebody into a team; empty where a person did.
ALTER TABLE members ADD COLUMN given_by TEXT NOT NULL DEFAULT '';

-- The key that a key was made with, without which it is none; null where somebody made it on a page.
ALTER TABLE keys ADD COLUMN made_with INTEGER REFERENCES keys (id) ON DELETE CASCADE;
CREATE INDEX keys_made_with ON keys (made_with);
