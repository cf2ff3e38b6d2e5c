-- Memories and shared contexts. Projections of the log, written with its events.
CREATE TABLE document (
    id         TEXT PRIMARY KEY,
    tenant     TEXT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('memory', 'context')),
    scope_kind TEXT NOT NULL CHECK (scope_kind IN ('project', 'task', 'agent')),
    scope_name TEXT NOT NULL,
    pinned     INTEGER NOT NULL,
    superseded INTEGER NOT NULL,
    deleted    INTEGER NOT NULL,
    length     INTEGER,             -- how many terms are found in it; without it, it is not searched
    at         INTEGER NOT NULL,    -- the last event that is in here
    data       TEXT NOT NULL        -- JSON, everything there is to know but the text
) WITHOUT ROWID;
CREATE INDEX document_changed ON document (tenant, kind, at);
CREATE INDEX document_scope ON document (tenant, scope_kind, scope_name, at);

CREATE TABLE document_revision (
    document TEXT NOT NULL,
    revision INTEGER NOT NULL,
    at       INTEGER NOT NULL,      -- the event whose body is the text
    erased   INTEGER NOT NULL,
    data     TEXT NOT NULL,
    PRIMARY KEY (document, revision)
) WITHOUT ROWID;

CREATE TABLE document_tag (
    tenant   TEXT NOT NULL,
    tag      TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (tenant, tag, document)
) WITHOUT ROWID;
CREATE INDEX document_tag_of ON document_tag (document);

-- How often each word occurs in the last revision of each memory, and how much there is in all.
CREATE TABLE posting (
    tenant   TEXT NOT NULL,
    term     TEXT NOT NULL,
    document TEXT NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (tenant, term, document)
) WITHOUT ROWID;
CREATE INDEX posting_of ON posting (document);
CREATE TABLE document_total (
    tenant    TEXT PRIMARY KEY,
    documents INTEGER NOT NULL,
    length    INTEGER NOT NULL
) WITHOUT ROWID;

ALTER TABLE idempotency ADD COLUMN document TEXT;
