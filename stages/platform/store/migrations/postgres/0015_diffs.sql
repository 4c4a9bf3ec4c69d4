-- What the commits of a sync changed in files, as JSON, beside the commits themselves: it is read of one sync alone, and lists do not
-- carry it. Empty where nothing is told of it.
ALTER TABLE changes ADD COLUMN diffs TEXT NOT NULL DEFAULT '';
