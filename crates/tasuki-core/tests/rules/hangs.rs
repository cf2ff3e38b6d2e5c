// SPDX-License-Identifier: Apache-2.0
//! What hangs together above one hop: what the broker does by itself once something has moved, and
//! what must hold when nothing more follows. The stores are held against the same.

use std::collections::BTreeSet;
use std::sync::Arc;

use tasuki_core::commands::Command;
use tasuki_core::handoff::{Handoff, Review, State};
use tasuki_core::ids::{HandoffId, TaskId};
use tasuki_core::join::CameTo;
use tasuki_core::task::{Task, TaskState};
use tasuki_core::tree::OnParentEnd;
use tasuki_core::world::World;

use crate::support::Stage;
use crate::wider::{all_below, join, spread};

/// How often the broker may have more to do before something is wrong.
pub(crate) const ROUNDS_MAX: usize = 200;

/// What the broker does next by itself, as its follower would find it: only what changes something.
pub(crate) fn follows(stage: &Stage) -> Vec<Command> {
    let world = &stage.world;
    let tasks = world.tasks.keys().filter(|id| **id != TaskId::STORE);
    let of_tasks = tasks.flat_map(|id| {
        [Command::of_broker(all_below(stage, *id)), Command::of_broker(spread(stage, *id))]
    });
    let joins = world.handoffs.keys().filter_map(|id| join(stage, *id)).map(Command::of_broker);
    let changes = |command: &Command| {
        !tasuki_core::decide::decide(command, world, stage.now).events.is_empty()
    };
    of_tasks.chain(joins).filter(changes).collect()
}

/// What must hold whatever anybody did, once nothing more follows.
pub(crate) fn hold(world: &World) {
    trees(world);
    holds(world);
    waits(world);
    joins(world);
    taints(world);
}

/// What must hold for everything that was offered since the log had this length.
pub(crate) fn offered_since(world: &World, seen: usize, blocked: &BTreeSet<TaskId>) {
    for sealed in &world.log[seen..] {
        let record = &sealed.record;
        let (Some((offered, _)), Some(id)) = (record.event.offered(), record.handoff_id) else {
            continue;
        };
        let task = &world.tasks[&record.task_id];
        let (built_on, chain) = match offered.opens {
            Some(_) => (task.parent_task_id, task.above().to_vec()),
            None => (Some(task.id), [&[task.id], task.above()].concat()),
        };
        // Nobody gets what is built on something that no longer holds before somebody has looked.
        let looked_at = built_on.is_none_or(|id| !blocked.contains(&id));
        assert!(looked_at || offered.needs_approval, "{offered:?} goes on in spite of a taint");
        // Where nothing is left to spend, nothing more is begun.
        let told_to_many = built_on.is_some_and(|id| world.tasks[&id].channel.is_some());
        let dead = matches!(world.handoffs[&id].state, State::DeadLettered { .. });
        if offered.contract.budget.is_none() && !dead && !told_to_many {
            let left = chain.iter().filter_map(|id| world.tasks[id].tree.left());
            assert!(left.clone().all(|left| !left.is_exhausted()), "{offered:?} has no budget");
        }
    }
}

/// The tasks of which nobody gets anything before somebody has looked.
pub(crate) fn blocked(world: &World) -> BTreeSet<TaskId> {
    world.tasks.values().filter(|task| task.is_blocked()).map(|task| task.id).collect()
}

fn trees(world: &World) {
    for task in world.tasks.values() {
        let live = task.live.map(|live| &world.handoffs[&live]);
        if let (Some(live), Some(until)) = (live, task.tree.deadline) {
            assert!(live.expires_at <= until, "{live:?} ends later than {until}");
        }
        let Some(parent) = task.parent_task_id.map(|id| &world.tasks[&id]) else { continue };
        let over = matches!(parent.state, TaskState::Cancelled | TaskState::Failed);
        let cancel = task.on_parent_end() == OnParentEnd::Cancel;
        assert!(!(over && cancel) || task.state.is_terminal(), "{task:?} under {parent:?}");
        let letter = task.last.filter(|_| task.state.is_terminal()).map(|id| &world.handoffs[&id]);
        let open = letter
            .filter(|letter| letter.task_id == task.id)
            .is_some_and(|letter| matches!(letter.state, State::DeadLettered { review: None, .. }));
        assert!(!open, "{letter:?} waits for a decision, and its task is at its end");
        assert!(parent.tree.spent.tokens >= task.tree.spent.tokens, "what a child used counts");
        if let (Some(live), Some(hop)) = (live, parent.live)
            && task.under() == Some(hop)
        {
            let until = world.handoffs[&hop].expires_at;
            assert!(live.expires_at <= until, "{live:?} ends later than what it hangs from");
        }
    }
}

/// What is on hold waits for a letter that somebody has to decide on, and nobody new gets it.
fn holds(world: &World) {
    for task in world.tasks.values() {
        let live = task.live.map(|live| &world.handoffs[&live]);
        let Some(letter) = task.tree.on_hold else {
            assert!(live.is_none_or(|live| live.on_hold.is_none()), "{live:?} is held for nothing");
            continue;
        };
        let undecided = match &world.handoffs[&letter].state {
            State::DeadLettered { review, .. } => match review {
                None => true,
                Some(
                    Review::Redriven { .. } | Review::Discarded { .. } | Review::Closed { .. },
                ) => false,
            },
            _ => false,
        };
        assert!(undecided, "{task:?} waits for {letter}, on which somebody decided");
        assert!(live.is_none_or(|live| live.rank().is_none()), "{live:?} can be claimed");
    }
}

/// Nothing waits until its end for nothing.
fn waits(world: &World) {
    for handoff in world.handoffs.values() {
        let State::Scheduled { due } = handoff.state else { continue };
        let waits = handoff.on_hold.is_some() || handoff.waits_for_tasks().is_some();
        let retried = handoff.failures > 0;
        assert!(due < handoff.expires_at || waits || retried, "{handoff:?} waits for nothing");
    }
}

/// No join goes on without its members, and nobody gets work that waits for others.
fn joins(world: &World) {
    for handoff in world.handoffs.values() {
        let Some(after) = &handoff.contract.after else { continue };
        let Some(join) = handoff.join.as_ref().filter(|join| join.members.is_some()) else {
            assert!(handoff.attempts.is_empty(), "{handoff:?} was claimed unjoined");
            assert!(handoff.rank().is_none(), "{handoff:?} can be claimed unjoined");
            continue;
        };
        let members = handoff.joined();
        assert!(members.iter().map(|member| member.task_id).eq(after.tasks.iter().copied()));
        let count = |what| members.iter().filter(|member| member.came_to == what).count();
        let (done, open) = (count(CameTo::Completed), count(CameTo::Open));
        let need = after.need as usize;
        assert!(done >= need || done + open < need || join.overdue, "{handoff:?}");
        for member in members.iter().filter(|member| member.came_to == CameTo::Completed) {
            let told_to_many = world.tasks[&member.task_id].channel.is_some();
            assert!(member.result_pos.is_some() || told_to_many, "{member:?} has no result");
        }
        for member in members.iter().filter(|member| member.came_to != CameTo::Completed) {
            assert!(member.gap().is_some() && member.result_pos.is_none(), "{member:?}");
        }
    }
}

/// What a task is tainted by was part of what it is built on, and what is built on a tainted task is
/// tainted or was found to be fine.
fn taints(world: &World) {
    let comes_to_nothing =
        |task: &Task| matches!(task.state, TaskState::Failed | TaskState::Cancelled);
    for from in world.tasks.values().filter(|from| !from.taints.is_empty()) {
        for to in world.tasks.values().filter(|to| from.is_part_of(to)) {
            let news = to.not_tainted_by(from.taints.iter().copied());
            assert!(news.is_empty() || comes_to_nothing(to), "{from:?} does not taint {to:?}");
        }
        for below in world.tasks.values() {
            let built = |source: &HandoffId| below.is_opened_on(from, &world.handoffs[source]);
            let taints = from.taints.iter().copied().filter(|(source, _)| built(source));
            let news = below.not_tainted_by(taints);
            assert!(news.is_empty(), "{from:?} does not taint {below:?}, which was opened on it");
        }
        for (source, _) in &from.taints {
            let leads = reached(world, *source, from.id);
            assert!(leads, "nothing leads from {source} to {from:?}");
        }
    }
}

/// Whether work leads to a task: its own, what is above or below, and what waited for it or for them.
fn reached(world: &World, source: HandoffId, task: TaskId) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![world.handoffs[&source].task_id];
    while let Some(id) = open.pop() {
        if id == task {
            return true;
        }
        if !seen.insert(id) {
            continue;
        }
        open.extend(world.tasks[&id].parent_task_id);
        let below = world.tasks.values().filter(|task| task.parent_task_id == Some(id));
        open.extend(below.map(|task| task.id));
        let waited = |it: &&Arc<Handoff>| it.joined().iter().any(|member| member.task_id == id);
        open.extend(world.handoffs.values().filter(waited).map(|it| it.task_id));
    }
    false
}
