// SPDX-License-Identifier: Apache-2.0
//! Memories.

use tasuki_core::DocumentId;
use tasuki_core::document::Scope;
use tasuki_core::registry::rules::Permission;
use tasuki_core::secrets::Finding;
use tasuki_protocol::{self as wire, Code, Problem};

use super::Right::{Has, Known};
use super::{Done, Facts, Operation};
use super::{answer, answer_once, asked, brings, manages, reads, shown};
use crate::desk::Desk;
use crate::memories::{MEMORIES_MAX, MemorySearch};

/// Whoever changes a memory fails in the same ways.
const CHANGE_ERRORS: &[Code] =
    &[Code::MemoryNotFound, Code::MemoryDeleted, Code::MemorySuperseded, Code::NotPermitted];

pub struct Add;

impl Operation for Add {
    const FACTS: Facts = brings("memory_add", Has(Permission::WriteMemory), "Keep a memory")
        .errors(&[&[
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
        ]]);
    type On = ();
    type In = wire::NewMemory;
    type Out = wire::Memory;

    async fn run(desk: &Desk, (): (), asked: wire::NewMemory) -> Done<wire::Memory> {
        let written = desk.remember(asked).await?;
        let memory = changed(desk, &written.document.id, &written.warnings).await?;
        answer_once(memory, written.repeated)
    }
}

pub struct List;

impl Operation for List {
    const FACTS: Facts = reads(
        "memory_list",
        Known,
        "List memories, what changed last first; with q, search them, the best answer first",
    );
    type On = ();
    type In = wire::ListMemories;
    type Out = wire::Memories;

    async fn run(desk: &Desk, (): (), asked: wire::ListMemories) -> Done<wire::Memories> {
        let detail = asked.detail.unwrap_or(wire::Detail::Stub);
        let (found, next) = desk.find_memories(search(asked)?).await?;
        let memories = found.iter().map(|memory| shown::memory(memory, detail)).collect();
        let epochs = desk.epochs().await?;
        let next = next.map(|next| epochs.cursor(next));
        answer(wire::Memories { memories, next })
    }
}

fn search(asked: wire::ListMemories) -> Result<MemorySearch, Problem> {
    let scopes = [
        asked.project.map(Scope::Project),
        asked.task.map(Scope::Task),
        asked.agent.map(Scope::Agent),
    ];
    let mut scopes = scopes.into_iter().flatten();
    let scope = scopes.next();
    if scopes.next().is_some() {
        return Err(Problem::invalid("query", "name one of project, task and agent"));
    }
    Ok(MemorySearch {
        question: asked.q,
        scope,
        tag: asked.tag,
        pinned: asked.pinned,
        superseded: asked.superseded,
        deleted: asked.deleted,
        before: asked.before.map(|before| before.position),
        max: asked.limit.unwrap_or(MEMORIES_MAX),
        bytes_max: None,
    })
}

pub struct Show;

impl Operation for Show {
    const FACTS: Facts = reads(
        "memory_show",
        Known,
        "Show a memory at its last revision or at any other, in as much detail as wanted",
    )
    .errors(&[&[Code::MemoryNotFound, Code::HandoffNotFound]]);
    type On = DocumentId;
    type In = wire::ShowMemory;
    type Out = wire::Memory;

    async fn run(desk: &Desk, id: DocumentId, asked: wire::ShowMemory) -> Done<wire::Memory> {
        let detail = asked.detail.unwrap_or_default();
        let form = asked::detail(detail);
        let memory = desk.fetch_memory(&id, asked.revision, form, asked.handoff).await?;
        answer(shown::memory(&memory, detail))
    }
}

pub struct Edit;

impl Operation for Edit {
    const FACTS: Facts =
        brings("memory_edit", Known, "Make a new revision of a memory").errors(&[&[
            Code::MemoryNotFound,
            Code::MemoryDeleted,
            Code::MemorySuperseded,
            Code::RevisionConflict,
            Code::InvalidDocument,
            Code::SecretFound,
            Code::OtherTenant,
            Code::TaskNotFound,
            Code::DiskFull,
        ]]);
    type On = DocumentId;
    type In = wire::EditMemory;
    type Out = wire::Memory;

    async fn run(desk: &Desk, id: DocumentId, asked: wire::EditMemory) -> Done<wire::Memory> {
        let written = desk.edit_memory(&id, asked).await?;
        answer(changed(desk, &written.document.id, &written.warnings).await?)
    }
}

pub struct Pin;

impl Operation for Pin {
    const FACTS: Facts = manages("memory_pin", Known, "Pin a memory, so that it always travels")
        .errors(&[CHANGE_ERRORS]);
    type On = DocumentId;
    type In = wire::Approve;
    type Out = wire::Memory;

    async fn run(desk: &Desk, id: DocumentId, asked: wire::Approve) -> Done<wire::Memory> {
        let document = desk.pin_memory(&id, &asked.by, true).await?;
        answer(changed(desk, &document.id, &[]).await?)
    }
}

pub struct Unpin;

impl Operation for Unpin {
    const FACTS: Facts =
        manages("memory_unpin", Known, "Let a memory travel only where there is room for it")
            .errors(&[CHANGE_ERRORS]);
    type On = DocumentId;
    type In = wire::Approve;
    type Out = wire::Memory;

    async fn run(desk: &Desk, id: DocumentId, asked: wire::Approve) -> Done<wire::Memory> {
        let document = desk.pin_memory(&id, &asked.by, false).await?;
        answer(changed(desk, &document.id, &[]).await?)
    }
}

pub struct Supersede;

impl Operation for Supersede {
    const FACTS: Facts = manages(
        "memory_supersede",
        Known,
        "Say that another memory has taken the place of this one",
    )
    .errors(&[&[
        Code::MemoryNotFound,
        Code::MemoryDeleted,
        Code::MemorySuperseded,
        Code::InvalidDocument,
    ]]);
    type On = DocumentId;
    type In = wire::Supersede;
    type Out = wire::Memory;

    async fn run(desk: &Desk, id: DocumentId, asked: wire::Supersede) -> Done<wire::Memory> {
        let document = desk.supersede_memory(&id, &asked.by, &asked.successor).await?;
        answer(changed(desk, &document.id, &[]).await?)
    }
}

pub struct Delete;

impl Operation for Delete {
    const FACTS: Facts =
        manages("memory_delete", Known, "Delete a memory, which leaves a tombstone")
            .errors(&[CHANGE_ERRORS]);
    type On = DocumentId;
    type In = wire::Delete;
    type Out = wire::Memory;

    async fn run(desk: &Desk, id: DocumentId, asked: wire::Delete) -> Done<wire::Memory> {
        let document = desk.delete_memory(&id, &asked.by, asked.reason).await?;
        answer(changed(desk, &document.id, &[]).await?)
    }
}

pub struct Erase;

impl Operation for Erase {
    const FACTS: Facts = manages(
        "memory_erase",
        Known,
        "Remove the text of a revision, or of all of them, for good",
    )
    .errors(&[&[Code::MemoryNotFound, Code::BodyNotFound, Code::NotPermitted]]);
    type On = DocumentId;
    type In = wire::EraseMemory;
    type Out = wire::Memory;

    async fn run(desk: &Desk, id: DocumentId, asked: wire::EraseMemory) -> Done<wire::Memory> {
        let document = desk.erase_memory(&id, &asked.by, asked.revision, asked.reason).await?;
        answer(changed(desk, &document.id, &[]).await?)
    }
}

/// A memory as it is now, for whoever just changed it. Who may write a memory that it may not read
/// is told that it worked, and nothing more.
async fn changed(
    desk: &Desk,
    id: &DocumentId,
    warnings: &[Finding],
) -> Result<wire::Memory, Problem> {
    let memory = desk.own_memory(id).await?;
    let warnings = shown::warnings(warnings);
    Ok(wire::Memory { warnings, ..shown::memory(&memory, wire::Detail::Summary) })
}
