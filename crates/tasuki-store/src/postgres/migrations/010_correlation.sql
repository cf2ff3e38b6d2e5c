-- What belongs together by its sender's own name is found by a list of its own.
CREATE INDEX task_correlation ON task (correlation_id, left(owner, strpos(owner, '/')), state, id)
    WHERE correlation_id IS NOT NULL;
