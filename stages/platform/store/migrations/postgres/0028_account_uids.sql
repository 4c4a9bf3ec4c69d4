-- Which account somebody has, told outside beside its name: a name may be somebody else's once its account is taken away, and what is
-- kept elsewhere for the one is not for the other. Of 32 random digits, and never another's. A platform of the version before, which
-- gives none, has one made for each account that it adds.
ALTER TABLE users ADD COLUMN uid TEXT NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', '');
CREATE UNIQUE INDEX users_uid ON users (uid);
