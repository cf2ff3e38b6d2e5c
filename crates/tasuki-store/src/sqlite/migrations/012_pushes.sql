-- Push configs stand with what else is known.
CREATE TABLE registry_with_pushes (
    kind TEXT NOT NULL
         CHECK (kind IN ('agent', 'token', 'tenant', 'breaker', 'channel', 'reservation', 'pause', 'pipeline',
                         'alert', 'silence', 'push')),
    name TEXT NOT NULL,
    at   INTEGER NOT NULL,          -- the position of the last change
    data TEXT NOT NULL,             -- JSON
    body TEXT,                      -- an agent's manifest
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
INSERT INTO registry_with_pushes SELECT kind, name, at, data, body FROM registry;
DROP TABLE registry;
ALTER TABLE registry_with_pushes RENAME TO registry;
