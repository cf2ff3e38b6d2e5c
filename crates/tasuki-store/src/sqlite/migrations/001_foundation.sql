-- The journal. Rows are only ever appended; everything below it follows from it.
CREATE TABLE event (
    position INTEGER PRIMARY KEY,
    previous INTEGER,               -- the position of the same task's event before this one
    hash     BLOB NOT NULL,         -- sha256(hash of previous || record)
    record   TEXT NOT NULL,         -- JSON, the exact bytes that the hash covers
    body     TEXT                   -- canonical JSON; its hash is in the record
);

-- Signed statements about the log up to a position.
CREATE TABLE checkpoint (
    position  INTEGER PRIMARY KEY,
    log_hash  BLOB NOT NULL,
    at        INTEGER NOT NULL,     -- milliseconds since 1970
    key       BLOB NOT NULL,
    signature BLOB NOT NULL
);

-- Facts about the file itself.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value NOT NULL
) WITHOUT ROWID;
INSERT INTO meta VALUES ('epoch', 1), ('projected', 0);

-- Projections: what people query. They may be dropped and rebuilt from the journal.
CREATE TABLE task (
    id             TEXT PRIMARY KEY,
    state          TEXT NOT NULL
                   CHECK (state IN ('open', 'dead_lettered', 'completed', 'failed', 'cancelled')),
    owner          TEXT NOT NULL,
    opened_by      TEXT NOT NULL,
    parent_task_id TEXT,
    correlation_id TEXT,
    intent         BLOB NOT NULL,
    intent_at      INTEGER NOT NULL,
    opened_at      INTEGER NOT NULL,
    ended_at       INTEGER,
    live           TEXT,            -- the handoff that is not at its end yet
    envelope       BLOB,
    envelope_hop   INTEGER,
    events         INTEGER NOT NULL,
    head           BLOB NOT NULL,
    at             INTEGER NOT NULL -- the last event that is in here
) WITHOUT ROWID;
CREATE INDEX task_parent ON task (parent_task_id) WHERE parent_task_id IS NOT NULL;

CREATE TABLE handoff (
    id         TEXT PRIMARY KEY,
    task_id    TEXT NOT NULL,
    state      TEXT NOT NULL,
    ended      INTEGER NOT NULL,
    reviewed   INTEGER NOT NULL,    -- whether a dead letter was decided on
    from_agent TEXT NOT NULL,
    to_kind    TEXT NOT NULL CHECK (to_kind IN ('agent', 'capability')),
    to_name    TEXT NOT NULL,
    offered_at INTEGER NOT NULL,
    data       TEXT NOT NULL,       -- JSON, everything there is to know
    CHECK (ended = (state IN ('completed', 'failed', 'cancelled', 'dead_lettered')))
) WITHOUT ROWID;
CREATE INDEX handoff_live ON handoff (id) WHERE ended = 0;
CREATE INDEX handoff_dead ON handoff (id) WHERE state = 'dead_lettered';

CREATE TABLE idempotency (
    agent   TEXT NOT NULL,
    key     TEXT NOT NULL,
    request BLOB NOT NULL,
    task    TEXT NOT NULL,
    handoff TEXT,
    at      INTEGER NOT NULL,
    PRIMARY KEY (agent, key)
) WITHOUT ROWID;
