-- Breakers, channels and reservations stand with agents, tokens and tenants.
CREATE TABLE registry_of_all (
    kind TEXT NOT NULL
         CHECK (kind IN ('agent', 'token', 'tenant', 'breaker', 'channel', 'reservation')),
    name TEXT NOT NULL,
    at   INTEGER NOT NULL,          -- the position of the last change
    data TEXT NOT NULL,             -- JSON
    body TEXT,                      -- an agent's manifest
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
INSERT INTO registry_of_all SELECT * FROM registry;
DROP TABLE registry;
ALTER TABLE registry_of_all RENAME TO registry;

ALTER TABLE task ADD COLUMN channel TEXT;   -- on which it was told to many
ALTER TABLE task ADD COLUMN more TEXT;      -- JSON: who decides about it, what taints it
CREATE INDEX task_channel ON task (channel, intent_at) WHERE channel IS NOT NULL;
