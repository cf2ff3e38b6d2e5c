// SPDX-License-Identifier: Apache-2.0
//! Random agents, random wishes, random pauses: whatever they do, the promises hold. Everything is
//! checked against a second copy that is made from the log alone, read back from its stored form.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tasuki_core::commands::{self, Act, Command, Held, Proof, Wish};
use tasuki_core::event::{self, Event, Record, Sealed};
use tasuki_core::handoff::{Handoff, State, StateName as S};
use tasuki_core::ids::{HandoffId, Hash, Position, TaskId, Timestamp};
use tasuki_core::task::{Task, TaskState};
use tasuki_core::tree::{Above, DEPTH_MAX, Fate, OnParentEnd, fate};
use tasuki_core::{Outcome, Refusal};

use crate::random::{Op, op, pause_ms};
use crate::support::{DAY, Stage};
use crate::wider::all_below;

/// Every way from one state to another, event by event.
const MOVES: &[(S, S)] = &[
    (S::AwaitingApproval, S::Pending),
    (S::AwaitingApproval, S::Scheduled),
    (S::AwaitingApproval, S::Failed),
    (S::AwaitingApproval, S::Cancelled),
    (S::AwaitingApproval, S::DeadLettered),
    (S::Scheduled, S::Pending),
    (S::Scheduled, S::Failed),
    (S::Scheduled, S::Cancelled),
    (S::Scheduled, S::DeadLettered),
    (S::Pending, S::Claimed),
    (S::Pending, S::Scheduled),
    (S::Pending, S::Failed),
    (S::Pending, S::Cancelled),
    (S::Pending, S::DeadLettered),
    (S::Claimed, S::InProgress),
    (S::Claimed, S::Completed),
    (S::Claimed, S::Pending),
    (S::Claimed, S::Scheduled),
    (S::Claimed, S::Failed),
    (S::Claimed, S::Cancelled),
    (S::InProgress, S::Completed),
    (S::InProgress, S::Pending),
    (S::InProgress, S::Scheduled),
    (S::InProgress, S::Failed),
    (S::InProgress, S::Cancelled),
    (S::Claimed, S::InputRequired),
    (S::InProgress, S::InputRequired),
    (S::InputRequired, S::Answered),
    (S::InputRequired, S::Pending),
    (S::InputRequired, S::Failed),
    (S::InputRequired, S::Cancelled),
    (S::Answered, S::Claimed),
    (S::Answered, S::Pending),
    (S::Answered, S::Failed),
    (S::Answered, S::Cancelled),
    (S::Answered, S::DeadLettered),
    (S::Failed, S::Scheduled),
    (S::Failed, S::DeadLettered),
];

/// Ways that only what is on hold goes after it asked: true, and too rare to be looked for.
const RARE: &[(S, S)] = &[(S::InputRequired, S::Scheduled), (S::Answered, S::Scheduled)];

type Tasks = BTreeMap<TaskId, Arc<Task>>;
type Handoffs = BTreeMap<HandoffId, Arc<Handoff>>;

struct Checked {
    stage: Stage,
    /// What the log says, and nothing else.
    tasks: Tasks,
    handoffs: Handoffs,
    /// How many events each task has, and the last one's hash and position.
    chains: BTreeMap<TaskId, (u32, Hash, Position)>,
    claims: Vec<(HandoffId, Proof)>,
    completed: BTreeSet<HandoffId>,
    moves: BTreeSet<(S, S)>,
}

impl Checked {
    fn new() -> Self {
        Self {
            stage: Stage::new(),
            tasks: Tasks::new(),
            handoffs: Handoffs::new(),
            chains: BTreeMap::new(),
            claims: Vec::new(),
            completed: BTreeSet::new(),
            moves: BTreeSet::new(),
        }
    }

    fn step(&mut self, op: &Op, pause_ms: u64) {
        self.stage.wait(pause_ms);
        let Some(command) = op.command(&mut self.stage, &self.claims) else { return };
        self.run(&command);
        self.settle();
        self.hangs_together();
    }

    /// What the engine does after every command: each level follows from the one above.
    fn settle(&mut self) {
        for _ in 0..DEPTH_MAX {
            let tasks = self.stage.world.tasks.values();
            let restless = tasks.filter(|task| self.is_restless(task));
            let parents: BTreeSet<_> =
                restless.flat_map(|task| task.above().iter().copied()).collect();
            if parents.is_empty() {
                return;
            }
            for parent in parents {
                let below = all_below(&self.stage, parent);
                self.run(&Command::of_broker(below));
            }
        }
        panic!("what is below a task never comes to rest");
    }

    /// Whether something follows for a task from one above it that has a say.
    fn is_restless(&self, task: &Task) -> bool {
        self.fates(task).any(|fate| fate != Fate::Stays)
    }

    /// What its parent says, and those above it as long as all between have ended well.
    fn fates(&self, task: &Task) -> impl Iterator<Item = Fate> + '_ {
        let world = &self.stage.world;
        let mut above = Vec::new();
        for id in task.above() {
            let parent = &world.tasks[id];
            let live = parent.live.map(|live| &*world.handoffs[&live]);
            let hop = task.under().and_then(|id| world.handoffs.get(&id)).map(|hop| &**hop);
            above.push(fate(Above { task: parent, live }, hop, task));
            if parent.state != TaskState::Completed {
                break;
            }
        }
        above.into_iter()
    }

    /// The rules of trees, once everything has come to rest.
    fn hangs_together(&self) {
        let world = &self.stage.world;
        for task in world.tasks.values() {
            let live = task.live.map(|live| &world.handoffs[&live]);
            if let (Some(live), Some(until)) = (live, task.tree.deadline) {
                assert!(live.expires_at <= until, "{live:?} ends later than {until}");
            }
            let Some(parent) = task.parent_task_id.map(|id| &world.tasks[&id]) else { continue };
            let over = matches!(parent.state, TaskState::Cancelled | TaskState::Failed);
            let cancel = task.on_parent_end() == OnParentEnd::Cancel;
            assert!(!(over && cancel) || task.state.is_terminal(), "{task:?} under {parent:?}");
            assert!(parent.tree.spent.tokens >= task.tree.spent.tokens, "what a child used counts");
            let Some(live) = live else { continue };
            assert_eq!(live.on_hold.is_some(), task.tree.on_hold.is_some(), "{live:?}");
            // What was let go before has nothing to wait for.
            let held_back = cancel && parent.state == TaskState::DeadLettered;
            assert!(!held_back || live.rank().is_none(), "{live:?} can be claimed");
            let hop = parent.live.filter(|hop| task.under() == Some(*hop));
            let hop = hop.map(|hop| &world.handoffs[&hop]);
            // A hop whose time is over is a dead letter but for the sweep, which holds back what a
            // redrive below it brought. And what goes on under a hop that took the place of another
            // keeps the time that it had.
            let binds = |hop: &&Arc<Handoff>| {
                hop.expires_at > self.stage.now && hop.offered_pos < task.intent_pos
            };
            if let Some(hop) = hop.filter(binds) {
                assert!(live.expires_at <= hop.expires_at, "{live:?}");
            }
        }
    }

    fn run(&mut self, command: &Command) {
        let world = &self.stage.world;
        let before = (world.tasks.clone(), world.handoffs.clone());
        let seen = world.log.len();
        let outcome = self.stage.run(command.clone());
        let new = self.stage.world.log[seen..].to_vec();

        self.holder_only(command, &outcome, &before.1);
        let unchanged = match &outcome {
            Ok(outcome) => outcome.repeated,
            Err(_) => new.is_empty(),
        };
        if unchanged {
            assert!(new.is_empty(), "a repeated wish made {new:?}");
            assert!(
                (&before.0, &before.1) == (&self.stage.world.tasks, &self.stage.world.handoffs)
            );
        }
        if outcome.is_err() {
            assert!(new.len() <= 1, "a refused wish made {new:?}");
        }
        for sealed in &new {
            let late = matches!(sealed.record.event, Event::LateReport { .. });
            assert_eq!(late, outcome.is_err(), "{:?} and {outcome:?}", sealed.record.event);
            self.follow(sealed);
        }
        self.agree();
    }

    /// Nobody acts but the present holder, within the hard deadline and the epoch.
    fn holder_only(
        &self,
        command: &Command,
        outcome: &Result<Outcome, Refusal>,
        before: &Handoffs,
    ) {
        let Wish::Held(held) = &command.wish else { return };
        let Held { handoff, proof, act, .. } = &**held;
        let claim = before[handoff].state.claim();
        let holds = claim.is_some_and(|claim| {
            (claim.claim_id, claim.fence) == (proof.claim_id, proof.fence)
                && self.stage.now < claim.hard_until
                && claim.fence.epoch() == self.stage.world.epoch
        });
        match outcome {
            Ok(outcome) => assert!(holds || outcome.repeated, "{act:?} by a stale claim"),
            Err(refusal) if holds => {
                let may = matches!(act, Act::Complete { .. } | Act::PutBack { .. });
                assert!(may, "{act:?}: {refusal}");
            }
            Err(_) => {}
        }
    }

    /// Takes one event from the log: read from its stored form, checked against its chain, applied.
    fn follow(&mut self, sealed: &Sealed) {
        let stored = sealed.record.encode();
        let record: Record = serde_json::from_slice(&stored).expect("a stored event reads");
        assert_eq!(record, sealed.record);

        let chain = self.chains.get(&record.task_id);
        let (index, head, previous) = match chain {
            Some((index, head, position)) => (*index, *head, Some(*position)),
            None => (0, Hash::ZERO, None),
        };
        assert_eq!((record.index, sealed.previous), (index, previous));
        assert_eq!(sealed.hash, event::link(head, &stored));
        self.chains.insert(record.task_id, (index + 1, sealed.hash, sealed.position));

        let mut task = self.tasks.get(&record.task_id).cloned();
        let mut handoff = record.handoff_id.and_then(|id| self.handoffs.get(&id).cloned());
        let (task_before, handoff_before) = (task.clone(), handoff.clone());
        event::apply(sealed, &mut task, &mut handoff);
        if let (Some(before), Some(after)) = (&handoff_before, &handoff) {
            self.moved(before, after, &record.event);
        }
        if let (Some(before), Some(after)) = (&task_before, &task) {
            owner_moves(before, after, &record.event, handoff.as_deref());
        }
        match &record.event {
            Event::Claimed(claimed) => {
                let handoff = handoff_before.expect("a claimed handoff was offered");
                assert!(claimed.fence > handoff.fence, "fences rise");
                assert_eq!(claimed.attempt, handoff.next_attempt());
                if let State::Answered(kept) = &handoff.state {
                    let early = record.at < kept.until;
                    assert!(!early || kept.agent == claimed.agent, "an answer is kept");
                }
                let proof = Proof { claim_id: claimed.claim_id, fence: claimed.fence };
                self.claims.push((handoff.id, proof));
            }
            Event::Completed { fence, .. } => {
                let handoff = handoff_before.expect("a completed handoff was offered");
                assert_eq!(*fence, handoff.fence, "only the last claim completes");
                assert!(self.completed.insert(handoff.id), "completed twice");
            }
            _ => {}
        }
        self.tasks.extend(task.map(|task| (task.id, task)));
        self.handoffs.extend(handoff.map(|handoff| (handoff.id, handoff)));
    }

    fn moved(&mut self, before: &Handoff, after: &Handoff, event: &Event) {
        let (from, to) = (before.state.name(), after.state.name());
        if from != to {
            let known = MOVES.contains(&(from, to)) || RARE.contains(&(from, to));
            assert!(known, "{from} → {to} by {event:?}");
            assert!(!before.state.is_terminal(), "{from} had ended, then {event:?}");
            self.moves.insert((from, to));
        }
    }

    /// What the world shows is what its log says, and every task has one owner.
    fn agree(&self) {
        let world = &self.stage.world;
        assert_eq!(world.tasks, self.tasks);
        assert!(world.handoffs.keys().eq(self.handoffs.keys()), "a handoff cannot be found");
        let mut live = BTreeMap::new();
        for (shown, logged) in world.handoffs.values().zip(self.handoffs.values()) {
            assert!(same_but_for_leases(shown, logged), "{shown:?} but the log says {logged:?}");
            if shown.state.is_terminal() {
                continue;
            }
            assert!(!matches!(shown.state, State::Failed { .. }), "a failed attempt led nowhere");
            assert!(shown.due_at().is_some(), "{shown:?} could wait for ever");
            assert_eq!(live.insert(shown.task_id, shown.id), None, "two live handoffs");
            let owner = shown.state.worker().unwrap_or(&shown.from);
            assert_eq!(world.tasks[&shown.task_id].owner, *owner);
        }
        for task in world.tasks.values() {
            assert_eq!(task.live, live.get(&task.id).copied());
            assert!(task.live.is_none() || !task.state.is_terminal());
            assert_eq!(
                task.ended_at.is_some() || task.id == TaskId::STORE,
                task.state.is_terminal()
            );
        }
    }

    /// Nothing is lost: left alone for long enough, everything reaches an end.
    fn leave_alone(&mut self) {
        for _ in 0..4 {
            self.stage.wait(DAY);
            self.run(&Command::of_broker(commands::Sweep::now(1000)));
        }
        for handoff in self.handoffs.values() {
            assert!(handoff.state.is_terminal(), "{handoff:?} has no end");
        }
    }
}

fn owner_moves(before: &Task, after: &Task, event: &Event, handoff: Option<&Handoff>) {
    if before.owner == after.owner {
        return;
    }
    let to = match event {
        Event::Claimed(claimed) => Some(&claimed.agent),
        Event::AttemptFailed { .. }
        | Event::Declined { .. }
        | Event::Released { .. }
        | Event::PutBack { .. }
        | Event::KeepEnded
        | Event::LeaseLost { .. }
        // A question that nobody answered before its deadline.
        | Event::DeadLettered { .. }
        | Event::Cancelled { .. }
        | Event::Aborted { .. } => handoff.map(|handoff| &handoff.from),
        _ => None,
    };
    assert_eq!(Some(&after.owner), to, "{event:?} moved the owner");
}

/// A heartbeat moves a lease without an event, forward only.
fn same_but_for_leases(shown: &Handoff, logged: &Handoff) -> bool {
    fn lease(handoff: &Handoff) -> Option<Timestamp> {
        handoff.state.claim().map(|claim| claim.lease_until)
    }
    let mut renewed = logged.clone();
    if let (State::Claimed(claim) | State::InProgress(claim), Some(until)) =
        (&mut renewed.state, lease(shown))
    {
        claim.lease_until = until;
    }
    renewed == *shown && lease(shown) >= lease(logged)
}

fn stories() -> impl Strategy<Value = Vec<(Op, u64)>> {
    proptest::collection::vec((op(), pause_ms()), 1..60)
}

fn play(story: &[(Op, u64)]) -> Checked {
    let mut checked = Checked::new();
    for (op, pause_ms) in story {
        checked.step(op, *pause_ms);
    }
    checked.leave_alone();
    checked
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 5000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_promises_hold_whatever_agents_do(story in stories()) {
        play(&story);
    }
}

#[test]
fn random_stories_go_every_way_there_is() {
    let mut runner = TestRunner::deterministic();
    let (mut moves, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..6000 {
        let story = stories().new_tree(&mut runner).unwrap().current();
        let checked = play(&story);
        moves.extend(checked.moves);
        kinds.extend(checked.stage.world.log.iter().map(|sealed| sealed.record.event.kind()));
    }
    moves.retain(|way| !RARE.contains(way));
    assert_eq!(moves, MOVES.iter().copied().collect(), "a way that no story goes is not tested");
    assert_eq!(kinds.len(), 36, "a kind of event that no story has is not tested: {kinds:?}");
}
