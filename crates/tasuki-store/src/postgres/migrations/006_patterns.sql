-- Breakers, channels and reservations stand with agents, tokens and tenants.
ALTER TABLE registry DROP CONSTRAINT registry_kind_check;
ALTER TABLE registry ADD CONSTRAINT registry_kind_check
    CHECK (kind IN ('agent', 'token', 'tenant', 'breaker', 'channel', 'reservation'));

ALTER TABLE task ADD COLUMN channel text;   -- on which it was told to many
ALTER TABLE task ADD COLUMN more text;      -- JSON: who decides about it, what taints it
CREATE INDEX task_channel ON task (channel, intent_at) WHERE channel IS NOT NULL;
