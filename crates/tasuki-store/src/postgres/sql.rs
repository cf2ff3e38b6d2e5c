// SPDX-License-Identifier: Apache-2.0
//! The statements of locking and reading. One lock stands for a task and all its handoffs: the
//! task's row. Whoever looks for work skips what is locked.

use tokio_postgres::types::Type;

use super::db::Often;

/// Every task that a batch names, by itself, by a handoff, or by the request id of a claim.
pub(super) const LOCK_NAMED: Often = Often {
    sql: "
    SELECT id FROM task WHERE id IN (
        SELECT unnest($1::uuid[])
        UNION SELECT task_id FROM handoff WHERE id = ANY ($2)
        UNION SELECT h.task_id FROM unnest($3::text[], $4::text[]) AS g (agent, request)
            JOIN handoff h ON h.holder = g.agent AND h.request_id = g.request
                AND h.request_id IS NOT NULL)
    ORDER BY id FOR NO KEY UPDATE",
    types: &[Type::UUID_ARRAY, Type::UUID_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY],
};

/// The same, and every task that somebody holds: one of these, or, without any, anybody.
pub(super) const LOCK_HELD: Often = Often {
    sql: "
    SELECT id FROM task WHERE id IN (
        SELECT unnest($1::uuid[])
        UNION SELECT task_id FROM handoff WHERE id = ANY ($2)
        UNION SELECT h.task_id FROM unnest($3::text[], $4::text[]) AS g (agent, request)
            JOIN handoff h ON h.holder = g.agent AND h.request_id = g.request
                AND h.request_id IS NOT NULL
        UNION SELECT task_id FROM handoff
            WHERE NOT ended AND state IN ('claimed', 'in_progress', 'input_required', 'answered')
            AND (cardinality($5::text[]) = 0 OR holder = ANY ($5)))
    ORDER BY id FOR NO KEY UPDATE",
    types: &[
        Type::UUID_ARRAY,
        Type::UUID_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
    ],
};

/// Waiting, declined by nobody, and first in its line.
macro_rules! claimable {
    ($queue:literal, $order:literal) => {
        concat!(
            "
        SELECT h.task_id, h.id, h.haste, h.turn FROM handoff h JOIN task t ON t.id = h.task_id
        WHERE h.state = 'pending' AND h.target = w.target AND h.declined_by = '{}'
            AND ",
            $queue,
            "
            AND (h.ordering_key IS NULL OR NOT EXISTS (
                SELECT 1 FROM handoff e WHERE NOT e.ended AND e.ordering_key IS NOT NULL
                    AND e.target = h.target AND e.ordering_key = h.ordering_key
                    AND e.offered < h.offered))
        ORDER BY ",
            $order
        )
    };
}

macro_rules! hot {
    ($select:literal, $end:literal) => {
        concat!(
            $select,
            " FROM unnest($1::text[], $2::int2[], $3::int8[], $4::int8[])
                AS w (target, haste, mark, wanted), LATERAL (",
            claimable!("h.haste = w.haste AND h.turn >= w.mark", "h.turn, h.ready"),
            $end
        )
    };
}

macro_rules! cold {
    ($select:literal, $end:literal) => {
        concat!(
            $select,
            " FROM unnest($1::text[], $2::int2[], $3::int2[], $4::int8[])
                AS w (target, first, last, wanted), LATERAL (",
            claimable!("h.haste BETWEEN w.first AND w.last", "h.haste, h.turn, h.ready"),
            $end
        )
    };
}

/// What waits in one queue (a target and a priority), from the queue's low-water mark on.
pub(super) const CLAIM: Often = Often {
    sql: hot!(
        "SELECT c.task_id, c.id, w.target, c.haste",
        " LIMIT w.wanted FOR NO KEY UPDATE OF t SKIP LOCKED) c"
    ),
    types: &[Type::TEXT_ARRAY, Type::INT2_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY],
};

/// The same for a range of priorities from which nothing was taken yet, so that there is no mark.
pub(super) const CLAIM_COLD: Often = Often {
    sql: cold!(
        "SELECT c.task_id, c.id, w.target, c.haste",
        " LIMIT w.wanted FOR NO KEY UPDATE OF t SKIP LOCKED) c"
    ),
    types: &[Type::TEXT_ARRAY, Type::INT2_ARRAY, Type::INT2_ARRAY, Type::INT8_ARRAY],
};

/// Whether there is more than what a claim found, because somebody else has it locked.
pub(super) const MORE: Often = Often {
    sql: hot!("SELECT 1", " LIMIT w.wanted) c WHERE c.id <> ALL ($5) LIMIT 1"),
    types: &[
        Type::TEXT_ARRAY,
        Type::INT2_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::UUID_ARRAY,
    ],
};

pub(super) const MORE_COLD: Often = Often {
    sql: cold!("SELECT 1", " LIMIT w.wanted) c WHERE c.id <> ALL ($5) LIMIT 1"),
    types: &[
        Type::TEXT_ARRAY,
        Type::INT2_ARRAY,
        Type::INT2_ARRAY,
        Type::INT8_ARRAY,
        Type::UUID_ARRAY,
    ],
};

pub(super) const MORE_KEPT: Often = Often {
    sql: "SELECT 1 FROM handoff WHERE state = 'answered' AND holder = ANY ($1)
        AND task_id <> ALL ($2) LIMIT 1",
    types: &[Type::TEXT_ARRAY, Type::UUID_ARRAY],
};

/// What waits and was declined by some. There is little of it.
pub(super) const CLAIM_DECLINED: Often = Often {
    sql: "
    SELECT h.task_id, h.id FROM handoff h JOIN task t ON t.id = h.task_id
    WHERE h.state = 'pending' AND h.declined_by <> '{}' AND h.target = ANY ($1)
        AND NOT h.declined_by @> $2::text[]
        AND (h.ordering_key IS NULL OR NOT EXISTS (
            SELECT 1 FROM handoff e WHERE NOT e.ended AND e.ordering_key IS NOT NULL
                AND e.target = h.target AND e.ordering_key = h.ordering_key
                AND e.offered < h.offered))
    ORDER BY h.haste, h.turn, h.ready LIMIT 1000 FOR NO KEY UPDATE OF t SKIP LOCKED",
    types: &[Type::TEXT_ARRAY, Type::TEXT_ARRAY],
};

/// Answers that are kept for the agents that asked.
pub(super) const CLAIM_KEPT: Often = Often {
    sql: "
    SELECT h.task_id FROM handoff h JOIN task t ON t.id = h.task_id
    WHERE h.state = 'answered' AND h.holder = ANY ($1)
    ORDER BY h.at LIMIT 1000 FOR NO KEY UPDATE OF t SKIP LOCKED",
    types: &[Type::TEXT_ARRAY],
};

pub(super) const LOCK_DUE: Often = Often {
    sql: "
    SELECT h.task_id FROM handoff h JOIN task t ON t.id = h.task_id
    WHERE NOT h.ended AND h.due_at <= $1 AND h.due_at >= $2
    ORDER BY h.due_at LIMIT $3 FOR NO KEY UPDATE OF t SKIP LOCKED",
    types: &[Type::INT8, Type::INT8, Type::INT8],
};

pub(super) const READ_TASKS: Often = Often {
    sql: "
    SELECT id, state, owner, opened_by, parent_task_id, correlation_id, intent, intent_at,
        opened_at, ended_at, live, envelope, envelope_hop, events, head, at, project, channel, more
    FROM task WHERE id = ANY ($1)",
    types: &[Type::UUID_ARRAY],
};

/// Handoffs that are named, and those by which the locked tasks go on.
pub(super) const READ_HANDOFFS: Often = Often {
    sql: "
    SELECT data FROM handoff WHERE id IN (
        SELECT unnest($1::uuid[]) UNION SELECT live FROM task WHERE id = ANY ($2))",
    types: &[Type::UUID_ARRAY, Type::UUID_ARRAY],
};

/// What decides about the next turns of senders in queues, from the queues' low-water marks on. Sent
/// behind the lock of the log's end, so that what it sees is final.
pub(super) const TURNS: Often = Often {
    sql: concat!(
        "
    SELECT w.target, w.haste, w.from_agent, (
        SELECT c.turn FROM (",
        claimable!("h.haste = w.haste AND h.turn >= w.mark", "h.turn, h.ready"),
        " LIMIT 1) c), (
        SELECT h.turn FROM handoff h WHERE h.state = 'pending' AND h.target = w.target
            AND h.haste = w.haste AND h.from_agent = w.from_agent AND h.turn >= w.mark
        ORDER BY h.turn DESC LIMIT 1)
    FROM unnest($1::text[], $2::int2[], $3::text[], $4::int8[])
        AS w (target, haste, from_agent, mark)"
    ),
    types: &[Type::TEXT_ARRAY, Type::INT2_ARRAY, Type::TEXT_ARRAY, Type::INT8_ARRAY],
};

/// The log's end, and the timeline of the server.
pub(super) const TAKE_HEAD: Often = Often {
    sql: "
    SELECT position, hash, sealed, at, epoch, timeline, live, waiting, keys,
        ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int8, sums
    FROM log_head WHERE one FOR UPDATE",
    types: &[],
};

pub(super) const PUT_HEAD: Often = Often {
    sql: "
    UPDATE log_head SET position = $1, hash = $2, at = $3, epoch = $4, live = $5, waiting = $6,
        sealed = $7, sums = coalesce($8, sums),
        timeline = ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int8
    WHERE one RETURNING keys",
    types: &[
        Type::INT8,
        Type::BYTEA,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::BYTEA,
    ],
};

/// What is due next, from a mark on below which nothing is.
pub(super) const NEXT_DUE: Often = Often {
    sql: "SELECT due_at FROM handoff WHERE NOT ended AND due_at >= $1 ORDER BY due_at LIMIT 1",
    types: &[Type::INT8],
};

pub(super) const READ_NEWS: Often = Often {
    sql: "
    SELECT position, previous, hash, record, ready FROM event
    WHERE position > $1 ORDER BY position LIMIT $2",
    types: &[Type::INT8, Type::INT8],
};

pub(super) const READ_BODIES: Often = Often {
    sql: "SELECT position, body, record FROM event WHERE position = ANY ($1)",
    types: &[Type::INT8_ARRAY],
};

/// Tasks and handoffs that are named, the tasks of those handoffs, and the handoffs by which those
/// tasks go on: all as of one moment. Rows with a handoff have nothing else.
pub(super) const LOOK: Often = Often {
    sql: "
    WITH seen AS (
        SELECT id, task_id, data FROM handoff WHERE id IN (
            SELECT unnest($1::uuid[]) UNION SELECT live FROM task WHERE id = ANY ($2)))
    SELECT id, state, owner, opened_by, parent_task_id, correlation_id, intent, intent_at,
        opened_at, ended_at, live, envelope, envelope_hop, events, head, at, project, channel, more,
        NULL AS data
    FROM task WHERE id IN (SELECT unnest($2::uuid[]) UNION SELECT task_id FROM seen)
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        NULL, NULL, NULL, NULL, data
    FROM seen",
    types: &[Type::UUID_ARRAY, Type::UUID_ARRAY],
};
