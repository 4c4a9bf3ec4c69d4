-- What rules tell applications by beside what lists do: filled with each report. Labels are lines, `key=value`.
ALTER TABLE applications ADD COLUMN product TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN labels TEXT NOT NULL DEFAULT '';

-- Whose password a one-time link sets; the one that makes the first user is of nobody.
ALTER TABLE links ADD COLUMN user_id BIGINT REFERENCES users (id) ON DELETE CASCADE;
