-- Chains of other brokers are documents too: the list of kinds is longer.
CREATE TABLE document_new (
    id         TEXT PRIMARY KEY,
    tenant     TEXT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('memory', 'context', 'chain')),
    scope_kind TEXT NOT NULL CHECK (scope_kind IN ('project', 'task', 'agent')),
    scope_name TEXT NOT NULL,
    pinned     INTEGER NOT NULL,
    superseded INTEGER NOT NULL,
    deleted    INTEGER NOT NULL,
    length     INTEGER,             -- how many terms are found in it; without it, it is not searched
    at         INTEGER NOT NULL,    -- the last event that is in here
    data       TEXT NOT NULL        -- JSON, everything there is to know but the text
) WITHOUT ROWID;
INSERT INTO document_new SELECT * FROM document;
DROP TABLE document;
ALTER TABLE document_new RENAME TO document;
CREATE INDEX document_changed ON document (tenant, kind, at);
CREATE INDEX document_scope ON document (tenant, scope_kind, scope_name, at);
