-- When somebody last came in by an identity. When those did that are there already nobody kept: what their provider gave them counts as
-- if they had come in now.
ALTER TABLE identities ADD COLUMN signed_in_at BIGINT NOT NULL DEFAULT 0;
UPDATE identities SET signed_in_at = CAST(EXTRACT(EPOCH FROM now()) AS BIGINT) * 1000;
