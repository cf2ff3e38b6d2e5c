// SPDX-License-Identifier: Apache-2.0
//! Tasks.

use tasuki_core::chain::ChainFile;
use tasuki_core::registry::rules::Permission::Send;
use tasuki_core::{TaskId, TaskState};
use tasuki_protocol::{self as wire, Code, Problem};
use tasuki_store::{HandoffFilter, PAGE_MAX, TaskFilter};

use super::Right::{Has, Known};
use super::{Done, ENVELOPE_ERRORS, Facts, Operation, answer, answer_once, shown};
use super::{brings, manages, reads};
use crate::channels::Joined;
use crate::desk::Desk;
use crate::queries::ChainEntry;

pub struct Open;

impl Operation for Open {
    const FACTS: Facts =
        brings("task_open", Has(Send), "Open a task without handing it to anybody yet").errors(&[
            &[Code::TaskNotFound, Code::NotOwner, Code::TaskFinished],
            &[Code::IntentAltered, Code::TreeTooDeep],
            &[Code::IdempotencyConflict, Code::DiskFull],
        ]);
    type On = ();
    type In = wire::OpenTask;
    type Out = wire::Task;

    async fn run(desk: &Desk, (): (), asked: wire::OpenTask) -> Done<wire::Task> {
        let (task, repeated) = desk.open_task(asked).await?;
        answer_once(shown::task(&task), repeated)
    }
}

pub struct List;

impl Operation for List {
    const FACTS: Facts = reads("task_list", Known, "List tasks, newest first");
    type On = ();
    type In = wire::ListTasks;
    type Out = wire::Tasks;

    async fn run(desk: &Desk, (): (), asked: wire::ListTasks) -> Done<wire::Tasks> {
        let filter = TaskFilter {
            tenant: None,
            state: state::<TaskState>(asked.state.as_deref())?,
            owner: asked.owner,
            parent: asked.parent,
            project: asked.project,
            correlation: asked.correlation_id,
            before: asked.before,
            max: asked.limit.unwrap_or(100),
            ..TaskFilter::default()
        };
        let page = desk.list_tasks(filter).await?;
        let tasks = page.items.iter().map(|task| shown::task(task)).collect();
        answer(wire::Tasks { tasks, next: page.next })
    }
}

/// A state by its name.
pub(super) fn state<T: std::str::FromStr<Err = tasuki_core::ids::Malformed>>(
    text: Option<&str>,
) -> Result<Option<T>, Problem> {
    text.map(|text| text.parse().map_err(|e: T::Err| Problem::invalid("state", e.to_string())))
        .transpose()
}

/// Who asks for a task by its id fails in the same ways.
const READ_ERRORS: &[Code] = &[Code::TaskNotFound];

pub struct Show;

impl Operation for Show {
    const FACTS: Facts =
        reads("task_show", Known, "Show a task, its owner, its handoffs and the tasks below it")
            .errors(&[READ_ERRORS]);
    type On = TaskId;
    type In = wire::Nothing;
    type Out = wire::TaskWithParts;

    async fn run(desk: &Desk, id: TaskId, _: wire::Nothing) -> Done<wire::TaskWithParts> {
        let task = desk.task(id).await?;
        let filter = HandoffFilter { task: Some(id), max: PAGE_MAX, ..HandoffFilter::default() };
        let handoffs = desk.list_handoffs(filter).await?.items;
        let below = TaskFilter { parent: Some(id), max: PAGE_MAX, ..TaskFilter::default() };
        let children = desk.list_tasks(below).await?.items;
        let now = desk.now();
        answer(wire::TaskWithParts {
            task: shown::task(&task),
            output: desk.task_result(&task).await?.as_ref().map(shown::raw),
            handoffs: handoffs.iter().map(|handoff| shown::handoff(handoff, now)).collect(),
            children: children.iter().map(|task| shown::task(task)).collect(),
        })
    }
}

pub struct Events;

impl Operation for Events {
    const FACTS: Facts = reads("task_events", Known, "Show everything that happened to a task")
        .errors(&[READ_ERRORS]);
    type On = TaskId;
    type In = wire::Nothing;
    type Out = wire::Events;

    async fn run(desk: &Desk, id: TaskId, _: wire::Nothing) -> Done<wire::Events> {
        let chain = desk.chain(id).await?;
        let epochs = desk.epochs().await?;
        let event = |link: &ChainEntry| shown::event(&link.entry, link.body.as_ref(), &epochs);
        let events = chain.iter().map(event);
        answer(wire::Events { events: events.collect() })
    }
}

pub struct Export;

impl Operation for Export {
    const FACTS: Facts = reads(
        "task_export",
        Known,
        "Export a task and those below it as one file that can be verified anywhere",
    )
    .errors(&[READ_ERRORS]);
    type On = TaskId;
    type In = wire::Nothing;
    type Out = ChainFile;

    async fn run(desk: &Desk, id: TaskId, _: wire::Nothing) -> Done<ChainFile> {
        answer(desk.export_chain(id).await?)
    }
}

pub struct Branch;

impl Operation for Branch {
    const FACTS: Facts =
        brings("task_branch", Has(Send), "Begin anew from a hop, as a task of its own")
            .errors(&[ENVELOPE_ERRORS, &[Code::TaskNotFound, Code::IdempotencyConflict]]);
    type On = TaskId;
    type In = wire::Branch;
    type Out = wire::Offered;

    async fn run(desk: &Desk, id: TaskId, asked: wire::Branch) -> Done<wire::Offered> {
        let offered = desk.branch(id, asked).await?;
        answer_once(shown::offered(&offered), offered.repeated)
    }
}

pub struct Cancel;

impl Operation for Cancel {
    const FACTS: Facts =
        manages("task_cancel", Has(Send), "Cancel a task and the handoff under way").errors(&[&[
            Code::TaskNotFound,
            Code::TaskFinished,
            Code::NotPermitted,
        ]]);
    type On = TaskId;
    type In = wire::Decide;
    type Out = wire::Task;

    async fn run(desk: &Desk, id: TaskId, asked: wire::Decide) -> Done<wire::Task> {
        let task = desk.cancel_task(id, &asked.by, asked.reason).await?;
        answer(shown::task(&task))
    }
}

pub struct Complete;

impl Operation for Complete {
    const FACTS: Facts = manages(
        "task_complete",
        Has(Send),
        "End a task that is one's own with a result, while nobody else works on it",
    )
    .errors(&[
        &[Code::TaskNotFound, Code::TaskFinished, Code::NotOwner, Code::HandoffOpen],
        &[Code::OpenBelow, Code::SecretFound, Code::InvalidPayload],
    ]);
    type On = TaskId;
    type In = wire::CompleteTask;
    type Out = wire::Task;

    async fn run(desk: &Desk, id: TaskId, asked: wire::CompleteTask) -> Done<wire::Task> {
        let task = desk.complete_task(id, asked).await?;
        answer(shown::task(&task))
    }
}

pub struct Lift;

impl Operation for Lift {
    const FACTS: Facts = manages(
        "task_lift",
        Has(Send),
        "Lift a constraint of a task, from its next envelope on, whoever holds the task",
    )
    .errors(&[
        &[Code::TaskNotFound, Code::TaskFinished, Code::TaskMoved],
        &[Code::ConstraintNotYours, Code::InvalidEnvelope],
    ]);
    type On = TaskId;
    type In = wire::LiftConstraint;
    type Out = wire::Task;

    async fn run(desk: &Desk, id: TaskId, asked: wire::LiftConstraint) -> Done<wire::Task> {
        let task = desk.lift_constraint(id, &asked.by, asked.constraint, asked.reason).await?;
        answer(shown::task(&task))
    }
}

pub struct ClearTaint;

impl Operation for ClearTaint {
    const FACTS: Facts = manages(
        "task_clear_taint",
        Known,
        "Say that a task may go on although something that it is built on no longer holds",
    )
    .errors(&[&[Code::TaskNotFound, Code::NotTainted]]);
    type On = TaskId;
    type In = wire::ClearTaint;
    type Out = wire::Task;

    async fn run(desk: &Desk, id: TaskId, asked: wire::ClearTaint) -> Done<wire::Task> {
        let task = desk.clear_taint(id, &asked.by, asked.source, asked.reason).await?;
        answer(shown::task(&task))
    }
}

pub struct Join;

impl Operation for Join {
    const FACTS: Facts = reads(
        "task_join",
        Known,
        "Collect what the tasks below one have come to, waiting for enough of them",
    )
    .waits()
    .errors(&[&[Code::TaskNotFound]]);
    type On = TaskId;
    type In = wire::Gather;
    type Out = wire::Gathered;

    async fn run(desk: &Desk, id: TaskId, asked: wire::Gather) -> Done<wire::Gathered> {
        let limit = asked.limit.unwrap_or(100);
        let joined = desk.join_answers(id, asked.need, asked.wait_ms, asked.before, limit).await?;
        let Joined {
            need,
            receivers,
            completed,
            failed,
            satisfied,
            reachable,
            members,
            next,
            task,
        } = joined;
        let lasts: Vec<_> = members.iter().filter_map(|(_, last)| last.clone()).collect();
        let mut outputs = desk.outputs(&lasts).await?.into_iter();
        let members = members
            .into_iter()
            .map(|(task, last)| {
                let output = last.as_ref().and_then(|_| outputs.next().flatten());
                wire::Member {
                    task_id: task.id,
                    state: task.state.to_string(),
                    to: last.as_ref().map(|last| last.to.clone()),
                    handoff_id: last.as_ref().map(|last| last.id),
                    output: output.as_ref().map(shown::raw),
                }
            })
            .collect();
        answer(wire::Gathered {
            task_id: id,
            correlation_id: task.correlation_id.clone(),
            satisfied,
            reachable,
            need,
            receivers,
            completed,
            failed,
            open: receivers - completed - failed,
            members,
            next,
        })
    }
}
