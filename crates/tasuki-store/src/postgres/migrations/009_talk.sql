-- Answers are kept for a while for the agents that asked.
CREATE INDEX handoff_kept ON handoff (holder) WHERE state = 'answered';
