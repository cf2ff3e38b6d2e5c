-- Between senders to one target, each has its turn; see `turn` in the core.
ALTER TABLE handoff ADD COLUMN turn bigint;
UPDATE handoff SET turn = ready WHERE state = 'pending';
ALTER TABLE handoff ADD CHECK ((state = 'pending') = (turn IS NOT NULL));
DROP INDEX handoff_waiting;
CREATE INDEX handoff_waiting ON handoff (target, haste, turn, ready) WHERE state = 'pending';
CREATE INDEX handoff_sender ON handoff (target, haste, from_agent, turn) WHERE state = 'pending';
DROP INDEX handoff_declined;
CREATE INDEX handoff_declined ON handoff (target, haste, turn, ready)
    WHERE state = 'pending' AND declined_by <> '{}';
