// SPDX-License-Identifier: Apache-2.0
//! The part of the page that is about tasks: what can be done with one, and who owns it.

use super::scene::{HANDOFF, OPENER, Scene, TASK, agent, body, offer};
use super::{line, row};
use crate::commands::{self, Act, Command, Offer, OfferTask, OpenTask};
use crate::envelope::Control;
use crate::handoff::StateName;
use crate::ids::{HandoffId, TaskId};
use crate::task::TaskState;

pub(super) fn render(page: &mut String) {
    page.push_str("\n## Tasks\n\nA task has exactly one owner at every moment, and is:\n\n");
    for state in TaskState::ALL {
        line(page, &format!("- `{state}`: {}", meaning(*state)));
    }
    page.push_str("\nWhat can be done with a task that has no live handoff:\n\n");
    row(page, "wish", TaskState::ALL.iter().map(|state| format!("`{state}`")));
    row(page, "---", TaskState::ALL.iter().map(|_| "---".into()));
    for (wish, command) in WISHES {
        row(page, wish, TaskState::ALL.iter().map(|state| effect(*state, *command)));
    }
    page.push_str(STEPS_INTRODUCTION);
    row(page, "step", ["task", "owner"].map(String::from).into_iter());
    row(page, "---", ["---", "---"].map(String::from).into_iter());
    for (step, after) in STEPS {
        let scene = after();
        let task = scene.task();
        let owner = if task.owner == agent(OPENER) { "sender" } else { "receiver" };
        row(page, step, [task.state.to_string(), owner.into()].into_iter());
    }
}

const STEPS_INTRODUCTION: &str = "
How a task follows its handoff. A receiver becomes the owner by claiming and by nothing else; a
claim that ends without a result gives the task back to the sender of that hop:

";

fn meaning(state: TaskState) -> &'static str {
    match state {
        TaskState::Open => "it is being worked on, or waits for its owner to hand it on.",
        TaskState::DeadLettered => "its last handoff is a dead letter; somebody has to decide.",
        TaskState::Completed => "a handoff was completed and not followed by another transfer.",
        TaskState::Failed => "it was aborted, or its last dead letter was discarded.",
        TaskState::Cancelled => "it was cancelled, or the handoff was that had opened it.",
    }
}

type Wish = fn(&Scene) -> Command;

const WISHES: &[(&str, Wish)] = &[
    ("offer, by its owner", |scene| Command::offer(scene.next_offer())),
    ("offer, by anyone else", |scene| {
        Command::offer(Offer { from: agent("stranger"), ..scene.next_offer() })
    }),
    ("call below it, by its owner", |scene| Command::offer(call(scene))),
    ("call below it, by anyone else", |scene| {
        Command::offer(Offer { from: agent("stranger"), ..call(scene) })
    }),
    ("open a task below it, by its owner", |scene| {
        let owner = scene.task().owner.clone();
        let open = OpenTask {
            task: TaskId(60),
            intent: body("intent"),
            correlation_id: None,
            project: None,
            parent: Some(TASK),
            coordinator: None,
            channel: None,
            on_parent_end: crate::tree::OnParentEnd::Cancel,
        };
        Command::by(owner, open)
    }),
    ("cancel it, by its opener or owner", |_| cancel(OPENER)),
    ("cancel it, by anyone else", |_| cancel("stranger")),
];

fn call(scene: &Scene) -> Offer {
    let task = OfferTask::New {
        task: TaskId(60),
        intent: scene.task().intent,
        correlation_id: None,
        project: None,
        branch_of: None,
        parent: Some(TASK),
        coordinator: None,
        on_parent_end: crate::tree::OnParentEnd::Cancel,
    };
    Offer { task, control: Control::Awaited, ..scene.next_offer() }
}

fn cancel(by: &str) -> Command {
    Command::by(agent(by), commands::CancelTask { task: TASK, reason: None, letter: None })
}

fn effect(state: TaskState, wish: Wish) -> String {
    let mut scene = Scene::of_task(state);
    match scene.execute(&wish(&scene)) {
        Err(refusal) => format!("`{}`", refusal.code()),
        Ok(_) if scene.task().state == state => "stays".into(),
        Ok(_) => format!("→ {}", scene.task().state),
    }
}

type Step = fn() -> Scene;

/// Steps of a handoff that the owner of an open task offered, and where they leave the task.
const STEPS: &[(&str, Step)] = &[
    ("offered", || in_state(StateName::Pending)),
    ("claimed", || in_state(StateName::Claimed)),
    ("in progress", || in_state(StateName::InProgress)),
    ("released, declined or lost", || {
        let mut scene = in_state(StateName::Claimed);
        scene.act(Act::Release);
        scene
    }),
    ("completed", || in_state(StateName::Completed)),
    ("completed with a transfer, not claimed yet", || {
        let mut scene = in_state(StateName::Claimed);
        scene.complete(vec![scene.next_offer()]);
        scene
    }),
    ("completed with calls only", || {
        let mut scene = in_state(StateName::Claimed);
        scene.complete(vec![call(&scene)]);
        scene
    }),
    ("cancelled", || in_state(StateName::Cancelled)),
    ("aborted", || in_state(StateName::Failed)),
    ("dead-lettered", || in_state(StateName::DeadLettered)),
    ("dead-lettered, then redriven", || {
        let mut scene = in_state(StateName::DeadLettered);
        let by = agent("reviewer");
        scene.must(&Command::by(
            by,
            commands::Redrive {
                handoff: HANDOFF,
                new: HandoffId(50),
                to: None,
                expires_in_ms: None,
                above: Vec::new(),
            },
        ));
        scene
    }),
    ("dead-lettered, then discarded", || {
        let mut scene = in_state(StateName::DeadLettered);
        let by = agent("reviewer");
        scene
            .must(&Command::by(by, commands::Discard { handoff: HANDOFF, reason: body("reason") }));
        scene
    }),
];

fn in_state(state: StateName) -> Scene {
    Scene::of_handoff(state, offer(HANDOFF))
}
