-- Chains of other brokers are documents too: the list of kinds is longer.
ALTER TABLE document DROP CONSTRAINT document_kind_check;
ALTER TABLE document ADD CONSTRAINT document_kind_check
    CHECK (kind IN ('memory', 'context', 'chain'));
