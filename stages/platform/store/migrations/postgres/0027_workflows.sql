-- Workflows are listed across all applications: they are few among all that these list.
CREATE INDEX entities_workflows ON entities (namespace, name) WHERE kind = 'Workflow';
