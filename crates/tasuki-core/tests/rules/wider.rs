// SPDX-License-Identifier: Apache-2.0
//! Random wishes of every kind there is: the usual ones of [`crate::random`], and all others.

use proptest::prelude::*;
use tasuki_core::breaker::{House, Limits};
use tasuki_core::canonical::Body;
use tasuki_core::commands::{
    self, Act, Command, DocumentWish, Erasable, Offer, OfferTask, OpenTask, Proof, RegistryWish,
    Settle, Write,
};
use tasuki_core::contract::After;
use tasuki_core::document::{Kind, Priority, Scope};
use tasuki_core::event::{Actor, TaintPolicy};
use tasuki_core::identity::SecretKey;
use tasuki_core::ids::{
    AgentId, DocumentId, HandoffId, Hash, Position, TaskId, Timestamp, TokenId,
};
use tasuki_core::registry::alerts::{
    AlertKey, AlertMoved, AlertWish, NoticeTaken, NoticeTold, Silenced,
};
use tasuki_core::registry::pushes::{PushKey, PushSet, PushTaken, PushTold, PushWish};
use tasuki_core::registry::rules::{Permission, Rule};
use tasuki_core::registry::{Purpose, Quotas, Standing, Tenant, Token};
use tasuki_core::task::TaskState;
use tasuki_core::terms::Terms;

use crate::random::{Op, any, op, pick, pick_handoff, pick_task, target};
use crate::support::{SECOND, Stage, agent, body, key, seeker, to, to_any};

#[derive(Debug, Clone)]
pub(crate) enum Wide {
    Usual(Op),
    More { what: What, this: u8, that: u8, flag: bool },
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    RichOffer,
    Publish,
    Counter,
    SettleCounter,
    RedriveTo,
    Amend,
    TakeReview,
    Retract,
    ClearTaint,
    SpreadTaint,
    EndCircle,
    Join,
    SettleBelow,
    Lift,
    NoteFetch,
    NoteTold,
    CompleteTask,
    EndPublication,
    ReadBack,
    Reserve,
    Unreserve,
    Registry,
    Document,
    EraseHandoff,
    EraseRevision,
    RenewAll,
}

const ALL: &[What] = &[
    What::RichOffer,
    What::Publish,
    What::Counter,
    What::SettleCounter,
    What::RedriveTo,
    What::Amend,
    What::TakeReview,
    What::Retract,
    What::ClearTaint,
    What::SpreadTaint,
    What::EndCircle,
    What::Join,
    What::SettleBelow,
    What::Lift,
    What::NoteFetch,
    What::NoteTold,
    What::CompleteTask,
    What::EndPublication,
    What::ReadBack,
    What::Reserve,
    What::Unreserve,
    What::Registry,
    What::Document,
    What::EraseHandoff,
    What::EraseRevision,
    What::RenewAll,
];

pub(crate) fn wide() -> impl Strategy<Value = Wide> {
    let what = proptest::sample::select(ALL);
    let often = prop_oneof![2 => Just(What::RichOffer), 5 => what];
    prop_oneof![
        3 => op().prop_map(Wide::Usual),
        2 => (often, any_pick(), any_pick(), proptest::bool::ANY)
            .prop_map(|(what, this, that, flag)| Wide::More { what, this, that, flag }),
    ]
}

fn any_pick() -> impl Strategy<Value = u8> {
    0..17_u8
}

impl Wide {
    /// At a broker where one failure opens a breaker for a moment: what breakers do happens often.
    pub(crate) fn command(
        &self,
        stage: &mut Stage,
        claims: &[(HandoffId, Proof)],
    ) -> Option<Command> {
        let breakers = Limits { failures: 1, open_ms: SECOND };
        let terms = Terms { lease_ms: SECOND, work_ms: SECOND, ..Terms::default() };
        let house = House { breakers, terms, ..House::default() };
        Some(self.wish(stage, claims)?.in_house(house))
    }

    fn wish(&self, stage: &mut Stage, claims: &[(HandoffId, Proof)]) -> Option<Command> {
        let (what, this, that, flag) = match self {
            Self::Usual(op) => return op.command(stage, claims),
            Self::More { what, this, that, flag } => (*what, *this, *that, *flag),
        };
        match what {
            What::RichOffer => Some(Command::offer(rich_offer(stage, this, that, flag))),
            What::Publish => Some(publish(stage, this, flag)),
            What::Registry => Some(registry(stage, this, that, flag)),
            What::Document => Some(document(stage, this, that, flag)),
            What::RenewAll => {
                let since = tasuki_core::Timestamp(stage.now.0 - i64::from(this) * 10_000);
                Some(Command::of_broker(commands::RenewAll { since }))
            }
            What::CompleteTask => {
                let (task, owner) = pick_task(stage, this)?;
                let letter = stage.world.tasks[&task].last;
                let result = body("done");
                let complete = commands::CompleteTask { task, result, letter, open_below: None };
                Some(Command::by(owner, complete))
            }
            What::EndPublication => {
                let told = stage.world.tasks.values().filter(|task| task.channel.is_some());
                let told: Vec<_> = told.map(|task| task.id).collect();
                let task = *pick(&told, this)?;
                Some(Command::of_broker(commands::EndPublication { task }))
            }
            What::ClearTaint => clear_taint(stage, this, that, flag),
            What::SettleBelow => settle_below(stage, this),
            What::SpreadTaint => {
                let tainted = stage.world.tasks.values().filter(|task| !task.taints.is_empty());
                let tainted: Vec<_> = tainted.map(|task| task.id).collect();
                Some(Command::of_broker(spread(stage, *pick(&tainted, this)?)))
            }
            What::EndCircle => Some(Command::of_broker(end_circle(stage, this)?)),
            What::ReadBack | What::Reserve | What::Unreserve => {
                held(what, stage, *pick(claims, this)?, that)
            }
            What::EraseHandoff | What::EraseRevision => erase(what, stage, this),
            What::Counter
            | What::SettleCounter
            | What::RedriveTo
            | What::Amend
            | What::TakeReview
            | What::Retract
            | What::Join
            | What::Lift
            | What::NoteFetch
            | What::NoteTold => of_handoff(what, stage, this, that, flag),
        }
    }
}

/// An offer that says more than others: fallbacks, what comes first, what must be read back, and
/// terms that are soon used up, so that breakers open.
fn rich_offer(stage: &mut Stage, this: u8, that: u8, flag: bool) -> Offer {
    let first = pick_task(stage, that);
    let task = stage.new_task(None);
    let to = if flag { to("coder") } else { to_any("review") };
    let mut offer = stage.offer(task, "planner", to);
    offer.priority = 4 + this % 2;
    offer.ordering_key = this.is_multiple_of(5).then(|| "one".parse().unwrap());
    offer.terms = Terms { attempts: 1, losses: 1, ..offer.terms };
    offer.terms.ack_ms = that.is_multiple_of(3).then_some(5 * SECOND);
    if this.is_multiple_of(3) {
        offer.contract.routing.fallbacks = vec![crate::support::to("tester"), to_any("test")];
    }
    if this % 4 == 1 {
        offer.contract.agreement.read_back = Some(body("what binds").hash);
    }
    if let Some((first, _)) = first.filter(|(id, _)| this % 4 == 2 && *id != TaskId::STORE) {
        let mut tasks = vec![first];
        let second = pick_task(stage, that + 1).map(|(id, _)| id);
        tasks.extend(second.filter(|id| flag && *id != first && *id != TaskId::STORE));
        let need = u32::try_from(tasks.len()).unwrap();
        offer.contract.after = Some(After { tasks, need });
        offer.not_before = this.is_multiple_of(2).then(|| stage.now.plus_ms(30 * SECOND));
    }
    offer
}

fn publish(stage: &mut Stage, this: u8, flag: bool) -> Command {
    let task = TaskId(stage.next_id());
    let open = OpenTask {
        task,
        intent: body("do it"),
        correlation_id: None,
        parent: None,
        coordinator: None,
        channel: Some("news".parse().unwrap()),
        project: None,
        on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
    };
    let offers = ["coder", "tester"].map(|name| {
        let below = OfferTask::New {
            task: TaskId(stage.next_id()),
            intent: body("do it").hash,
            correlation_id: None,
            parent: Some(task),
            coordinator: None,
            project: None,
            branch_of: None,
            on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
        };
        let mut offer = stage.offer(below, "planner", to(name));
        offer.contract.routing.fallbacks = vec![to_any("review")];
        offer
    });
    let publish = commands::Publish { open, offers: offers.into() };
    let key = key(&this.to_string(), "publish").filter(|_| flag);
    Command::by(agent("planner"), publish).with_key(key)
}

fn clear_taint(stage: &Stage, this: u8, that: u8, flag: bool) -> Option<Command> {
    let tainted = stage.world.tasks.values().filter(|task| !task.taints.is_empty());
    let tainted: Vec<_> = tainted.map(|task| task.id).collect();
    let task = pick(&tainted, this).copied().or_else(|| Some(pick_task(stage, this)?.0))?;
    let known = &stage.world.tasks[&task];
    let source = known.taints.first().map(|(source, _)| *source);
    let source = source.or_else(|| pick_handoff(stage, that))?;
    let reason = body("looked at it");
    let clear = commands::ClearTaint { task, source, reason, by_right: flag };
    Some(Command::by(known.decider().clone(), clear))
}

/// A task that has some below it.
fn settle_below(stage: &Stage, this: u8) -> Option<Command> {
    let parents: Vec<_> =
        stage.world.tasks.values().filter_map(|task| task.parent_task_id).collect();
    let parent = *pick(&parents, this)?;
    Some(Command::of_broker(below(stage, parent)))
}

/// What the engine finds below a task.
pub(crate) fn below(stage: &Stage, parent: TaskId) -> commands::SettleBelow {
    let tasks = stage.world.tasks.values();
    let children: Vec<_> = tasks.filter(|task| task.parent_task_id == Some(parent)).collect();
    commands::SettleBelow {
        parent,
        below: children.iter().map(|task| task.id).collect(),
        hops: {
            let letter = |task: &&&std::sync::Arc<tasuki_core::Task>| {
                task.last.filter(|_| task.state == TaskState::DeadLettered)
            };
            let hops = children.iter().filter_map(|task| task.under());
            hops.chain(children.iter().filter_map(|task| letter(&task))).collect()
        },
        reason: Some(body("the task above it ended")),
    }
}

/// What the engine finds below a task, and below those of them that have ended well.
pub(crate) fn all_below(stage: &Stage, parent: TaskId) -> commands::SettleBelow {
    let mut settle = below(stage, parent);
    let mut at = 0;
    while let Some(id) = settle.below.get(at).copied() {
        at += 1;
        if stage.world.tasks[&id].state == TaskState::Completed {
            let more = below(stage, id);
            settle.below.extend(more.below);
            settle.hops.extend(more.hops);
        }
    }
    settle
}

/// What the engine finds to be built on a task.
pub(crate) fn spread(stage: &Stage, from: TaskId) -> commands::SpreadTaint {
    let task = &stage.world.tasks[&from];
    let below = stage.world.tasks.values().filter(|it| it.parent_task_id == Some(from));
    let built = task.parent_task_id.into_iter().chain(task.tree.passed_to.iter().copied());
    let to = built.chain(below.map(|it| it.id)).collect();
    let sources = task.taints.iter().map(|(source, _)| *source).collect();
    commands::SpreadTaint { from, to, sources }
}

/// What the engine finds of the tasks that a handoff waits for.
pub(crate) fn join(stage: &Stage, id: HandoffId) -> Option<commands::Join> {
    let tasks = stage.world.handoffs[&id].waits_for_tasks()?.tasks.clone();
    let lasts = tasks.iter().filter_map(|task| stage.world.tasks.get(task)?.last);
    let lasts: Vec<_> = lasts.collect();
    Some(commands::Join::new(id, tasks, lasts))
}

/// Two calls: such as wait for each other, if there are any.
fn end_circle(stage: &Stage, this: u8) -> Option<commands::EndCircle> {
    let waits = |it: &&std::sync::Arc<tasuki_core::Handoff>| {
        it.answers().is_some() || !it.needs_all_of().is_empty()
    };
    let open: Vec<_> = stage.world.handoffs.values().filter(waits).collect();
    let closing = |one: &HandoffId, other: &HandoffId| {
        let (one, other) = (&stage.world.handoffs[one], &stage.world.handoffs[other]);
        let calls = one.answers() == Some(&other.from) && other.answers() == Some(&one.from);
        let tasks = one.needs_all_of().contains(&other.task_id)
            && other.needs_all_of().contains(&one.task_id);
        calls || tasks
    };
    let ids = || open.iter().map(|it| it.id);
    let pairs: Vec<_> = ids().flat_map(|one| ids().map(move |other| (one, other))).collect();
    let circles: Vec<_> = pairs.iter().filter(|(a, b)| a != b && closing(a, b)).collect();
    let (one, other) = match pick(&circles, this) {
        Some(circle) => **circle,
        None => *pick(&pairs, this)?,
    };
    Some(commands::EndCircle { calls: vec![one, other], path: body("a waits for b") })
}

fn policy(flag: bool) -> TaintPolicy {
    if flag { TaintPolicy::Block } else { TaintPolicy::Flag }
}

fn held(what: What, stage: &Stage, claim: (HandoffId, Proof), that: u8) -> Option<Command> {
    let (handoff, proof) = claim;
    let resources = vec![format!("src/{}", that % 2).parse().unwrap()];
    let act = match what {
        What::Reserve => Act::Reserve { resources },
        What::Unreserve => Act::Unreserve { resources },
        _ => Act::ReadBack(stage.handoff(handoff).contract.agreement.read_back?),
    };
    Some(Command::held(handoff, proof, None, act))
}

fn of_handoff(what: What, stage: &mut Stage, this: u8, that: u8, flag: bool) -> Option<Command> {
    let id = pick_handoff(stage, this)?;
    let person = agent("person");
    let handoff = stage.handoff(id).clone();
    Some(match what {
        What::Counter => {
            let agent = target(stage, id, crate::random::Who::Right);
            let counter = commands::Counter {
                handoff: id,
                seeker: seeker(agent.as_str()),
                terms: Terms { lease_ms: 20 * SECOND, ..handoff.terms },
                budget_tokens: Some(9),
                reason: body("too little time"),
            };
            Command::by(agent, counter)
        }
        What::SettleCounter => {
            let maker = handoff.counters.first().map_or(any(that), |it| it.agent.clone());
            let settle = commands::SettleCounter { handoff: id, agent: maker, accept: flag };
            Command::by(handoff.from.clone(), settle)
        }
        What::RedriveTo => {
            let id = dead_letter(stage, this).unwrap_or(id);
            let new = HandoffId(stage.next_id());
            let to = Some(if flag { to("tester") } else { to_any("test") });
            let above = stage.task(id).above().to_vec();
            let redrive = commands::Redrive { handoff: id, new, to, expires_in_ms: None, above };
            Command::by(person, redrive)
        }
        What::Amend => {
            let id = dead_letter(stage, this).unwrap_or(id);
            let (task, from) = (stage.handoff(id).task_id, stage.handoff(id).from.clone());
            let to = if flag { to("tester") } else { to("coder") };
            let offer = stage.offer(OfferTask::Existing(task), from.as_str(), to);
            let changed = body("say more").hash;
            Command::by(person, commands::Amend { handoff: id, changed, offer })
        }
        What::TakeReview => {
            let id = dead_letter(stage, this).unwrap_or(id);
            let until = flag.then(|| stage.now.plus_ms(5 * SECOND));
            Command::by(any(that), commands::TakeReview { handoff: id, until })
        }
        What::Retract => {
            let done = |it: &&std::sync::Arc<tasuki_core::Handoff>| {
                it.state.name() == tasuki_core::handoff::StateName::Completed
            };
            let done: Vec<_> = stage.world.handoffs.values().filter(done).collect();
            let handoff = pick(&done, this).map_or(handoff, |done| (***done).clone());
            let above = stage.world.tasks[&handoff.task_id].parent_task_id;
            let (reason, policy) = (body("wrong"), policy(flag));
            let retract = commands::Retract { handoff: handoff.id, reason, policy, above };
            Command::by(handoff.from.clone(), retract)
        }
        What::Join => {
            let after = handoff.contract.after.as_ref();
            let tasks = after.map_or_else(Vec::new, |after| after.tasks.clone());
            let lasts = tasks.iter().filter_map(|task| stage.world.tasks.get(task)?.last);
            // Who looked too early knows nothing of them.
            let lasts: Vec<_> =
                if flag && that.is_multiple_of(4) { Vec::new() } else { lasts.collect() };
            Command::of_broker(commands::Join::new(id, tasks, lasts))
        }
        What::Lift => {
            let constraint = body("a rule").hash;
            let lift = commands::Lift { handoff: id, constraint, reason: body("no longer") };
            Command::by(handoff.from.clone(), lift)
        }
        What::NoteTold => {
            let fence = handoff.attempts.last()?.fence;
            let told = body(if flag { "what it was told" } else { "other words" });
            Command::of_broker(commands::NoteTold { handoff: id, fence, told })
        }
        _ => {
            let by = handoff.attempts.first().map_or(any(that), |it| it.agent.clone());
            let memory = id_of(that);
            Command::by(by, commands::NoteFetch { handoff: id, memory })
        }
    })
}

fn dead_letter(stage: &Stage, this: u8) -> Option<HandoffId> {
    let dead = |id: &HandoffId| {
        stage.handoff(*id).state.name() == tasuki_core::handoff::StateName::DeadLettered
    };
    let ids: Vec<_> = stage.world.handoffs.keys().copied().filter(dead).collect();
    pick(&ids, this).copied()
}

fn id_of(that: u8) -> DocumentId {
    format!("ms-{}", that % 3).parse().unwrap()
}

fn secret(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

fn registry(stage: &mut Stage, this: u8, that: u8, flag: bool) -> Command {
    let coder = || any(that);
    let number = that % 4;
    let token = TokenId(u128::from(number));
    let rules = || vec![Rule::allow([Permission::Claim])];
    let wish = match this {
        0 => RegistryWish::Publish {
            agent: coder(),
            manifest: body(if flag { "one" } else { "two" }),
            signed: None,
            version: None,
        },
        1 => {
            let standing = if flag { Standing::Deregistered } else { Standing::Draining };
            RegistryWish::SetStanding { agent: coder(), standing }
        }
        2 => RegistryWish::Enroll { agent: coder(), key: secret(number).public(), rules: None },
        3 => RegistryWish::IssueToken(Token {
            id: token,
            purpose: if flag { Purpose::Join } else { Purpose::Bearer },
            secret: Hash([7; 32]),
            agent: coder(),
            rules: rules(),
            issued_at: stage.now,
            expires_at: None,
            ended_at: None,
            made_by: None,
            made_from: None,
        }),
        4 => RegistryWish::Join {
            token,
            secret: Hash([7; 32]),
            agent: coder(),
            key: secret(10 + number).public(),
        },
        5 => RegistryWish::Rotate {
            agent: coder(),
            old: secret(number).public().id(),
            new: secret(20 + number).public(),
            grace_ms: SECOND,
        },
        6 => RegistryWish::Revoke { agent: coder(), key: key_of(stage, &coder(), number) },
        7 => RegistryWish::SetRules { agent: coder(), rules: rules() },
        8 => {
            let channel = "news".parse().unwrap();
            if flag {
                RegistryWish::Subscribe { channel, agent: coder() }
            } else {
                RegistryWish::Unsubscribe { channel, agent: coder() }
            }
        }
        9 => RegistryWish::RevokeToken(token),
        10 => RegistryWish::SetTenant(Tenant {
            id: "default".parse().unwrap(),
            quotas: Quotas { in_flight: flag.then_some(1000), ..Quotas::default() },
        }),
        11 => RegistryWish::SetLimits {
            target: tasuki_core::Target::Agent(coder()),
            limits: flag.then_some(tasuki_core::breaker::Limits { failures: 2, open_ms: 1000 }),
        },
        12 => RegistryWish::Pause {
            target: if flag { to("coder") } else { to_any("review") },
            until: that.is_multiple_of(2).then(|| stage.now.plus_ms(20 * SECOND)),
        },
        13 => RegistryWish::Resume { target: if flag { to("coder") } else { to_any("review") } },
        14 => RegistryWish::DeclarePipeline(Box::new(
            serde_json::from_value(serde_json::json!({
                "name": "line", "version": 1 + that % 3, "first": "a",
                "stages": [{ "name": "a", "to": { "agent": if flag { "coder" } else { "tester" } },
                    "next": [{ "to": "end" }] }],
            }))
            .unwrap(),
        )),
        15 => RegistryWish::Alert(Box::new(alert(stage, that, flag))),
        16 => RegistryWish::Push(Box::new(push(stage, that, flag))),
        _ => RegistryWish::NoteDenied {
            agent: coder(),
            code: "permission_denied".into(),
            operation: "POST /v1/handoffs".into(),
        },
    };
    let by = if flag { Actor::Agent(agent("admin")) } else { Actor::Broker };
    Command::registry(by, None, wish)
}

fn push(stage: &Stage, that: u8, flag: bool) -> PushWish {
    let handoff = HandoffId(u128::from(that % 8));
    let key = PushKey { handoff, id: "hook".into() };
    match that % 4 {
        0 => {
            let config = body(if flag { "here" } else { "there" });
            let (task, told) = (TaskId(9), 1);
            let set = PushSet { key, task, owner: None, told, config: config.hash };
            PushWish::Set { set, config }
        }
        1 => {
            let by = if flag { "here" } else { "there" };
            let until = stage.now.plus_ms(SECOND);
            PushWish::Take(PushTaken { key, by: by.into(), until })
        }
        2 => {
            let up_to = if flag { 2 } else { 3 };
            PushWish::Tell(PushTold { key, up_to, sent: flag, tries: 1, problem: None })
        }
        _ => PushWish::End(key),
    }
}

fn alert(stage: &Stage, that: u8, flag: bool) -> AlertWish {
    let key = AlertKey { rule: "HandoffCircuitOpen".into(), target: Some("agent:coder".into()) };
    let (since, now) = (Timestamp(7), stage.now);
    match that % 4 {
        0 => AlertWish::Move(AlertMoved {
            key,
            fires: flag,
            since,
            moved_at: now,
            value: "open".into(),
        }),
        1 => AlertWish::Take(NoticeTaken { key, by: "here".into(), until: now.plus_ms(SECOND) }),
        2 => AlertWish::Tell(NoticeTold {
            key,
            fires: flag,
            since,
            sent: true,
            tries: 1,
            problem: None,
        }),
        _ => {
            let reason = body("known");
            let until = if flag { now.plus_ms(SECOND) } else { now };
            let silenced = Silenced { rule: None, target: None, until, reason: reason.hash };
            AlertWish::Silence { silenced, reason }
        }
    }
}

/// A key that the agent has, if it has one.
fn key_of(stage: &Stage, agent: &AgentId, number: u8) -> tasuki_core::ids::KeyId {
    let known = stage.world.registry.agents.get(agent);
    let last = known.and_then(|known| known.keys.last());
    last.map_or(secret(number).public().id(), |key| key.key.id())
}

fn document(stage: &Stage, this: u8, that: u8, flag: bool) -> Command {
    let context = this == 5;
    let id: DocumentId = if context { "context:web".parse().unwrap() } else { id_of(that) };
    let wish = match this {
        0 | 1 => DocumentWish::Mark { pinned: Some(flag), priority: Some(Priority::default()) },
        2 => DocumentWish::Supersede { successor: id_of(that + 1) },
        3 => DocumentWish::Delete { reason: body("old") },
        _ => {
            let new = !stage.world.documents.contains_key(&id);
            let decision = Settle { key: "database".parse().unwrap(), supersedes: None };
            DocumentWish::Write(Box::new(Write {
                kind: if context { Kind::Context } else { Kind::Memory },
                scope: Some(Scope::Project("web".parse().unwrap())),
                content: body(if flag { "one" } else { "two" }),
                expected: new.then_some(0),
                pinned: None,
                priority: None,
                settles: Some(decision).filter(|_| context),
            }))
        }
    };
    let key = key(&format!("document {that}"), "write").filter(|_| this == 6);
    Command::by(agent("coder"), commands::ChangeDocument { id, wish }).with_key(key)
}

fn erase(what: What, stage: &Stage, this: u8) -> Option<Command> {
    let reason: Body = body("by request");
    let what = if let What::EraseRevision = what {
        let documents: Vec<_> = stage.world.documents.values().cloned().collect();
        let document = pick(&documents, this)?;
        let (id, revision) = (document.id.clone(), document.revision);
        Erasable::Revision { id, revision, at: document.content_pos }
    } else {
        let id = pick_handoff(stage, this)?;
        let at: Vec<Position> = vec![stage.handoff(id).envelope_pos];
        Erasable::Handoff { id, at }
    };
    Some(Command::by(agent("admin"), commands::Erase { what, reason }))
}
