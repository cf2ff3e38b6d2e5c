// SPDX-License-Identifier: Apache-2.0

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use tasuki_core::document::Scope;
use tasuki_core::ids::Project;
use tasuki_core::{AgentId, DocumentId, HandoffId, Position, TaskId};
use tasuki_engine::{Desk, MEMORIES_MAX, MemorySearch};

use super::Answer;
use crate::auth::At;
use crate::error::Problem;
use crate::json::{Json, Params, PathId, ok, reply};
use crate::{from_wire, to_wire, wire};

pub(crate) async fn add(At(desk): At, Json(body): Json<wire::NewMemory>) -> Answer {
    let written = desk.remember(body).await?;
    let status = if written.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(reply(status, &shown(&desk, &written.document.id, written.warnings).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Words to be found; the best answers come first.
    q: Option<String>,
    /// Only memories of this project, of this task, or of this agent.
    project: Option<Project>,
    task: Option<TaskId>,
    agent: Option<AgentId>,
    /// Only memories with this tag.
    tag: Option<String>,
    /// Only pinned ones, or only those that are not.
    pinned: Option<bool>,
    /// Also those that another memory has replaced.
    #[serde(default)]
    superseded: bool,
    /// Also tombstones.
    #[serde(default)]
    deleted: bool,
    /// How much of each is wanted; a stub without it.
    detail: Option<wire::Detail>,
    /// Where the page before ended; not for searches, which have one page.
    before: Option<u64>,
    /// How many at most, up to 100.
    limit: Option<usize>,
}

pub(crate) async fn list(At(desk): At, Params(wish): Params<List>) -> Answer {
    let detail = wish.detail.unwrap_or(wire::Detail::Stub);
    let (found, next) = desk.find_memories(search(wish)?).await?;
    let memories = found.iter().map(|memory| to_wire::memory(memory, detail)).collect();
    Ok(ok(&wire::Memories { memories, next }))
}

fn search(wish: List) -> Result<MemorySearch, Problem> {
    let scopes = [
        wish.project.map(Scope::Project),
        wish.task.map(Scope::Task),
        wish.agent.map(Scope::Agent),
    ];
    let mut scopes = scopes.into_iter().flatten();
    let scope = scopes.next();
    if scopes.next().is_some() {
        return Err(Problem::invalid("query", "name one of project, task and agent"));
    }
    Ok(MemorySearch {
        question: wish.q,
        scope,
        tag: wish.tag,
        pinned: wish.pinned,
        superseded: wish.superseded,
        deleted: wish.deleted,
        before: wish.before.map(Position),
        max: wish.limit.unwrap_or(MEMORIES_MAX),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Show {
    /// A revision; the last one without it.
    revision: Option<u32>,
    /// How much of it is wanted; all of it without this.
    detail: Option<wire::Detail>,
    /// The handoff in whose envelope the reader found it: if that passed less of it, the fetch is
    /// counted there.
    handoff: Option<HandoffId>,
}

pub(crate) async fn show(
    At(desk): At,
    PathId(id): PathId<DocumentId>,
    Params(wish): Params<Show>,
) -> Answer {
    let detail = wish.detail.unwrap_or_default();
    let form = from_wire::detail(detail);
    let memory = desk.fetch_memory(&id, wish.revision, form, wish.handoff).await?;
    Ok(ok(&to_wire::memory(&memory, detail)))
}

pub(crate) async fn edit(
    At(desk): At,
    PathId(id): PathId<DocumentId>,
    Json(body): Json<wire::EditMemory>,
) -> Answer {
    let written = desk.edit_memory(&id, body).await?;
    Ok(ok(&shown(&desk, &written.document.id, written.warnings).await?))
}

pub(crate) async fn pin(
    At(desk): At,
    PathId(id): PathId<DocumentId>,
    Json(body): Json<wire::Approve>,
) -> Answer {
    let document = desk.pin_memory(&id, &body.by, true).await?;
    Ok(ok(&shown(&desk, &document.id, Vec::new()).await?))
}

pub(crate) async fn unpin(
    At(desk): At,
    PathId(id): PathId<DocumentId>,
    Json(body): Json<wire::Approve>,
) -> Answer {
    let document = desk.pin_memory(&id, &body.by, false).await?;
    Ok(ok(&shown(&desk, &document.id, Vec::new()).await?))
}

pub(crate) async fn supersede(
    At(desk): At,
    PathId(id): PathId<DocumentId>,
    Json(body): Json<wire::Supersede>,
) -> Answer {
    let document = desk.supersede_memory(&id, &body.by, &body.successor).await?;
    Ok(ok(&shown(&desk, &document.id, Vec::new()).await?))
}

pub(crate) async fn delete(
    At(desk): At,
    PathId(id): PathId<DocumentId>,
    Json(body): Json<wire::Delete>,
) -> Answer {
    let document = desk.delete_memory(&id, &body.by, body.reason).await?;
    Ok(ok(&shown(&desk, &document.id, Vec::new()).await?))
}

pub(crate) async fn erase(
    At(desk): At,
    PathId(id): PathId<DocumentId>,
    Json(body): Json<wire::EraseMemory>,
) -> Answer {
    let document = desk.erase_memory(&id, &body.by, body.revision, body.reason).await?;
    Ok(ok(&shown(&desk, &document.id, Vec::new()).await?))
}

/// A memory as it is now, for whoever just changed it. Who may write a memory that it may not read
/// is told that it worked, and nothing more.
async fn shown(
    desk: &Desk,
    id: &DocumentId,
    warnings: Vec<tasuki_core::secrets::Finding>,
) -> Result<wire::Memory, Problem> {
    let memory = desk.own_memory(id).await?;
    let warnings = to_wire::warnings(&warnings);
    Ok(wire::Memory { warnings, ..to_wire::memory(&memory, wire::Detail::Summary) })
}
