-- Alerts and silences stand with what else is known.
CREATE TABLE registry_with_alerts (
    kind TEXT NOT NULL
         CHECK (kind IN ('agent', 'token', 'tenant', 'breaker', 'channel', 'reservation', 'pause', 'pipeline',
                         'alert', 'silence')),
    name TEXT NOT NULL,
    at   INTEGER NOT NULL,          -- the position of the last change
    data TEXT NOT NULL,             -- JSON
    body TEXT,                      -- an agent's manifest
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
INSERT INTO registry_with_alerts SELECT kind, name, at, data, body FROM registry;
DROP TABLE registry;
ALTER TABLE registry_with_alerts RENAME TO registry;
