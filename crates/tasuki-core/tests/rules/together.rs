// SPDX-License-Identifier: Apache-2.0
//! What hangs together above one hop, whatever anybody does: random wishes of every kind, after each of
//! which the broker does what it does by itself until nothing more follows.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tasuki_core::commands::{Command, Proof};
use tasuki_core::event::Event;
use tasuki_core::handoff::{Handoff, State};
use tasuki_core::ids::{HandoffId, TaskId};
use tasuki_core::join::CameTo;
use tasuki_core::task::{Task, TaskState};
use tasuki_core::tree::OnParentEnd;

use crate::properties::all_below;
use crate::random::pause_ms;
use crate::support::Stage;
use crate::wider::{What, Wide, join, spread, wide};

/// How often the broker may have more to do before something is wrong.
const ROUNDS_MAX: usize = 200;

struct Watched {
    stage: Stage,
    claims: Vec<(HandoffId, Proof)>,
    /// Whether something was held back because of what its task is built on.
    blocked: bool,
}

impl Watched {
    fn run(&mut self, command: Command) {
        let seen = self.stage.world.log.len();
        let _ = self.stage.run(command);
        for sealed in &self.stage.world.log[seen..] {
            if let (Some(id), Event::Claimed(claimed)) =
                (sealed.record.handoff_id, &sealed.record.event)
            {
                let proof = Proof { claim_id: claimed.claim_id, fence: claimed.fence };
                self.claims.push((id, proof));
            }
        }
    }

    fn step(&mut self, wish: &Wide, pause_ms: u64) {
        self.stage.wait(pause_ms);
        let Some(command) = wish.command(&mut self.stage, &self.claims) else { return };
        self.run(command);
        self.rest();
        self.trees();
        self.joins();
        self.taints();
        let handoffs = self.stage.world.handoffs.values();
        let held = |it: &std::sync::Arc<Handoff>| matches!(it.state, State::AwaitingApproval);
        self.blocked |= handoffs.into_iter().any(|it| it.blocked && held(it));
    }

    /// What the follower does, until nothing more follows.
    fn rest(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let seen = self.stage.world.log.len();
            let tasks: Vec<_> = self.stage.world.tasks.keys().copied().collect();
            for id in tasks.into_iter().filter(|id| *id != TaskId::STORE) {
                self.run(Command::of_broker(all_below(&self.stage, id)));
                self.run(Command::of_broker(spread(&self.stage, id)));
            }
            let handoffs: Vec<_> = self.stage.world.handoffs.keys().copied().collect();
            for id in handoffs {
                if let Some(join) = join(&self.stage, id) {
                    self.run(Command::of_broker(join));
                }
            }
            if self.stage.world.log.len() == seen {
                return;
            }
        }
        panic!("what follows from a wish never comes to rest");
    }

    fn trees(&self) {
        let world = &self.stage.world;
        for task in world.tasks.values() {
            let Some(parent) = task.parent_task_id.map(|id| &world.tasks[&id]) else { continue };
            let over = matches!(parent.state, TaskState::Cancelled | TaskState::Failed);
            let cancel = task.on_parent_end() == OnParentEnd::Cancel;
            assert!(!(over && cancel) || task.state.is_terminal(), "{task:?} under {parent:?}");
            let live = task.live.map(|live| &world.handoffs[&live]);
            if let (Some(live), Some(hop)) = (live, parent.live)
                && task.under() == Some(hop)
            {
                let until = world.handoffs[&hop].expires_at;
                assert!(live.expires_at <= until, "{live:?} ends later than what it hangs from");
            }
        }
    }

    /// No join goes on without its members, and nobody gets work that waits for others.
    fn joins(&self) {
        let world = &self.stage.world;
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
    fn taints(&self) {
        let world = &self.stage.world;
        let comes_to_nothing =
            |task: &Task| matches!(task.state, TaskState::Failed | TaskState::Cancelled);
        for from in world.tasks.values() {
            for to in world.tasks.values().filter(|to| from.is_part_of(to)) {
                let news = to.not_tainted_by(from.taints.iter().copied());
                assert!(news.is_empty() || comes_to_nothing(to), "{from:?} does not taint {to:?}");
            }
        }
        for task in world.tasks.values() {
            for (source, _) in &task.taints {
                assert!(self.reached(*source, task.id), "nothing leads from {source} to {task:?}");
            }
        }
    }

    /// Whether work leads to a task: its own, what is above, and what waited for it or for them.
    fn reached(&self, source: HandoffId, task: TaskId) -> bool {
        let world = &self.stage.world;
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
            let waited = |it: &&std::sync::Arc<Handoff>| {
                it.joined().iter().any(|member| member.task_id == id)
            };
            open.extend(world.handoffs.values().filter(waited).map(|it| it.task_id));
        }
        false
    }
}

fn play(story: &[(Wide, u64)]) -> Watched {
    let mut watched = Watched { stage: Stage::new(), claims: Vec::new(), blocked: false };
    for (wish, pause_ms) in story {
        // A taint out of nowhere is reached from nowhere.
        if matches!(wish, Wide::More { what: What::Taint, .. }) {
            continue;
        }
        watched.step(wish, *pause_ms);
    }
    watched
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_hangs_together_holds_whatever_anybody_does(
        story in proptest::collection::vec((wide(), pause_ms()), 1..60),
    ) {
        play(&story);
    }
}

#[test]
fn random_stories_join_spread_and_hold() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut kinds = BTreeSet::new();
    let mut blocked = false;
    for _ in 0..400 {
        let stories = proptest::collection::vec((wide(), pause_ms()), 30..60);
        let story = stories.new_tree(&mut runner).unwrap().current();
        let watched = play(&story);
        kinds.extend(watched.stage.world.log.iter().map(|sealed| sealed.record.event.kind()));
        blocked |= watched.blocked;
    }
    for kind in ["joined", "wait_over", "passed_to", "tainted", "task_held", "task_resumed"] {
        assert!(kinds.contains(kind), "no story has {kind}: {kinds:?}");
    }
    assert!(blocked, "no story holds anything back");
}
