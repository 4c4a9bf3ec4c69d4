-- Applications by a range of their keys, byte for byte, as whoever compares asks for them.
CREATE INDEX applications_key ON applications (runtime_id, namespace || '/' || name);
