// SPDX-License-Identifier: Apache-2.0
//! Random wishes. An [`Op`] names things by small numbers, so that it makes sense in any world and
//! shrinks well; [`Op::command`] turns it into a command about what is there.

use proptest::prelude::*;
use tasuki_core::budget::{Budget, Cost, Spent};
use tasuki_core::commands::{self, Act, Command, Offer, OfferTask, OpenTask, Proof, UsedBy};
use tasuki_core::envelope::Target;
use tasuki_core::event::{FailureClass, Key};
use tasuki_core::handoff::StateName;
use tasuki_core::ids::{AgentId, ClaimId, Fence, HandoffId, TaskId};
use tasuki_core::talk::QuestionKind;
use tasuki_core::terms::Terms;
use tasuki_core::tree::OnParentEnd;

use crate::support::{SECOND, Stage, agent, body, key, seeker, to, to_any};

/// Which one: taken modulo how many there are, the newest first.
type Pick = u8;

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Open { by: Pick, key: Option<u8> },
    Offer { task: Option<Pick>, by: Who, shape: Shape },
    Call { parent: Pick, by: Who, shape: Shape },
    Claim { by: Pick, count: usize, request: Option<u8> },
    ClaimOne { handoff: Pick, by: Who, request: Option<u8> },
    Peek { by: Pick },
    Held { claim: Pick, forged: bool, act: Wish },
    Decline { handoff: Pick, by: Who },
    Answer { handoff: Pick, by: Who, answer: u8 },
    Message { handoff: Pick, by: Who, text: u8 },
    Approve { handoff: Pick, by: Who },
    Reject { handoff: Pick, by: Who },
    Cancel { handoff: Pick, by: Who },
    Abort { handoff: Pick, by: Who },
    CancelTask { task: Pick, by: Who },
    Redrive { handoff: Pick },
    Discard { handoff: Pick },
    Sweep { max: usize },
    RaiseEpoch,
}

/// Most wishes come from somebody who may; some do not.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Who {
    /// The owner of a task, the target or the sender of a handoff.
    Right,
    Any(Pick),
}

#[derive(Debug, Clone)]
pub(crate) struct Shape {
    to: Pick,
    gated: bool,
    delay_ms: u64,
    deadline_ms: u64,
    priority: u8,
    ordered: bool,
    key: Option<u8>,
    misplaced: bool,
    let_go: bool,
    budget: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Wish {
    Start,
    Heartbeat,
    Progress,
    Complete { result: u8, next: Option<Shape>, calls: Vec<Shape> },
    Fail { class: FailureClass, entropy: u64 },
    Decline,
    Release,
    Ask { default: bool, by_id: bool },
    Acknowledge,
    Attach { name: u8, content: u8 },
    PutBack,
}

const AGENTS: [&str; 3] = ["planner", "coder", "tester"];

impl Op {
    /// The command this stands for in this world, unless there is nothing it could be about.
    pub(crate) fn command(
        &self,
        stage: &mut Stage,
        claims: &[(HandoffId, Proof)],
    ) -> Option<Command> {
        Some(match self {
            Self::Open { by, key: k } => {
                let open = OpenTask {
                    task: TaskId(stage.next_id()),
                    intent: body("do it"),
                    correlation_id: None,
                    project: None,
                    parent: None,
                    coordinator: None,
                    channel: None,
                    on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
                };
                let key = k.and_then(|k| key(&k.to_string(), "open"));
                Command::by(any(*by), open).with_key(key)
            }
            Self::Offer { task: None, by, shape } => {
                let task = stage.new_task(None);
                let from = who(*by, &agent("planner"));
                Command::offer(shape.offer(stage, task, &from)).with_key(shape.key())
            }
            Self::Offer { task: Some(task), by, shape } => {
                let (task, owner) = pick_task(stage, *task)?;
                let from = who(*by, &owner);
                let offer = shape.offer(stage, OfferTask::Existing(task), &from);
                Command::offer(offer).with_key(shape.key())
            }
            Self::Call { parent, by, shape } => {
                let (parent, owner) = pick_task(stage, *parent)?;
                let from = who(*by, &owner);
                let task = stage.new_task(Some(parent));
                Command::offer(shape.offer(stage, task, &from)).with_key(shape.key())
            }
            Self::Claim { by, count, request } => {
                let mut wish = stage.wish(AGENTS[usize::from(*by) % AGENTS.len()], *count);
                wish.request_id = request.map(|r| r.to_string().parse().unwrap());
                Command::claim(wish)
            }
            Self::ClaimOne { handoff, by, request } => {
                let handoff = pick_handoff(stage, *handoff)?;
                let mut claim = stage.wish(target(stage, handoff, *by).as_str(), 1);
                claim.request_id = request.map(|r| r.to_string().parse().unwrap());
                Command::claim_one(handoff, claim)
            }
            Self::Peek { by } => Command::peek(seeker(any(*by).as_str()), 2),
            Self::Held { claim, forged, act } => {
                let (handoff, mut proof) = *pick(claims, *claim)?;
                if *forged {
                    proof = Proof { claim_id: ClaimId(0), fence: Fence(proof.fence.0 + 1) };
                }
                let above = stage.task(handoff).above().to_vec();
                let spent = Spent { tokens: u64::from(*claim), cost: Cost(1) };
                let used = (claim % 2 == 0).then_some(UsedBy { spent, above });
                Command::held_using(handoff, proof, None, act.act(stage, handoff), used)
            }
            Self::Decline { handoff, by } => {
                let handoff = pick_handoff(stage, *handoff)?;
                Command::by(
                    target(stage, handoff, *by),
                    commands::Decline { handoff, reason: None },
                )
            }
            Self::Answer { handoff, by, answer } => {
                let handoff = pick_asking(stage, *handoff)?;
                let answer = commands::Answer {
                    handoff,
                    question: body("which one?").hash,
                    answer: body(&answer.to_string()),
                    by_right: false,
                };
                Command::by(who(*by, &stage.handoff(handoff).from), answer)
            }
            Self::Message { handoff, by, text } => {
                let handoff = pick_handoff(stage, *handoff)?;
                let message = body(&text.to_string());
                let send = commands::SendMessage { handoff, message, by_right: false };
                Command::by(who(*by, &stage.handoff(handoff).from), send)
            }
            Self::Approve { handoff, by } => {
                let handoff = pick_handoff(stage, *handoff)?;
                Command::by(who(*by, &agent("person")), commands::Approve { handoff })
            }
            Self::Reject { handoff, by } => {
                let handoff = pick_handoff(stage, *handoff)?;
                Command::by(
                    who(*by, &agent("person")),
                    commands::Reject { handoff, reason: body("no") },
                )
            }
            Self::Cancel { handoff, by } => {
                let handoff = pick_handoff(stage, *handoff)?;
                let by = who(*by, &stage.handoff(handoff).from);
                Command::by(by, commands::Cancel { handoff, reason: None })
            }
            Self::Abort { handoff, by } => {
                let handoff = pick_handoff(stage, *handoff)?;
                let by = who(*by, &stage.task(handoff).opened_by);
                Command::by(by, commands::Abort { handoff, reason: None })
            }
            Self::CancelTask { task, by } => {
                let (task, owner) = pick_task(stage, *task)?;
                let known = &stage.world.tasks[&task];
                let letter = known.last.filter(|_| known.live.is_none());
                Command::by(who(*by, &owner), commands::CancelTask { task, reason: None, letter })
            }
            Self::Redrive { handoff } => {
                let handoff = pick_handoff(stage, *handoff)?;
                let new = HandoffId(stage.next_id());
                let above = stage.task(handoff).above().to_vec();
                Command::by(
                    agent("person"),
                    commands::Redrive { handoff, new, to: None, expires_in_ms: None, above },
                )
            }
            Self::Discard { handoff } => {
                let handoff = pick_handoff(stage, *handoff)?;
                Command::by(
                    agent("person"),
                    commands::Discard { handoff, reason: body("pointless") },
                )
            }
            Self::Sweep { max } => Command::of_broker(commands::Sweep::now(*max)),
            Self::RaiseEpoch => {
                Command::of_broker(commands::RaiseEpoch { epoch: stage.world.epoch.0 + 1 })
            }
        })
    }
}

impl Shape {
    fn key(&self) -> Option<Key> {
        self.key.and_then(|k| key(&k.to_string(), &format!("offer {}", k % 2)))
    }

    fn offer(&self, stage: &mut Stage, task: OfferTask, from: &AgentId) -> Offer {
        let to = match self.to % 4 {
            0 => to("coder"),
            1 => to("tester"),
            _ => to_any("review"),
        };
        let now = stage.now;
        let mut offer = stage.offer(task, from.as_str(), to);
        offer.needs_approval = self.gated;
        offer.not_before = (self.delay_ms > 0).then(|| now.plus_ms(self.delay_ms));
        offer.expires_at = now.plus_ms(self.deadline_ms);
        offer.priority = self.priority;
        offer.ordering_key = self.ordered.then(|| "one".parse().unwrap());
        offer.hop += u32::from(self.misplaced);
        if let OfferTask::New { on_parent_end, .. } = &mut offer.task
            && self.let_go
        {
            *on_parent_end = OnParentEnd::LetGo;
        }
        offer.contract.budget = self.budget.then_some(Budget { tokens: Some(5), cost: None });
        offer.terms = Terms {
            lease_ms: 10 * SECOND,
            work_ms: 60 * SECOND,
            attempts: 2,
            losses: 2,
            ..offer.terms
        };
        offer
    }
}

impl Wish {
    fn act(&self, stage: &mut Stage, handoff: HandoffId) -> Act {
        match self {
            Self::Start => Act::Start,
            Self::Heartbeat => Act::Heartbeat,
            Self::Progress => Act::Progress { percent: None, note: None },
            Self::Complete { result, next, calls } => {
                let (task, from) = {
                    let task = stage.task(handoff);
                    (task.id, task.owner.clone())
                };
                let mut follow_ups = Vec::new();
                for shape in calls {
                    let below = stage.new_task(Some(task));
                    follow_ups.push(shape.offer(stage, below, &from));
                }
                if let Some(shape) = next {
                    follow_ups.push(shape.offer(stage, OfferTask::Existing(task), &from));
                }
                Act::Complete { result: body(&result.to_string()), follow_ups, checked: None }
            }
            Self::Fail { class, entropy } => Act::Fail {
                class: *class,
                failure: body("it broke"),
                retry_after_ms: None,
                entropy: *entropy,
            },
            Self::Decline => Act::Decline { reason: None },
            Self::Release => Act::Release,
            Self::Ask { default, by_id } => Act::Ask(commands::Ask {
                kind: QuestionKind::Input,
                question: body("which one?"),
                answer_ms: Some(20 * SECOND),
                has_default: *default,
                keep_ms: Some(20 * SECOND),
                by_id: *by_id,
            }),
            Self::Acknowledge => Act::Acknowledge { up_to: 2 },
            Self::Attach { name, content } => Act::Attach(commands::Attach {
                name: name.to_string().parse().unwrap(),
                kind: "text/plain".to_owned(),
                artifact: body(&content.to_string()),
            }),
            Self::PutBack => Act::PutBack { until: stage.now.plus_ms(5 * SECOND), reason: None },
        }
    }
}

pub(crate) fn pick<T>(from: &[T], pick: Pick) -> Option<&T> {
    let newest_first = usize::from(pick) % from.len().max(1);
    from.iter().rev().nth(newest_first)
}

pub(crate) fn pick_handoff(stage: &Stage, at: Pick) -> Option<HandoffId> {
    let ids: Vec<_> = stage.world.handoffs.keys().copied().collect();
    pick(&ids, at).copied()
}

/// One that asks, if there is any.
pub(crate) fn pick_asking(stage: &Stage, at: Pick) -> Option<HandoffId> {
    let asks = |id: &HandoffId| stage.handoff(*id).state.name() == StateName::InputRequired;
    let ids: Vec<_> = stage.world.handoffs.keys().copied().filter(asks).collect();
    pick(&ids, at).copied().or_else(|| pick_handoff(stage, at))
}

pub(crate) fn pick_task(stage: &Stage, at: Pick) -> Option<(TaskId, AgentId)> {
    let ids: Vec<_> = stage.world.tasks.values().map(|t| (t.id, t.owner.clone())).collect();
    pick(&ids, at).cloned()
}

pub(crate) fn any(at: Pick) -> AgentId {
    agent(AGENTS[usize::from(at) % AGENTS.len()])
}

fn who(who: Who, right: &AgentId) -> AgentId {
    match who {
        Who::Right => right.clone(),
        Who::Any(at) => any(at),
    }
}

pub(crate) fn target(stage: &Stage, handoff: HandoffId, by: Who) -> AgentId {
    match &stage.handoff(handoff).to {
        Target::Agent(target) => who(by, target),
        Target::Capability(_) => who(by, &agent("coder")),
    }
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    use Op as O;
    let few = || 0..4_u8;
    prop_oneof![
        1 => (few(), key_choice()).prop_map(|(by, key)| O::Open { by, key }),
        6 => (proptest::option::of(few()), by(), shape())
            .prop_map(|(task, by, shape)| O::Offer { task, by, shape }),
        2 => (few(), by(), shape())
            .prop_map(|(parent, by, shape)| O::Call { parent, by, shape }),
        6 => (few(), 1..3_usize, key_choice())
            .prop_map(|(by, count, request)| O::Claim { by, count, request }),
        4 => (few(), by(), key_choice())
            .prop_map(|(handoff, by, request)| O::ClaimOne { handoff, by, request }),
        1 => few().prop_map(|by| O::Peek { by }),
        14 => (few(), proptest::bool::weighted(0.05), wish())
            .prop_map(|(claim, forged, act)| O::Held { claim, forged, act }),
        2 => (few(), by()).prop_map(|(handoff, by)| O::Decline { handoff, by }),
        5 => (few(), by(), 0..2_u8)
            .prop_map(|(handoff, by, answer)| O::Answer { handoff, by, answer }),
        1 => (few(), by(), 0..2_u8)
            .prop_map(|(handoff, by, text)| O::Message { handoff, by, text }),
        2 => (few(), by()).prop_map(|(handoff, by)| O::Approve { handoff, by }),
        1 => (few(), by()).prop_map(|(handoff, by)| O::Reject { handoff, by }),
        1 => (few(), by()).prop_map(|(handoff, by)| O::Cancel { handoff, by }),
        1 => (few(), by()).prop_map(|(handoff, by)| O::Abort { handoff, by }),
        1 => (few(), by()).prop_map(|(task, by)| O::CancelTask { task, by }),
        3 => few().prop_map(|handoff| O::Redrive { handoff }),
        2 => few().prop_map(|handoff| O::Discard { handoff }),
        5 => (1..4_usize).prop_map(|max| O::Sweep { max }),
        1 => Just(O::RaiseEpoch),
    ]
}

/// How much time passes before a wish: often none, sometimes enough to lose a lease, to pass the
/// hard deadline or to expire.
pub(crate) fn pause_ms() -> impl Strategy<Value = u64> {
    prop_oneof![5 => Just(0), 3 => 1..3000_u64, 2 => Just(10 * SECOND), 1 => Just(60 * SECOND)]
}

fn by() -> impl Strategy<Value = Who> {
    prop_oneof![4 => Just(Who::Right), 1 => (0..3_u8).prop_map(Who::Any)]
}

fn key_choice() -> impl Strategy<Value = Option<u8>> {
    proptest::option::weighted(0.2, 0..4_u8)
}

fn shape() -> impl Strategy<Value = Shape> {
    let rarely = || proptest::bool::weighted(0.1);
    let delay_ms = prop_oneof![6 => Just(0), 1 => Just(5 * SECOND)];
    let deadline_ms = prop_oneof![Just(20 * SECOND), Just(500 * SECOND)];
    let tree = (proptest::bool::weighted(0.3), rarely());
    (0..4_u8, rarely(), delay_ms, deadline_ms, 4..6_u8, rarely(), key_choice(), rarely(), tree)
        .prop_map(
            |(
                to,
                gated,
                delay_ms,
                deadline_ms,
                priority,
                ordered,
                key,
                misplaced,
                (let_go, budget),
            )| Shape {
                to,
                gated,
                delay_ms,
                deadline_ms,
                priority,
                ordered,
                key,
                misplaced,
                let_go,
                budget,
            },
        )
}

fn wish() -> impl Strategy<Value = Wish> {
    let class = proptest::sample::select(FailureClass::ALL);
    prop_oneof![
        2 => Just(Wish::Start),
        2 => Just(Wish::Heartbeat),
        1 => Just(Wish::Progress),
        4 => (0..2_u8, proptest::option::of(shape()), proptest::collection::vec(shape(), 0..2))
            .prop_map(|(result, next, calls)| Wish::Complete { result, next, calls }),
        3 => (class, 0..5000_u64).prop_map(|(class, entropy)| Wish::Fail { class, entropy }),
        1 => Just(Wish::Decline),
        1 => Just(Wish::Release),
        3 => (proptest::bool::ANY, proptest::bool::weighted(0.2))
            .prop_map(|(default, by_id)| Wish::Ask { default, by_id }),
        1 => Just(Wish::Acknowledge),
        1 => (0..2_u8, 0..2_u8).prop_map(|(name, content)| Wish::Attach { name, content }),
        1 => Just(Wish::PutBack),
    ]
}
