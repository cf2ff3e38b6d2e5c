-- Push configs stand with what else is known.
ALTER TABLE registry DROP CONSTRAINT registry_kind_check;
ALTER TABLE registry ADD CONSTRAINT registry_kind_check
    CHECK (kind IN ('agent', 'token', 'tenant', 'breaker', 'channel', 'reservation', 'pause', 'pipeline',
                    'alert', 'silence', 'push'));
