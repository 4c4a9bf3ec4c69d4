-- Texts are rows one behind the other, found by an index of their digests. Within the tree of digests, where they stood, a page held no
-- more than some of them and pointed to as few others: each new text rewrote several pages, and was behind as many again.
CREATE TABLE blobs_numbered (
    id INTEGER PRIMARY KEY,
    refs INTEGER NOT NULL,
    digest BLOB NOT NULL,
    size INTEGER NOT NULL,
    zstd BLOB NOT NULL
);
INSERT INTO blobs_numbered (refs, digest, size, zstd) SELECT refs, digest, size, zstd FROM blobs;
DROP TABLE blobs;
ALTER TABLE blobs_numbered RENAME TO blobs;
CREATE UNIQUE INDEX blobs_digest ON blobs (digest);
-- The states of an entity are found by `transitions_at` as well, which holds their numbers.
DROP INDEX transitions_entity;
