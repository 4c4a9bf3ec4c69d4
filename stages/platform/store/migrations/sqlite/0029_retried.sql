-- An operation that failed and is tried again was taken for one that has ended, and its end was never told.
UPDATE deployments SET finished_at = NULL WHERE phase NOT IN ('Succeeded', 'Failed', 'Error');
