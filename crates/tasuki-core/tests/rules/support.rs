// SPDX-License-Identifier: Apache-2.0
//! A stage to play stories on: a world, a clock that only moves when told, and short words for
//! the usual commands. The planner opens tasks, the coder and others work.

use tasuki_core::canonical::Body;
use tasuki_core::commands::Proof;
use tasuki_core::commands::{self, Act, Claim, Command, Offer, OfferTask, OpenTask, Seeker};
use tasuki_core::decide::Outcome;
use tasuki_core::envelope::{Control, Target};
use tasuki_core::event::{FailureClass, Key};
use tasuki_core::handoff::{PRIORITY_DEFAULT, StateName};
use tasuki_core::ids::{AgentId, ClaimId, HandoffId, Hash, TaskId, Timestamp};
use tasuki_core::refusal::Refusal;
use tasuki_core::task::TaskState;
use tasuki_core::terms::Terms;
use tasuki_core::world::World;
use tasuki_core::{Handoff, Task};

pub(crate) const SECOND: u64 = 1000;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;

pub(crate) fn agent(name: &str) -> AgentId {
    name.parse().unwrap()
}

/// A body that says one thing; the same text gives the same body.
pub(crate) fn body(text: &str) -> Body {
    Body::of(&serde_json::json!({ "text": text }))
}

/// Every agent on the stage has every capability a story asks for.
pub(crate) fn seeker(name: &str) -> Seeker {
    let capabilities = vec!["review".parse().unwrap(), "test".parse().unwrap()];
    Seeker { agent: agent(name), capabilities }
}

pub(crate) fn key(key: &str, request: &str) -> Option<Key> {
    Some(Key { key: key.parse().unwrap(), request: body(request).hash })
}

pub(crate) fn complete(result: &str) -> Act {
    Act::Complete { result: body(result), follow_ups: Vec::new(), checked: None }
}

pub(crate) fn fail(class: FailureClass) -> Act {
    Act::Fail { class, failure: body("it broke"), retry_after_ms: None, entropy: 0 }
}

#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) now: Timestamp,
    ids: u128,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { world: World::default(), now: Timestamp(1_800_000_000_000), ids: 0 }
    }

    #[allow(
        clippy::needless_pass_by_value,
        reason = "a story makes its commands where it runs them"
    )]
    pub(crate) fn run(&mut self, command: Command) -> Result<Outcome, Refusal> {
        self.world.execute(&command, self.now)
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
    }

    pub(crate) fn sweep(&mut self) -> Vec<HandoffId> {
        self.run(Command::of_broker(commands::Sweep::now(100))).unwrap().handoffs
    }

    pub(crate) fn wait_and_sweep(&mut self, ms: u64) {
        self.wait(ms);
        self.sweep();
    }

    pub(crate) fn next_id(&mut self) -> u128 {
        self.ids += 1;
        self.ids
    }

    /// A task of the planner's.
    pub(crate) fn open(&mut self) -> TaskId {
        let task = TaskId(self.next_id());
        let open = OpenTask {
            task,
            intent: body("do it"),
            correlation_id: None,
            project: None,
            parent: None,
            coordinator: None,
            channel: None,
            on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
        };
        self.run(Command::by(agent("planner"), open)).unwrap();
        task
    }

    /// An offer that nobody made yet, with the hop and the link that the task's envelopes ask for.
    pub(crate) fn offer(&mut self, task: OfferTask, from: &str, to: Target) -> Offer {
        let handoff = HandoffId(self.next_id());
        let (before, control) = match &task {
            OfferTask::Existing(task) => (Some(*task), Control::Passed),
            OfferTask::New { parent, .. } if parent.is_some() => (*parent, Control::Awaited),
            OfferTask::New { .. } => (None, Control::Passed),
        };
        let known = before.and_then(|task| self.world.tasks.get(&task));
        let above = known.map_or_else(Vec::new, |task| task.above().to_vec());
        let before = known.and_then(|task| task.envelope);
        Offer {
            handoff,
            task,
            from: agent(from),
            to,
            control,
            envelope: body(&format!("envelope {handoff}")),
            hop: before.map_or(0, |(_, hop)| hop + 1),
            previous: before.map(|(hash, _)| hash),
            priority: PRIORITY_DEFAULT,
            terms: Terms::default(),
            contract: tasuki_core::contract::Contract::default(),
            after: None,
            lifted: Vec::new(),
            above,
            dead_end: None,
            answered_by: Vec::new(),
            expires_at: self.now.plus_ms(DAY),
            not_before: None,
            needs_approval: false,
            ordering_key: None,
        }
    }

    /// The planner's offer of a new task, changed by the story before it is sent.
    pub(crate) fn offer_to(&mut self, to: Target, change: impl FnOnce(&mut Offer)) -> HandoffId {
        let task = self.new_task(None);
        let mut offer = self.offer(task, "planner", to);
        change(&mut offer);
        self.send(offer)
    }

    /// A new task that the planner hands to the coder.
    pub(crate) fn offered(&mut self) -> HandoffId {
        self.offer_to(to("coder"), |_| {})
    }

    pub(crate) fn new_task(&mut self, parent: Option<TaskId>) -> OfferTask {
        let intent = parent.map_or(body("do it").hash, |id| self.world.tasks[&id].intent);
        let task = TaskId(self.next_id());
        OfferTask::New {
            task,
            intent,
            correlation_id: None,
            project: None,
            branch_of: None,
            parent,
            coordinator: None,
            on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
        }
    }

    pub(crate) fn send(&mut self, offer: Offer) -> HandoffId {
        let outcome = self.run(Command::offer(offer)).unwrap();
        outcome.handoffs[0]
    }

    pub(crate) fn wish(&mut self, name: &str, count: usize) -> Claim {
        let claim_ids = (0..count).map(|_| ClaimId(self.next_id())).collect();
        Claim { seeker: seeker(name), claim_ids, lease_ms: None, request_id: None }
    }

    pub(crate) fn try_claim(&mut self, handoff: HandoffId, name: &str) -> Result<Outcome, Refusal> {
        let claim = self.wish(name, 1);
        self.run(Command::claim_one(handoff, claim))
    }

    pub(crate) fn claim(&mut self, handoff: HandoffId, name: &str) -> Proof {
        self.try_claim(handoff, name).unwrap();
        self.proof(handoff)
    }

    /// What the present holder of a handoff can show.
    pub(crate) fn proof(&self, handoff: HandoffId) -> Proof {
        let claim = self.handoff(handoff).state.claim().unwrap();
        Proof { claim_id: claim.claim_id, fence: claim.fence }
    }

    pub(crate) fn claim_next(&mut self, name: &str, count: usize) -> Vec<HandoffId> {
        let wish = self.wish(name, count);
        self.run(Command::claim(wish)).unwrap().handoffs
    }

    pub(crate) fn act(
        &mut self,
        handoff: HandoffId,
        proof: Proof,
        act: Act,
    ) -> Result<Outcome, Refusal> {
        self.run(Command::held(handoff, proof, None, act))
    }

    pub(crate) fn decline(&mut self, handoff: HandoffId, name: &str) -> Result<Outcome, Refusal> {
        self.run(Command::by(agent(name), commands::Decline { handoff, reason: None }))
    }

    pub(crate) fn cancel(&mut self, handoff: HandoffId, by: &str) -> Result<Outcome, Refusal> {
        self.run(Command::by(agent(by), commands::Cancel { handoff, reason: None }))
    }

    pub(crate) fn redrive(&mut self, handoff: HandoffId) -> Result<Outcome, Refusal> {
        let new = HandoffId(self.next_id());
        let above = self.task(handoff).above().to_vec();
        self.run(Command::by(
            agent("person"),
            commands::Redrive { handoff, new, to: None, expires_in_ms: None, above },
        ))
    }

    pub(crate) fn discard(&mut self, handoff: HandoffId) -> Result<Outcome, Refusal> {
        self.run(Command::by(
            agent("person"),
            commands::Discard { handoff, reason: body("pointless") },
        ))
    }

    /// Makes a dead letter of a handoff that the coder could claim.
    pub(crate) fn kill(&mut self, handoff: HandoffId) {
        let proof = self.claim(handoff, "coder");
        self.act(handoff, proof, fail(FailureClass::Permanent)).unwrap();
    }

    pub(crate) fn handoff(&self, id: HandoffId) -> &Handoff {
        &self.world.handoffs[&id]
    }

    pub(crate) fn state(&self, id: HandoffId) -> StateName {
        self.handoff(id).state.name()
    }

    /// The task that a handoff moves.
    pub(crate) fn task(&self, handoff: HandoffId) -> &Task {
        &self.world.tasks[&self.handoff(handoff).task_id]
    }

    pub(crate) fn task_state(&self, handoff: HandoffId) -> TaskState {
        self.task(handoff).state
    }

    pub(crate) fn owner(&self, handoff: HandoffId) -> &str {
        self.task(handoff).owner.as_str()
    }

    pub(crate) fn envelope(&self, handoff: HandoffId) -> Hash {
        self.handoff(handoff).envelope
    }

    /// What happened to a handoff, in order.
    pub(crate) fn story(&self, handoff: HandoffId) -> Vec<&'static str> {
        let about = self.world.log.iter().filter(|s| s.record.handoff_id == Some(handoff));
        about.map(|sealed| sealed.record.event.kind()).collect()
    }
}

/// One agent and no other.
pub(crate) fn to(name: &str) -> Target {
    Target::Agent(agent(name))
}

/// Any agent that can do this.
pub(crate) fn to_any(capability: &str) -> Target {
    Target::Capability(capability.parse().unwrap())
}

/// The code of a refusal.
#[track_caller]
pub(crate) fn code(result: Result<Outcome, Refusal>) -> &'static str {
    result.expect_err("expected a refusal").code()
}
