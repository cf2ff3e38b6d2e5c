-- Who is known: agents, tokens and tenants. A projection of the log, written with its events.
CREATE TABLE registry (
    kind TEXT NOT NULL CHECK (kind IN ('agent', 'token', 'tenant')),
    name TEXT NOT NULL,
    at   INTEGER NOT NULL,          -- the position of the last change
    data TEXT NOT NULL,             -- JSON
    body TEXT,                      -- an agent's manifest
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

-- Names of other tenants than the default one begin with the tenant and a slash.
CREATE INDEX handoff_tenant ON handoff (substr(from_agent, 1, instr(from_agent, '/')), id)
    WHERE instr(from_agent, '/') > 0;
CREATE INDEX task_tenant ON task (substr(owner, 1, instr(owner, '/')), id)
    WHERE instr(owner, '/') > 0;

-- What follows from the log up to a position and is costly to make anew.
CREATE TABLE kept (
    name TEXT PRIMARY KEY,
    at   INTEGER NOT NULL,
    data TEXT NOT NULL
) WITHOUT ROWID;

-- How many bytes of bodies each tenant has stored. Until now there was one tenant.
CREATE TABLE usage (
    tenant TEXT PRIMARY KEY,
    bytes  INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO usage SELECT 'default', coalesce(sum(length(CAST(body AS BLOB))), 0) FROM event;
