-- The project that a task belongs to.
ALTER TABLE task ADD COLUMN project text;
CREATE INDEX task_project ON task (project, id) WHERE project IS NOT NULL;
