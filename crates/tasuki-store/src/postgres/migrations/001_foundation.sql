-- The log's end. Its row is locked last in every transaction that appends, so positions are dense
-- and in the order of commits: whoever sees an event sees every event before it.
CREATE TABLE log_head (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    position  bigint NOT NULL,
    hash      bytea NOT NULL,
    sealed    bigint NOT NULL,        -- the last position that a signed checkpoint covers
    at        bigint NOT NULL,        -- the time of the last event, milliseconds since 1970
    epoch     bigint NOT NULL,        -- the upper part of every new fence
    timeline  bigint NOT NULL,        -- the highest WAL timeline that was ever written on
    live      bigint NOT NULL,        -- handoffs that are not at their end
    waiting   bigint NOT NULL,        -- handoffs that can be claimed now
    keys      bigint NOT NULL         -- idempotency keys that are remembered
);
INSERT INTO log_head
SELECT true, 0, decode(repeat('00', 32), 'hex'), 0, 0, timeline, timeline, 0, 0, 0
FROM (SELECT ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int8)
AS server (timeline);

-- The journal. Rows are only ever appended; everything below it follows from it. Old partitions
-- are dropped whole.
CREATE TABLE event (
    position bigint NOT NULL,
    previous bigint,                  -- the position of the same task's event before this one
    hash     bytea NOT NULL,          -- sha256(hash of previous || record)
    at       bigint NOT NULL,
    record   text NOT NULL,           -- JSON, the exact bytes that the hash covers
    body     text,                    -- canonical JSON; its hash is in the record
    ready    text[],                  -- targets for which work became claimable with this commit
    PRIMARY KEY (position)
) PARTITION BY RANGE (position);
ALTER TABLE event ALTER COLUMN body SET STORAGE EXTERNAL;

-- Where the log begins: what lies before was dropped by retention.
CREATE TABLE log_start (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    position bigint NOT NULL,         -- the last event that was dropped
    hash     bytea NOT NULL,          -- the log's hash there
    each     bigint NOT NULL          -- how many events lie in one partition
);
INSERT INTO log_start VALUES (true, 0, decode(repeat('00', 32), 'hex'), 1048576);

-- Signed statements about the log up to a position.
CREATE TABLE checkpoint (
    position  bigint PRIMARY KEY,
    log_hash  bytea NOT NULL,
    at        bigint NOT NULL,
    key       bytea NOT NULL,
    signature bytea NOT NULL
);

CREATE TABLE task (
    id             uuid PRIMARY KEY,
    state          text NOT NULL
                   CHECK (state IN ('open', 'dead_lettered', 'completed', 'failed', 'cancelled')),
    owner          text NOT NULL,
    opened_by      text NOT NULL,
    parent_task_id uuid,
    correlation_id text,
    intent         bytea NOT NULL,
    intent_at      bigint NOT NULL,
    opened_at      bigint NOT NULL,
    ended_at       bigint,
    live           uuid,              -- the handoff that is not at its end yet
    envelope       bytea,
    envelope_hop   bigint,
    events         bigint NOT NULL,
    head           bytea NOT NULL,
    at             bigint NOT NULL    -- the last event that is in here
) WITH (fillfactor = 70);
CREATE INDEX task_parent ON task (parent_task_id) WHERE parent_task_id IS NOT NULL;

CREATE TABLE handoff (
    id           uuid PRIMARY KEY,
    task_id      uuid NOT NULL,
    state        text NOT NULL,
    ended        boolean NOT NULL,
    reviewed     boolean NOT NULL,    -- whether a dead letter was decided on
    from_agent   text NOT NULL,
    target       text NOT NULL,       -- agent:NAME or capability:NAME
    haste        smallint,            -- the rank among those that wait for the same target
    ready        bigint,
    offered      bigint NOT NULL,     -- the place in the line of its ordering key
    ordering_key text,
    declined_by  text[] NOT NULL,
    holder       text,
    request_id   text,
    due_at       bigint,              -- when something happens to it by itself
    at           bigint NOT NULL,     -- the last event that is in here
    data         text NOT NULL,       -- JSON, everything there is to know
    CHECK (ended = (state IN ('completed', 'failed', 'cancelled', 'dead_lettered'))),
    CHECK ((state = 'pending') = (ready IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX handoff_waiting ON handoff (target, haste, ready) WHERE state = 'pending';
CREATE INDEX handoff_declined ON handoff (target, haste, ready)
    WHERE state = 'pending' AND declined_by <> '{}';
CREATE INDEX handoff_due ON handoff (due_at) WHERE NOT ended;
CREATE INDEX handoff_line ON handoff (target, ordering_key, offered)
    WHERE NOT ended AND ordering_key IS NOT NULL;
CREATE INDEX handoff_request ON handoff (holder, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX handoff_dead ON handoff (id) WHERE state = 'dead_lettered';

CREATE TABLE idempotency (
    agent   text NOT NULL,
    key     text NOT NULL,
    request bytea NOT NULL,
    task    uuid NOT NULL,
    handoff uuid,
    at      bigint NOT NULL,
    PRIMARY KEY (agent, key)
);
CREATE INDEX idempotency_age ON idempotency (at);
