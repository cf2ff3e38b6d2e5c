// SPDX-License-Identifier: Apache-2.0
//! The part of the table that is about memories, shared contexts and erasing.

use super::{Route, changes, deletes, does, puts, reads};
use crate::handlers::{contexts, handoffs, memories};
use crate::wire;

/// Whoever changes a memory fails in the same ways.
const CHANGE_ERRORS: &[&str] =
    &["memory_not_found", "memory_deleted", "memory_superseded", "not_permitted"];

pub(super) fn routes() -> Vec<Route> {
    vec![
        does::<wire::NewMemory, wire::Memory, _, _>(
            "/v1/memories",
            "memory_add",
            "Keep a memory",
            memories::add,
        )
        .creates()
        .errors(&[
            "memory_not_found",
            "memory_deleted",
            "memory_superseded",
            "revision_conflict",
            "invalid_document",
            "secret_found",
            "other_tenant",
            "task_not_found",
            "idempotency_conflict",
            "disk_full",
        ]),
        reads::<wire::Memories, _, _>(
            "/v1/memories",
            "memory_list",
            "List memories, what changed last first; with q, search them, the best answer first",
            memories::list,
        )
        .query::<memories::List>()
        .errors(&["invalid_request"]),
        reads::<wire::Memory, _, _>(
            "/v1/memories/{id}",
            "memory_show",
            "Show a memory at its last revision or at any other, in as much detail as wanted",
            memories::show,
        )
        .query::<memories::Show>()
        .errors(&["memory_not_found", "handoff_not_found", "invalid_request"]),
        changes::<wire::EditMemory, wire::Memory, _, _>(
            "/v1/memories/{id}",
            "memory_edit",
            "Make a new revision of a memory",
            memories::edit,
        )
        .errors(&[
            "memory_not_found",
            "memory_deleted",
            "memory_superseded",
            "revision_conflict",
            "invalid_document",
            "secret_found",
            "other_tenant",
            "task_not_found",
            "disk_full",
        ]),
        deletes::<wire::Delete, wire::Memory, _, _>(
            "/v1/memories/{id}",
            "memory_delete",
            "Delete a memory, which leaves a tombstone",
            memories::delete,
        )
        .errors(CHANGE_ERRORS),
        does::<wire::Approve, wire::Memory, _, _>(
            "/v1/memories/{id}/pin",
            "memory_pin",
            "Pin a memory, so that it always travels",
            memories::pin,
        )
        .errors(CHANGE_ERRORS),
        does::<wire::Approve, wire::Memory, _, _>(
            "/v1/memories/{id}/unpin",
            "memory_unpin",
            "Let a memory travel only where there is room for it",
            memories::unpin,
        )
        .errors(CHANGE_ERRORS),
        does::<wire::Supersede, wire::Memory, _, _>(
            "/v1/memories/{id}/supersede",
            "memory_supersede",
            "Say that another memory has taken the place of this one",
            memories::supersede,
        )
        .errors(&[
            "memory_not_found",
            "memory_deleted",
            "memory_superseded",
            "invalid_document",
        ]),
        does::<wire::EraseMemory, wire::Memory, _, _>(
            "/v1/memories/{id}/erase",
            "memory_erase",
            "Remove the text of a revision, or of all of them, for good",
            memories::erase,
        )
        .errors(&["memory_not_found", "body_not_found", "not_permitted"]),
        does::<wire::Delete, wire::Moved, _, _>(
            "/v1/handoffs/{id}/erase",
            "handoff_erase",
            "Remove everything that a handoff carried, for good",
            handoffs::erase,
        )
        .errors(&["handoff_not_found", "still_needed", "body_not_found", "not_permitted"]),
        reads::<wire::SharedContext, _, _>(
            "/v1/projects/{project}/context",
            "context_show",
            "Show the shared context of a project, with the tasks that are open",
            contexts::show,
        )
        .errors(&["not_permitted", "invalid_request"]),
        puts::<wire::WriteContext, wire::SharedContext, _, _>(
            "/v1/projects/{project}/context",
            "context_write",
            "Say where a project stands and what holds for all its work",
            contexts::write,
        )
        .errors(&[
            "revision_conflict",
            "ownership_not_shared",
            "invalid_document",
            "secret_found",
            "disk_full",
        ]),
        does::<wire::NewDecision, wire::SharedContext, _, _>(
            "/v1/projects/{project}/decisions",
            "context_decide",
            "Add a decision to the log of a project",
            contexts::decide,
        )
        .creates()
        .errors(&[
            "decision_settled",
            "ownership_not_shared",
            "invalid_document",
            "secret_found",
            "disk_full",
        ]),
    ]
}
