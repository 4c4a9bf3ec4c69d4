-- When a runtime last reported of anything, by what its reports say: kept with each, not looked for among all that it reported.
ALTER TABLE runtimes ADD COLUMN reported_at BIGINT;
UPDATE runtimes SET reported_at =
    (SELECT max(e.at) FROM applications a JOIN entities e ON e.application_id = a.id WHERE a.runtime_id = runtimes.id);
