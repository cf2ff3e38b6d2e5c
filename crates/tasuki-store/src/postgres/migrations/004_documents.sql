-- Memories and shared contexts. Projections of the log, written with its events.
CREATE TABLE document (
    id         text COLLATE "C" PRIMARY KEY,
    tenant     text NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('memory', 'context')),
    scope_kind text NOT NULL CHECK (scope_kind IN ('project', 'task', 'agent')),
    scope_name text NOT NULL,
    pinned     boolean NOT NULL,
    superseded boolean NOT NULL,
    deleted    boolean NOT NULL,
    length     bigint,                -- how many terms are found in it; without it, it is not searched
    at         bigint NOT NULL,       -- the last event that is in here
    data       text NOT NULL          -- JSON, everything there is to know but the text
);
CREATE INDEX document_changed ON document (tenant, kind, at);
CREATE INDEX document_scope ON document (tenant, scope_kind, scope_name, at);

-- The text of each revision is kept here too: it must outlive the history that is dropped.
CREATE TABLE document_revision (
    document text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    at       bigint NOT NULL,         -- the event that it came with
    erased   boolean NOT NULL,
    data     text NOT NULL,
    body     text,
    PRIMARY KEY (document, revision)
);
CREATE INDEX document_revision_at ON document_revision (at);

CREATE TABLE document_tag (
    tenant   text NOT NULL,
    tag      text NOT NULL,
    document text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, tag, document)
);
CREATE INDEX document_tag_of ON document_tag (document);

-- How often each word occurs in the last revision of each memory, and how much there is in all.
CREATE TABLE posting (
    tenant   text NOT NULL,
    term     text NOT NULL,
    document text COLLATE "C" NOT NULL,
    count    bigint NOT NULL,
    PRIMARY KEY (tenant, term, document)
);
CREATE INDEX posting_of ON posting (document);
CREATE TABLE document_total (
    tenant    text PRIMARY KEY,
    documents bigint NOT NULL,
    length    bigint NOT NULL
);

ALTER TABLE idempotency ADD COLUMN document text;
