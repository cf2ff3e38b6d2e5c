-- What belongs together by its sender's own name is found by a list of its own.
CREATE INDEX task_correlation ON task (correlation_id, substr(owner, 1, instr(owner, '/')), state, id)
    WHERE correlation_id IS NOT NULL;
