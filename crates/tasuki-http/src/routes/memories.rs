// SPDX-License-Identifier: Apache-2.0
//! The part of the table that is about memories, shared contexts and erasing.

use super::{Route, changes, deletes, does, puts, reads};
use crate::handlers::{contexts, handoffs, memories};
use tasuki_protocol::Code;

use crate::wire;

/// Whoever changes a memory fails in the same ways.
const CHANGE_ERRORS: &[Code] =
    &[Code::MemoryNotFound, Code::MemoryDeleted, Code::MemorySuperseded, Code::NotPermitted];

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
            Code::MemoryNotFound,
            Code::MemoryDeleted,
            Code::MemorySuperseded,
            Code::RevisionConflict,
            Code::InvalidDocument,
            Code::SecretFound,
            Code::OtherTenant,
            Code::TaskNotFound,
            Code::IdempotencyConflict,
            Code::DiskFull,
        ]),
        reads::<wire::Memories, _, _>(
            "/v1/memories",
            "memory_list",
            "List memories, what changed last first; with q, search them, the best answer first",
            memories::list,
        )
        .query::<memories::List>()
        .errors(&[Code::InvalidRequest]),
        reads::<wire::Memory, _, _>(
            "/v1/memories/{id}",
            "memory_show",
            "Show a memory at its last revision or at any other, in as much detail as wanted",
            memories::show,
        )
        .query::<memories::Show>()
        .errors(&[Code::MemoryNotFound, Code::HandoffNotFound, Code::InvalidRequest]),
        changes::<wire::EditMemory, wire::Memory, _, _>(
            "/v1/memories/{id}",
            "memory_edit",
            "Make a new revision of a memory",
            memories::edit,
        )
        .errors(&[
            Code::MemoryNotFound,
            Code::MemoryDeleted,
            Code::MemorySuperseded,
            Code::RevisionConflict,
            Code::InvalidDocument,
            Code::SecretFound,
            Code::OtherTenant,
            Code::TaskNotFound,
            Code::DiskFull,
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
            Code::MemoryNotFound,
            Code::MemoryDeleted,
            Code::MemorySuperseded,
            Code::InvalidDocument,
        ]),
        does::<wire::EraseMemory, wire::Memory, _, _>(
            "/v1/memories/{id}/erase",
            "memory_erase",
            "Remove the text of a revision, or of all of them, for good",
            memories::erase,
        )
        .errors(&[Code::MemoryNotFound, Code::BodyNotFound, Code::NotPermitted]),
        does::<wire::Delete, wire::Moved, _, _>(
            "/v1/handoffs/{id}/erase",
            "handoff_erase",
            "Remove everything that a handoff carried, for good",
            handoffs::erase,
        )
        .errors(&[
            Code::HandoffNotFound,
            Code::StillNeeded,
            Code::BodyNotFound,
            Code::NotPermitted,
        ]),
        reads::<wire::SharedContext, _, _>(
            "/v1/projects/{project}/context",
            "context_show",
            "Show the shared context of a project, with the tasks that are open",
            contexts::show,
        )
        .errors(&[Code::NotPermitted, Code::InvalidRequest]),
        puts::<wire::WriteContext, wire::SharedContext, _, _>(
            "/v1/projects/{project}/context",
            "context_write",
            "Say where a project stands and what holds for all its work",
            contexts::write,
        )
        .errors(&[
            Code::RevisionConflict,
            Code::OwnershipNotShared,
            Code::InvalidDocument,
            Code::SecretFound,
            Code::DiskFull,
        ]),
        does::<wire::NewDecision, wire::SharedContext, _, _>(
            "/v1/projects/{project}/decisions",
            "context_decide",
            "Add a decision to the log of a project",
            contexts::decide,
        )
        .creates()
        .errors(&[
            Code::DecisionSettled,
            Code::OwnershipNotShared,
            Code::InvalidDocument,
            Code::SecretFound,
            Code::DiskFull,
        ]),
    ]
}
