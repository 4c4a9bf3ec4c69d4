-- What is told of the commits of a sync takes a number of the sequence that transitions are numbered by, when it is told first and
-- when more is known: an open page hears of it as it hears of them. What was told before has none.
ALTER TABLE changes ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
CREATE INDEX changes_place ON changes (place);
CREATE TRIGGER changes_told AFTER INSERT ON changes BEGIN
    UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'transitions';
    UPDATE changes SET place = COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'transitions'), 0)
        WHERE runtime_id = NEW.runtime_id AND namespace = NEW.namespace AND name = NEW.name AND started_at = NEW.started_at;
END;
CREATE TRIGGER changes_known AFTER UPDATE OF sources ON changes BEGIN
    UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'transitions';
    UPDATE changes SET place = COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'transitions'), 0)
        WHERE runtime_id = NEW.runtime_id AND namespace = NEW.namespace AND name = NEW.name AND started_at = NEW.started_at;
END;
