-- What is listed is found by a list of its own: what is asked for, the word that it is filed
-- under, and the id. A dead letter that was decided on is filed apart.
DROP INDEX handoff_dead;
DROP INDEX handoff_tenant;
CREATE INDEX handoff_live ON handoff ((CASE WHEN reviewed THEN 'reviewed' ELSE state END), id)
    WHERE NOT ended;
CREATE INDEX handoff_tenant ON handoff (left(from_agent, strpos(from_agent, '/')),
    (CASE WHEN reviewed THEN 'reviewed' ELSE state END), id);
CREATE INDEX handoff_from ON handoff (from_agent,
    (CASE WHEN reviewed THEN 'reviewed' ELSE state END), id);
CREATE INDEX handoff_to ON handoff (target,
    (CASE WHEN reviewed THEN 'reviewed' ELSE state END), id);

DROP INDEX task_parent;
DROP INDEX task_tenant;
DROP INDEX task_project;
CREATE INDEX task_parent ON task (parent_task_id, state, id) WHERE parent_task_id IS NOT NULL;
CREATE INDEX task_owner ON task (owner, state, id);
CREATE INDEX task_project ON task (project, left(owner, strpos(owner, '/')), state, id)
    WHERE project IS NOT NULL;
CREATE INDEX task_tenant ON task (left(owner, strpos(owner, '/')), state, id);
