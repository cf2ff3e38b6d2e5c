-- Who is known: agents, tokens and tenants. A projection of the log, written with its events.
CREATE TABLE registry (
    kind text NOT NULL CHECK (kind IN ('agent', 'token', 'tenant')),
    name text NOT NULL,
    at   bigint NOT NULL,             -- the position of the last change
    data text NOT NULL,               -- JSON
    body text,                        -- an agent's manifest
    PRIMARY KEY (kind, name)
);
CREATE INDEX registry_at ON registry (at);

-- Names of other tenants than the default one begin with the tenant and a slash.
CREATE INDEX handoff_tenant ON handoff (split_part(from_agent, '/', 1), id)
    WHERE strpos(from_agent, '/') > 0;
CREATE INDEX task_tenant ON task (split_part(owner, '/', 1), id) WHERE strpos(owner, '/') > 0;

-- Nonces of signed requests, for as long as their signatures count.
CREATE TABLE nonce (
    id      uuid PRIMARY KEY,         -- from the hash of key and nonce
    expires bigint NOT NULL
);
CREATE INDEX nonce_expires ON nonce (expires);

-- When somebody who takes work for a target was last heard of. Worth nothing after a crash.
CREATE UNLOGGED TABLE presence (
    target text PRIMARY KEY,          -- agent:NAME or capability:NAME
    heard  bigint NOT NULL
);

-- What follows from the log up to a position and is costly to make anew.
CREATE TABLE kept (
    name text PRIMARY KEY,
    at   bigint NOT NULL,
    data text NOT NULL
);

-- What each tenant uses: handoffs that are not at their end, and bytes of bodies. Until now there
-- was one tenant.
CREATE TABLE usage (
    tenant text PRIMARY KEY,
    live   bigint NOT NULL,
    bytes  bigint NOT NULL
);
INSERT INTO usage SELECT 'default', (SELECT live FROM log_head),
    (SELECT coalesce(sum(octet_length(body)), 0) FROM event);
