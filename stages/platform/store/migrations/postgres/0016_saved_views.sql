-- Filters of a list that somebody keeps under a name of their own, each as the query of its address.
CREATE TABLE saved_views (
    user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    query TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, name)
);
