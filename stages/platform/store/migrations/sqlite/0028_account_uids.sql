-- Which account somebody has, told outside beside its name: a name may be somebody else's once its account is taken away, and what is
-- kept elsewhere for the one is not for the other. Of 32 random digits, and never another's.
ALTER TABLE users ADD COLUMN uid TEXT NOT NULL DEFAULT '';
UPDATE users SET uid = lower(hex(randomblob(16)));
CREATE UNIQUE INDEX users_uid ON users (uid);
