// SPDX-License-Identifier: Apache-2.0
//! A command's footprint is true: whatever is decided, it reads and touches nothing outside of it,
//! and a store that shows only what is inside decides the same. Random stories of every kind of wish
//! are watched, read by read and event by event.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tasuki_core::commands::{Command, Footprint, HeldBy, Proof, Returns, Seeker, Seeks, Wish};
use tasuki_core::decide::{Outcome, Replay, View};
use tasuki_core::document::StoredBody;
use tasuki_core::envelope::Target;
use tasuki_core::event::{Enters, Event};
use tasuki_core::ids::{Epoch, IdempotencyKey, RequestId};
use tasuki_core::quota::Usage;
use tasuki_core::registry::{Identity, Registry};
use tasuki_core::turn::{Queue, Turns};
use tasuki_core::world::World;
use tasuki_core::{
    AgentId, Decision, Document, DocumentId, Handoff, HandoffId, Position, Task, TaskId, Timestamp,
    decide,
};

use crate::random::pause_ms;
use crate::support::Stage;
use crate::wider::{Wide, wide};

/// A world that shows what a footprint allows and complains of every other question.
struct Watched<'w> {
    world: &'w World,
    command: &'w Command,
    footprint: Footprint<'w>,
    /// What may be seen so far: what is named, and what was found by looking.
    inside: RefCell<Inside>,
}

#[derive(Default)]
struct Inside {
    tasks: BTreeSet<TaskId>,
    handoffs: BTreeSet<HandoffId>,
}

impl<'w> Watched<'w> {
    fn new(world: &'w World, command: &'w Command) -> Self {
        let footprint = command.footprint();
        let watched = Self { world, command, footprint, inside: RefCell::default() };
        let footprint = &watched.footprint;
        let made = footprint.offers.iter().map(|offer| (offer.task.id(), offer.handoff));
        let (new_tasks, new_handoffs): (Vec<_>, Vec<_>) = made.unzip();
        watched.let_in_tasks(footprint.tasks);
        watched.let_in_tasks(&footprint.others);
        watched.let_in_tasks(&new_tasks);
        watched.let_in_tasks(footprint.opens.as_slice());
        watched.let_in_tasks(if footprint.store { &[TaskId::STORE] } else { &[] });
        watched.let_in(footprint.handoffs);
        watched.let_in(&new_handoffs);
        if let Returns::Anew { handoff, .. } = footprint.returns {
            watched.let_in(&[handoff]);
        }
        watched
    }

    /// With a task comes the handoff under way in it, with a handoff its task.
    fn let_in_tasks(&self, ids: &[TaskId]) {
        for id in ids {
            let live = self.world.tasks.get(id).and_then(|task| task.live);
            let mut inside = self.inside.borrow_mut();
            inside.tasks.insert(*id);
            inside.handoffs.extend(live);
        }
    }

    fn let_in(&self, ids: &[HandoffId]) {
        for id in ids {
            self.inside.borrow_mut().handoffs.insert(*id);
            let task = self.world.handoffs.get(id).map(|handoff| handoff.task_id);
            self.let_in_tasks(task.as_slice());
        }
    }

    fn complain(&self, of: impl std::fmt::Debug) -> ! {
        panic!("{of:?} is outside of what {:?} may see or touch", self.command);
    }

    fn check_written(&self, decision: &Decision) {
        let inside = self.inside.borrow();
        for new in &decision.events {
            let facts = new.event.facts();
            let known = inside.tasks.contains(&new.task)
                && new.handoff.is_none_or(|id| inside.handoffs.contains(&id))
                && facts.document.is_none_or(|id| self.footprint.documents.contains(&id));
            let erased = match &new.event {
                Event::Erased(erased) => self.footprint.bodies.contains(&erased.position),
                _ => true,
            };
            let brings = matches!(facts.enters, Enters::Offered(_))
                || matches!(
                    new.event,
                    Event::TaskOpened(_)
                        | Event::DocumentWritten(_)
                        | Event::MessageSent { .. }
                        | Event::Attached(_)
                );
            if !known || !erased || (brings && !self.footprint.brings_work) {
                self.complain(&new.event);
            }
        }
        for id in &decision.renewals {
            assert!(inside.handoffs.contains(id), "{id} was renewed");
        }
    }

    /// Targets whose queues what is seen may enter.
    fn comes_back_to(&self, handoff: &Handoff) -> Vec<Target> {
        let makers = handoff.counters.iter().map(|it| Target::Agent(it.agent.clone()));
        let mut targets: Vec<_> =
            makers.chain(handoff.contract.routing.fallbacks.clone()).collect();
        targets.push(handoff.to.clone());
        match self.footprint.returns {
            Returns::Never => Vec::new(),
            Returns::Again => targets,
            Returns::Anew { to, .. } => {
                targets.extend(to.cloned());
                targets
            }
        }
    }
}

impl View for Watched<'_> {
    fn task(&self, id: TaskId) -> Option<&Task> {
        if !self.inside.borrow().tasks.contains(&id) {
            self.complain(id);
        }
        self.world.task(id)
    }

    fn handoff(&self, id: HandoffId) -> Option<&Handoff> {
        if !self.inside.borrow().handoffs.contains(&id) {
            self.complain(id);
        }
        self.world.handoff(id)
    }

    fn replay(&self, agent: &AgentId, key: &IdempotencyKey) -> Option<Replay> {
        if self.command.keyed() != Some((agent, key)) {
            self.complain((agent, key));
        }
        self.world.replay(agent, key)
    }

    fn waiting(&self, seeker: &Seeker, max: usize) -> Vec<HandoffId> {
        let fits = |it: Seeks<'_>| {
            // It may look for less: what is paused is not looked for.
            let narrower =
                seeker.capabilities.iter().all(|one| it.seeker.capabilities.contains(one));
            it.seeker.agent == seeker.agent && narrower && it.max >= max
        };
        if !self.footprint.seeks.is_some_and(fits) {
            self.complain(seeker);
        }
        let found = self.world.waiting(seeker, max);
        self.let_in(&found);
        found
    }

    fn kept(&self, agent: &AgentId) -> Vec<HandoffId> {
        if self.footprint.seeks.is_none_or(|it| it.seeker.agent != *agent) {
            self.complain(agent);
        }
        let found = self.world.kept(agent);
        self.let_in(&found);
        found
    }

    fn ahead_of(&self, handoff: &Handoff) -> Option<HandoffId> {
        if !self.inside.borrow().handoffs.contains(&handoff.id) {
            self.complain(handoff.id);
        }
        self.world.ahead_of(handoff)
    }

    fn held_by_request(&self, agent: &AgentId, request: &RequestId) -> Vec<HandoffId> {
        let asked = self.footprint.seeks.and_then(|it| Some((&it.seeker.agent, it.request?)));
        if asked != Some((agent, request)) {
            self.complain((agent, request));
        }
        let found = self.world.held_by_request(agent, request);
        self.let_in(&found);
        found
    }

    fn due(&self, now: Timestamp, max: usize) -> Vec<HandoffId> {
        if self.footprint.due < max {
            self.complain(max);
        }
        let found = self.world.due(now, max);
        self.let_in(&found);
        found
    }

    fn held(&self) -> Vec<HandoffId> {
        let mut found = self.world.held();
        match self.footprint.held {
            HeldBy::Nobodys => self.complain("what is held"),
            HeldBy::Everybodys => {}
            HeldBy::Of(agent) => {
                found.retain(|id| self.world.handoffs[id].state.worker() == Some(agent))
            }
        }
        self.let_in(&found);
        found
    }

    fn epoch(&self) -> Epoch {
        self.world.epoch()
    }

    fn registry(&self) -> &Registry {
        self.world.registry()
    }

    fn turns(&self, queue: &Queue, from: &AgentId) -> Turns {
        let inside = self.inside.borrow();
        let mut seen = inside.handoffs.iter().filter_map(|id| self.world.handoffs.get(id));
        let again = seen.any(|handoff| {
            let back = self.comes_back_to(handoff);
            handoff.from == *from && back.iter().any(|to| Queue::of(to, handoff.priority) == *queue)
        });
        if !again && !self.footprint.entrances().any(|named| named == (queue.clone(), from)) {
            self.complain((queue, from));
        }
        self.world.turns(queue, from)
    }

    fn usage(&self, tenant: &str) -> Usage {
        self.world.usage(tenant)
    }

    fn document(&self, id: &DocumentId) -> Option<&Document> {
        if !self.footprint.documents.contains(&id) {
            self.complain(id);
        }
        self.world.document(id)
    }

    fn body(&self, at: Position) -> Option<StoredBody> {
        if !self.footprint.bodies.contains(&at) {
            self.complain(at);
        }
        self.world.body(at)
    }
}

/// Who is known changes only by commands that say so.
fn check_known(command: &Command, before: &Registry, after: &Registry) {
    let footprint = command.footprint();
    if before.last_pos != after.last_pos {
        assert!(footprint.may_change(before), "{command:?} changed what is known");
    }
    let identity = |known: &Registry| {
        let Identity { agents, tokens, tenants, channels, .. } = Identity::clone(&known.identity);
        (agents, tokens, tenants, channels)
    };
    assert!(footprint.identity || identity(before) == identity(after), "{command:?}");
}

/// Plays a story and returns the kinds of wishes that something came of.
fn play(story: &[(Wide, u64)]) -> BTreeSet<&'static str> {
    let mut stage = Stage::new();
    let mut claims: Vec<(HandoffId, Proof)> = Vec::new();
    let mut kinds = BTreeSet::new();
    for (wish, pause_ms) in story {
        stage.wait(*pause_ms);
        let Some(command) = wish.command(&mut stage, &claims) else { continue };
        let watched = Watched::new(&stage.world, &command);
        let decision = decide(&command, &watched, stage.now);
        watched.check_written(&decision);
        let whole = decide(&command, &stage.world, stage.now);
        assert_eq!(format!("{decision:?}"), format!("{whole:?}"), "{command:?}");

        let (before, seen) = (stage.world.registry.clone(), stage.world.log.len());
        let outcome = stage.run(command.clone());
        check_known(&command, &before, &stage.world.registry);
        for sealed in &stage.world.log[seen..] {
            if let (Event::Claimed(claimed), Some(id)) =
                (&sealed.record.event, sealed.record.handoff_id)
            {
                claims.push((id, Proof { claim_id: claimed.claim_id, fence: claimed.fence }));
            }
        }
        if outcome.is_ok_and(|Outcome { repeated, .. }| !repeated) {
            kinds.insert(command.wish.kind());
        }
    }
    kinds
}

fn stories() -> impl Strategy<Value = Vec<(Wide, u64)>> {
    proptest::collection::vec((wide(), pause_ms()), 1..80)
}

/// As many stories as a run of all tests has time for, or as many as `PROPTEST_CASES` asks for beyond.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.max(2000), failure_persistence: None, ..usual }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_is_read_or_touched_outside_of_a_commands_footprint(story in stories()) {
        play(&story);
    }
}

#[test]
fn every_kind_of_wish_is_watched_and_comes_true_in_some_story() {
    let mut runner = TestRunner::deterministic();
    let mut kinds = BTreeSet::new();
    for _ in 0..900 {
        kinds.extend(play(&stories().new_tree(&mut runner).unwrap().current()));
    }
    assert_eq!(kinds, Wish::KINDS.iter().copied().collect());
}
