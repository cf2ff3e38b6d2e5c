-- What is under way, for the sums over it.
CREATE INDEX task_live ON task (id) WHERE live IS NOT NULL;
