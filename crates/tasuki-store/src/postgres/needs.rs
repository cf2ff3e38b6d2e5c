// SPDX-License-Identifier: Apache-2.0
//! What the commands of a batch name, before anything is locked or read.

use std::collections::{BTreeMap, BTreeSet};

use tasuki_core::command::{Act, Command, Erasable, Offer, RegistryWish, Seeker};
use tasuki_core::decide::reads;
use tasuki_core::ids::{IdempotencyKey, RequestId};
use tasuki_core::registry::{Registry, Standing};
use tasuki_core::turn::Queue;
use tasuki_core::{AgentId, DocumentId, HandoffId, Position, Target, TaskId};

use super::rows::target_text;
use crate::wishes::key_of;

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
    pub(super) sweep: usize,
    /// Whose claims are needed: these agents', or, if there are none here, everybody's.
    pub(super) held: Option<BTreeSet<AgentId>>,
    /// Whether who is known must be read as it is at this very moment.
    pub(super) registry: bool,
}

/// A queue, as target and haste, and a sender.
pub(super) type Entrance = (String, i16, String);

impl Needs {
    pub(super) fn of<'c>(commands: impl Iterator<Item = &'c Command>, known: &Registry) -> Self {
        let mut needs = Self::default();
        for command in commands {
            needs.add(command);
            needs.registry |= may_change(known, command);
        }
        needs
    }

    /// Whether anybody looks for work.
    pub(super) fn seeks(&self) -> bool {
        !self.wanted.is_empty()
    }

    fn add(&mut self, command: &Command) {
        let named = reads(command);
        self.tasks.extend(named.task);
        self.tasks.extend(named.tasks);
        self.handoffs.extend(named.handoff);
        self.documents.extend(named.documents);
        self.bodies.extend(named.bodies);
        self.keys.extend(key_of(command).map(|(agent, key)| (agent.clone(), key.clone())));
        match command {
            Command::Claim(claim) => {
                let request = claim.request_id.clone();
                self.requests.extend(request.map(|id| (claim.seeker.agent.clone(), id)));
                self.seek(&claim.seeker, claim.claim_ids.len());
            }
            Command::Peek { seeker, max } => self.seek(seeker, *max),
            Command::Sweep { max } => {
                self.sweep += max;
                self.comes_back = true;
            }
            Command::RenewAll { .. } => self.held = Some(BTreeSet::new()),
            Command::RaiseEpoch { .. } => {
                self.comes_back = true;
                self.tasks.insert(TaskId::STORE);
                self.held = Some(BTreeSet::new());
            }
            Command::Registry { wish, .. } => {
                self.tasks.insert(TaskId::STORE);
                self.registry = true;
                self.release(wish);
            }
            // What happens to documents stands in the chain of the store itself.
            Command::Document { .. } => drop(self.tasks.insert(TaskId::STORE)),
            Command::Erase(erase) => {
                if let Erasable::Revision { .. } = erase.what {
                    self.tasks.insert(TaskId::STORE);
                }
            }
            Command::Approve { .. }
            | Command::Redrive { .. }
            | Command::SettleCounter { .. }
            | Command::Decline { .. }
            | Command::Join { .. }
            | Command::Held {
                act: Act::Release | Act::Decline { .. } | Act::Fail { .. }, ..
            } => {
                self.comes_back = true;
            }
            Command::Offer(offer) | Command::Amend { offer, .. } => self.line_up(offer),
            Command::Publish { offers, .. } => offers.iter().for_each(|offer| self.line_up(offer)),
            Command::Held { act: Act::Complete { follow_ups, .. }, .. } => {
                follow_ups.iter().for_each(|offer| self.line_up(offer));
            }
            _ => {}
        }
    }

    /// Who is no longer known loses its claims.
    fn release(&mut self, wish: &RegistryWish) {
        let agent = match wish {
            RegistryWish::Revoke { agent, .. } => agent,
            RegistryWish::SetStanding { agent, standing: Standing::Deregistered } => agent,
            _ => return,
        };
        self.comes_back = true;
        match &mut self.held {
            // Everybody's are needed anyway.
            Some(agents) if agents.is_empty() => {}
            held => drop(held.get_or_insert_default().insert(agent.clone())),
        }
    }

    fn line_up(&mut self, offer: &Offer) {
        for to in std::iter::once(&offer.to).chain(&offer.contract.fallbacks) {
            let queue = Queue::of(to, offer.priority);
            self.queues.insert(entrance(&queue, &offer.from));
            if let Some(key) = &offer.ordering_key {
                let line = (target_text(to), key.as_str().to_owned());
                self.lines.entry(line).or_insert(1);
            }
        }
    }

    fn seek(&mut self, seeker: &Seeker, max: usize) {
        let own = std::iter::once(Target::Agent(seeker.agent.clone()));
        let able = seeker.capabilities.iter().cloned().map(Target::Capability);
        for target in own.chain(able) {
            let wanted = self.wanted.entry(target_text(&target)).or_default();
            *wanted = (*wanted + max).min(CANDIDATES_MAX);
        }
        self.seekers.insert(seeker.agent.clone());
    }
}

/// Whether a command may change what is known of targets and resources, as far as can be told
/// before it is decided.
fn may_change(known: &Registry, command: &Command) -> bool {
    match command {
        Command::Held { handoff, act, .. } => match act {
            Act::Fail { .. } | Act::Reserve { .. } | Act::Unreserve { .. } => true,
            Act::Complete { .. } => {
                !known.breakers.is_empty() || known.reservations.contains_key(handoff)
            }
            Act::Decline { .. } | Act::Release => known.reservations.contains_key(handoff),
            Act::Start | Act::ReadBack(_) | Act::Heartbeat | Act::Progress { .. } => false,
        },
        Command::Cancel { handoff, .. } | Command::Abort { handoff, .. } => {
            known.reservations.contains_key(handoff)
        }
        Command::CancelTask { .. } | Command::RaiseEpoch { .. } => !known.reservations.is_empty(),
        Command::Sweep { .. } => true,
        Command::Offer(_) | Command::Publish { .. } | Command::Amend { .. } => {
            !known.breakers.is_empty()
        }
        _ => false,
    }
}

pub(super) fn entrance(queue: &Queue, from: &AgentId) -> Entrance {
    (target_text(&queue.to), i16::from(queue.haste), from.as_str().to_owned())
}
