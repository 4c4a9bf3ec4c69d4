-- The issuer of the provider by whose group somebody is an admin; empty where a person made them one.
ALTER TABLE users ADD COLUMN admin_by TEXT NOT NULL DEFAULT '';
