// SPDX-License-Identifier: Apache-2.0
//! What the commands of a batch name, before anything is locked or read. Which command needs what is
//! in its footprint; here it becomes what statements ask for.

use std::collections::{BTreeMap, BTreeSet};

use tasuki_core::commands::{Command, Footprint, HeldBy, Returns, Seeks, targets};
use tasuki_core::ids::{IdempotencyKey, RequestId};
use tasuki_core::turn::Queue;
use tasuki_core::{AgentId, DocumentId, HandoffId, Position, Target, TaskId, Timestamp};

use super::rows::target_text;

/// How many waiting handoffs one batch looks at for one target.
const CANDIDATES_MAX: usize = 1000;

/// What the commands of a batch name.
#[derive(Default)]
pub(super) struct Needs {
    pub(super) tasks: BTreeSet<TaskId>,
    pub(super) handoffs: BTreeSet<HandoffId>,
    pub(super) requests: BTreeSet<(AgentId, RequestId)>,
    pub(super) keys: Vec<(AgentId, IdempotencyKey)>,
    pub(super) documents: BTreeSet<DocumentId>,
    /// Events whose bodies may be erased.
    pub(super) bodies: BTreeSet<Position>,
    /// How many handoffs are asked for, by target, and who asks.
    pub(super) wanted: BTreeMap<String, usize>,
    pub(super) seekers: BTreeSet<AgentId>,
    /// Lines that new offers will stand in: target and ordering key.
    pub(super) lines: BTreeMap<(String, String), i64>,
    /// Queues that new offers will enter, and who sends them.
    pub(super) queues: BTreeSet<Entrance>,
    /// Whether handoffs that are read may enter a queue anew.
    pub(super) comes_back: bool,
    /// Other targets that handoffs which are read may be sent to.
    pub(super) elsewhere: BTreeSet<Target>,
    pub(super) sweep: usize,
    /// By when it is due, if not by now.
    pub(super) sweep_until: Option<Timestamp>,
    /// Whose claims are needed: these agents', or, if there are none here, everybody's.
    pub(super) held: Option<BTreeSet<AgentId>>,
}

/// A queue, as target and haste, and a sender.
pub(super) type Entrance = (String, i16, String);

impl Needs {
    pub(super) fn of<'c>(commands: impl Iterator<Item = &'c Command>) -> Self {
        let mut needs = Self::default();
        for command in commands {
            let footprint = command.footprint();
            needs.keys.extend(command.keyed().map(|(agent, key)| (agent.clone(), key.clone())));
            needs.add(&footprint);
        }
        needs
    }

    /// Whether anybody looks for work.
    pub(super) fn seeks(&self) -> bool {
        !self.wanted.is_empty()
    }

    fn add(&mut self, footprint: &Footprint<'_>) {
        self.tasks.extend(footprint.all_tasks());
        self.tasks.extend(footprint.store.then_some(TaskId::STORE));
        self.handoffs.extend(footprint.handoffs);
        self.documents.extend(footprint.documents.iter().copied().cloned());
        self.bodies.extend(footprint.bodies);
        self.sweep += footprint.due;
        if let Some(until) = footprint.due_until {
            self.sweep_until = Some(self.sweep_until.map_or(until, |known| known.min(until)));
        }
        for (queue, from) in footprint.entrances() {
            self.queues.insert(entrance(&queue, from));
        }
        for offer in footprint.offers {
            for (to, key) in targets(offer).zip(offer.ordering_key.iter().cycle()) {
                let line = (target_text(to), key.as_str().to_owned());
                self.lines.entry(line).or_insert(1);
            }
        }
        match footprint.returns {
            Returns::Never => {}
            Returns::Again => self.comes_back = true,
            Returns::Anew { to, .. } => {
                self.comes_back = true;
                self.elsewhere.extend(to.cloned());
            }
        }
        match (footprint.held, &mut self.held) {
            (HeldBy::Nobodys, _) => {}
            (HeldBy::Everybodys, held) => *held = Some(BTreeSet::new()),
            // Everybody's are needed anyway.
            (HeldBy::Of(_), Some(agents)) if agents.is_empty() => {}
            (HeldBy::Of(agent), held) => {
                held.get_or_insert_default().insert(agent.clone());
            }
        }
        if let Some(seeks) = &footprint.seeks {
            self.seek(seeks);
        }
    }

    fn seek(&mut self, seeks: &Seeks<'_>) {
        let agent = &seeks.seeker.agent;
        self.requests.extend(seeks.request.map(|request| (agent.clone(), request.clone())));
        let own = std::iter::once(Target::Agent(agent.clone()));
        let able = seeks.seeker.capabilities.iter().cloned().map(Target::Capability);
        for target in own.chain(able) {
            let wanted = self.wanted.entry(target_text(&target)).or_default();
            *wanted = (*wanted + seeks.max).min(CANDIDATES_MAX);
        }
        self.seekers.insert(agent.clone());
    }
}

pub(super) fn entrance(queue: &Queue, from: &AgentId) -> Entrance {
    (target_text(&queue.to), i16::from(queue.urgency_rank), from.as_str().to_owned())
}
