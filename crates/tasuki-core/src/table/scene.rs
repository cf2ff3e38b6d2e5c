// SPDX-License-Identifier: Apache-2.0
//! Worlds in which one handoff or one task is in a given state.

use crate::canonical::Body;
use crate::commands::{
    self, Act, Answer, Ask, Claim, Command, Offer, OfferTask, OpenTask, Proof, Seeker,
};
use crate::contract::Contract;
use crate::decide::Outcome;
use crate::envelope::{Control, Target};
use crate::event::FailureClass;
use crate::handoff::{Handoff, PRIORITY_DEFAULT, StateName};
use crate::ids::{AgentId, Capability, ClaimId, Fence, HandoffId, TaskId, Timestamp};
use crate::refusal::Refusal;
use crate::talk::QuestionKind;
use crate::task::{Task, TaskState};
use crate::terms::Terms;
use crate::world::World;

pub(super) const TASK: TaskId = TaskId(1);
pub(super) const HANDOFF: HandoffId = HandoffId(2);
/// Opens the task and sends the handoff.
pub(super) const OPENER: &str = "opener";
/// Whom the handoff is meant for.
pub(super) const HOLDER: &str = "holder";
pub(super) const RESULT: &str = "result";

const START: Timestamp = Timestamp(1_800_000_000_000);
const HOUR_MS: u64 = 60 * 60 * 1000;
const CLAIM: ClaimId = ClaimId(3);

pub(super) struct Scene {
    pub(super) world: World,
    pub(super) now: Timestamp,
    /// The last claim, or one that nobody was given.
    pub(super) proof: Proof,
}

impl Scene {
    fn opened() -> Self {
        let open = OpenTask {
            task: TASK,
            intent: body("intent"),
            correlation_id: None,
            project: None,
            parent: None,
            coordinator: None,
            channel: None,
            on_parent_end: crate::tree::OnParentEnd::Cancel,
        };
        let proof = Proof { claim_id: CLAIM, fence: Fence(0) };
        let mut scene = Self { world: World::default(), now: START, proof };
        scene.must(&Command::by(agent(OPENER), open));
        scene
    }

    /// A world in which this offer has come to this state.
    pub(super) fn of_handoff(state: StateName, mut offer: Offer) -> Self {
        let mut scene = Self::opened();
        offer.needs_approval = state == StateName::AwaitingApproval;
        offer.not_before = (state == StateName::Scheduled).then(|| START.plus_ms(HOUR_MS));
        scene.must(&Command::offer(offer));
        let held_before = match state {
            StateName::AwaitingApproval | StateName::Scheduled | StateName::Pending => false,
            StateName::Claimed
            | StateName::InProgress
            | StateName::InputRequired
            | StateName::Answered
            | StateName::Completed
            | StateName::Failed
            | StateName::Cancelled
            | StateName::DeadLettered => true,
        };
        if held_before {
            scene.must(&Command::claim_one(HANDOFF, first_wish()));
            scene.proof.fence = scene.handoff().fence;
        }
        match state {
            StateName::AwaitingApproval
            | StateName::Scheduled
            | StateName::Pending
            | StateName::Claimed => {}
            StateName::InProgress => scene.act(Act::Start),
            StateName::InputRequired => scene.act(Act::Ask(ask())),
            StateName::Answered => {
                scene.act(Act::Ask(ask()));
                scene.must(&Command::by(agent(OPENER), answer("answer")));
            }
            StateName::Completed => scene.complete(Vec::new()),
            StateName::Failed => {
                let by = agent(OPENER);
                scene.must(&Command::by(by, commands::Abort { handoff: HANDOFF, reason: None }));
            }
            StateName::Cancelled => {
                let by = agent(OPENER);
                scene.must(&Command::by(by, commands::Cancel { handoff: HANDOFF, reason: None }));
            }
            StateName::DeadLettered => scene.act(Act::Fail {
                class: FailureClass::Permanent,
                failure: body("the last failure"),
                retry_after_ms: None,
                entropy: 0,
            }),
        }
        assert_eq!(scene.state(), state, "the scene was set wrongly");
        scene
    }

    /// A world in which the task has come to this state and no handoff is live.
    pub(super) fn of_task(state: TaskState) -> Self {
        let scene = match state {
            TaskState::Open => Self::opened(),
            TaskState::DeadLettered => Self::of_handoff(StateName::DeadLettered, offer(HANDOFF)),
            TaskState::Completed => Self::of_handoff(StateName::Completed, offer(HANDOFF)),
            TaskState::Failed => Self::of_handoff(StateName::Failed, offer(HANDOFF)),
            TaskState::Cancelled => {
                let mut scene = Self::opened();
                scene.must(&Command::by(
                    agent(OPENER),
                    commands::CancelTask { task: TASK, reason: None, letter: None },
                ));
                scene
            }
        };
        assert_eq!(scene.task().state, state, "the scene was set wrongly");
        scene
    }

    pub(super) fn handoff(&self) -> &Handoff {
        &self.world.handoffs[&HANDOFF]
    }

    pub(super) fn state(&self) -> StateName {
        self.handoff().state.name()
    }

    pub(super) fn task(&self) -> &Task {
        &self.world.tasks[&TASK]
    }

    pub(super) fn execute(&mut self, command: &Command) -> Result<Outcome, Refusal> {
        self.world.execute(command, self.now)
    }

    pub(super) fn must(&mut self, command: &Command) {
        self.execute(command).expect("a scene is set by wishes that are allowed");
    }

    pub(super) fn act(&mut self, act: Act) {
        self.must(&Command::held(HANDOFF, self.proof, None, act));
    }

    pub(super) fn complete(&mut self, follow_ups: Vec<Offer>) {
        self.act(Act::Complete { result: body(RESULT), follow_ups, checked: None });
    }

    /// The next offer of the task, by its owner.
    pub(super) fn next_offer(&self) -> Offer {
        let task = self.task();
        let mut offer = offer(HandoffId(50));
        offer.from = task.owner.clone();
        offer.previous = task.envelope.map(|(hash, _)| hash);
        offer.hop = task.envelope.map_or(0, |(_, hop)| hop + 1);
        offer
    }
}

/// The opener's first offer of the task.
pub(super) fn offer(handoff: HandoffId) -> Offer {
    Offer {
        handoff,
        task: OfferTask::Existing(TASK),
        from: agent(OPENER),
        to: Target::Agent(agent(HOLDER)),
        control: Control::Passed,
        envelope: body(&format!("envelope {handoff}")),
        hop: 0,
        previous: None,
        priority: PRIORITY_DEFAULT,
        terms: Terms::default(),
        contract: Contract::default(),
        after: None,
        lifted: Vec::new(),
        above: Vec::new(),
        dead_end: None,
        answered_by: Vec::new(),
        expires_at: START.plus_ms(24 * HOUR_MS),
        not_before: None,
        needs_approval: false,
        ordering_key: None,
    }
}

pub(super) fn agent(name: &str) -> AgentId {
    name.parse().expect("a plain name")
}

pub(super) fn capability() -> Capability {
    "capability".parse().expect("a plain name")
}

pub(super) fn seeker(name: &str) -> Seeker {
    let capabilities = if name == HOLDER { vec![capability()] } else { Vec::new() };
    Seeker { agent: agent(name), capabilities }
}

pub(super) fn wish(name: &str) -> Claim {
    Claim { seeker: seeker(name), claim_ids: vec![CLAIM], lease_ms: None, request_id: None }
}

/// The claim by which a scene's holder became one.
pub(super) fn first_wish() -> Claim {
    let request_id = Some("first".parse().expect("a plain label"));
    Claim { request_id, ..wish(HOLDER) }
}

/// A question that waits for half an hour, and its answer for as long.
pub(super) fn ask() -> Ask {
    Ask {
        kind: QuestionKind::Input,
        question: body("question"),
        answer_ms: Some(HOUR_MS / 2),
        has_default: false,
        keep_ms: Some(HOUR_MS / 2),
        by_id: false,
    }
}

pub(super) fn answer(text: &str) -> Answer {
    let (question, answer) = (body("question").hash, body(text));
    Answer { handoff: HANDOFF, question, answer, by_right: false }
}

pub(super) fn body(text: &str) -> Body {
    Body::of(&[text])
}
