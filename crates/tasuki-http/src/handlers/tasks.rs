// SPDX-License-Identifier: Apache-2.0

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use tasuki_core::ids::Project;
use tasuki_core::{AgentId, TaskId, TaskState};
use tasuki_engine::{HandoffFilter, PAGE_MAX, TaskFilter};

use super::Answer;
use crate::auth::At;
use crate::error::Problem;
use crate::json::{Json, Params, PathId, ok, reply};
use crate::{to_wire, wire};

pub(crate) async fn open(At(desk): At, Json(body): Json<wire::OpenTask>) -> Answer {
    let (task, repeated) = desk.open_task(body).await?;
    let status = if repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(reply(status, &to_wire::task(&task)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Only tasks in this state.
    state: Option<String>,
    /// Only tasks that this agent owns.
    owner: Option<AgentId>,
    /// Only tasks below this one.
    parent: Option<TaskId>,
    /// Only tasks of this project.
    project: Option<Project>,
    /// Only tasks before this one: where the page before ended.
    before: Option<TaskId>,
    /// How many at most, up to 1000.
    limit: Option<usize>,
}

pub(crate) async fn list(At(desk): At, Params(wish): Params<List>) -> Answer {
    let max = wish.limit.unwrap_or(100);
    let state = parse_state::<TaskState>(wish.state.as_deref())?;
    let filter = TaskFilter {
        tenant: None,
        state,
        owner: wish.owner,
        parent: wish.parent,
        project: wish.project,
        before: wish.before,
        max,
        ..TaskFilter::default()
    };
    let page = desk.list_tasks(filter).await?;
    let next = page.next;
    let tasks = page.items.iter().map(|task| to_wire::task(task)).collect();
    Ok(ok(&wire::Tasks { tasks, next }))
}

pub(super) fn parse_state<T: std::str::FromStr<Err = tasuki_core::ids::Malformed>>(
    text: Option<&str>,
) -> Result<Option<T>, Problem> {
    text.map(|text| text.parse().map_err(|e: T::Err| Problem::invalid("state", e.to_string())))
        .transpose()
}

pub(crate) async fn show(At(desk): At, PathId(id): PathId<TaskId>) -> Answer {
    let task = desk.task(id).await?;
    let filter = HandoffFilter { task: Some(id), max: PAGE_MAX, ..HandoffFilter::default() };
    let handoffs = desk.list_handoffs(filter).await?.items;
    let below = TaskFilter { parent: Some(id), max: PAGE_MAX, ..TaskFilter::default() };
    let children = desk.list_tasks(below).await?.items;
    let now = desk.now();
    Ok(ok(&wire::TaskWithParts {
        task: to_wire::task(&task),
        handoffs: handoffs.iter().map(|handoff| to_wire::handoff(handoff, now)).collect(),
        children: children.iter().map(|task| to_wire::task(task)).collect(),
    }))
}

pub(crate) async fn cancel(
    At(desk): At,
    PathId(id): PathId<TaskId>,
    Json(body): Json<wire::Decide>,
) -> Answer {
    let task = desk.cancel_task(id, &body.by, body.reason).await?;
    Ok(ok(&to_wire::task(&task)))
}

pub(crate) async fn lift(
    At(desk): At,
    PathId(id): PathId<TaskId>,
    Json(body): Json<wire::LiftConstraint>,
) -> Answer {
    let task = desk.lift_constraint(id, &body.by, body.constraint, body.reason).await?;
    Ok(ok(&to_wire::task(&task)))
}

pub(crate) async fn events(At(desk): At, PathId(id): PathId<TaskId>) -> Answer {
    let chain = desk.chain(id).await?;
    let events = chain.iter().map(|link| to_wire::event(&link.entry, link.body.as_ref())).collect();
    Ok(ok(&wire::Events { events }))
}

/// Everything that happened to a task and to those below it, as one file.
pub(crate) async fn export(At(desk): At, PathId(id): PathId<TaskId>) -> Answer {
    Ok(ok(&desk.export_chain(id).await?))
}

pub(crate) async fn branch(
    At(desk): At,
    PathId(id): PathId<TaskId>,
    Json(body): Json<wire::Branch>,
) -> Answer {
    let offered = desk.branch(id, body).await?;
    let status = if offered.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(reply(status, &to_wire::offered(&offered.handoff, offered.listening)))
}
