// SPDX-License-Identifier: Apache-2.0
//! The stored form of events is a promise: logs of years ago must still read, and still hash to
//! what they hashed to. `UPDATE_GOLDEN=1` rewrites the file; do that for new kinds only.

use std::fs;
use std::path::Path;

use tasuki_core::breaker::Limits;
use tasuki_core::budget::{Cost, Spent};
use tasuki_core::contract::{After, Agreement, Contract, Fill, Routing};
use tasuki_core::document::{Erased, Kind, Priority, Scope, Settled, Written};
use tasuki_core::event::Closed;
use tasuki_core::event::{
    Acknowledged, Actor, Asked, Attached, BranchOf, Claimed, Countered, DeadReason, Event,
    FailureClass, LossCause, Offered, Opened, Record, Redrive, SpentBy, TaintPolicy,
};
use tasuki_core::identity::SecretKey;
use tasuki_core::ids::{
    ChannelId, ClaimId, Fence, HandoffId, Position, TaskId, Timestamp, TokenId,
};
use tasuki_core::join::{CameTo, Member};
use tasuki_core::pipeline::StageRef;
use tasuki_core::registry::alerts::{AlertKey, AlertMoved, NoticeTaken, NoticeTold, Silenced};
use tasuki_core::registry::pushes::{PushKey, PushSet, PushTaken, PushTold};
use tasuki_core::registry::rules::{Effect, Permission, Rule};
use tasuki_core::registry::{Change, Purpose, Quotas, Signed, Standing, Tenant, Token};
use tasuki_core::route::{Policy, Reason, Why};
use tasuki_core::talk::QuestionKind;
use tasuki_core::terms::Terms;
use tasuki_core::tree::{Follows, Hangs, OnParentEnd};

use crate::support::{agent, body, key, to, to_any};

const TASK: TaskId = TaskId(1);
const HANDOFF: HandoffId = HandoffId(2);
const CLAIM: ClaimId = ClaimId(3);
const FENCE: Fence = Fence((1 << 40) + 1);

/// The example that comes after this one. Going from kind to kind by a `match` means that a new
/// kind does not compile until it has its line here.
fn example_after(event: &Event) -> Option<Event> {
    let reason = Some(body("reason").hash);
    Some(match event {
        Event::TaskOpened(_) => Event::TaskCancelled { reason },
        Event::TaskCancelled { .. } => Event::TransferOffered(Box::new(offered_with_everything())),
        Event::TransferOffered(_) => Event::CallOffered(Box::new(Offered {
            opens: None,
            to: to_any("review"),
            not_before: None,
            needs_approval: false,
            ordering_key: None,
            key: None,
            redrive_of: None,
            ..offered_with_everything()
        })),
        Event::CallOffered(offered) if !offered.contract.is_empty() => {
            Event::Acknowledged(Acknowledged {
                act: "completed".into(),
                claim_id: CLAIM,
                fence: FENCE,
                body: Some(body("done").hash),
                signed: Signed {
                    key_id: secret(1).public().id(),
                    signature: secret(1).sign(b"ack"),
                },
            })
        }
        Event::Acknowledged(_) => Event::DocumentWritten(Box::new(Written {
            id: "acme/ms-4821".parse().unwrap(),
            document: Kind::Memory,
            scope: Scope::Project("web".parse().unwrap()),
            revision: 2,
            content: body("text").hash,
            pinned: true,
            priority: Priority::High,
            settles: None,
            key: key("k-2", "request"),
        })),
        Event::DocumentWritten(written) => match &written.scope {
            Scope::Project(_) => Event::DocumentWritten(Box::new(Written {
                id: "context:web".parse().unwrap(),
                document: Kind::Context,
                scope: Scope::Task(TASK),
                settles: Some(Settled {
                    key: "database".parse().unwrap(),
                    decision: 2,
                    supersedes: Some(1),
                }),
                ..(**written).clone()
            })),
            Scope::Task(_) => Event::DocumentWritten(Box::new(Written {
                scope: Scope::Agent(agent("coder")),
                pinned: false,
                settles: None,
                key: None,
                ..(**written).clone()
            })),
            Scope::Agent(_) => Event::DocumentMarked {
                id: "ms-1".parse().unwrap(),
                pinned: true,
                priority: Priority::Low,
            },
        },
        Event::DocumentMarked { .. } => {
            Event::DocumentSuperseded { id: "ms-1".parse().unwrap(), by: "ms-2".parse().unwrap() }
        }
        Event::DocumentSuperseded { .. } => {
            Event::DocumentDeleted { id: "ms-1".parse().unwrap(), reason: body("wrong").hash }
        }
        Event::DocumentDeleted { .. } => Event::Erased(Box::new(Erased {
            position: Position(12),
            body: body("text").hash,
            bytes: 120,
            tenant: "acme".parse().unwrap(),
            document: Some("acme/ms-4821".parse().unwrap()),
            revision: Some(1),
            reason: body("by request").hash,
        })),
        // The rest came later; see `later`.
        Event::Erased(_)
        | Event::Escalated { .. }
        | Event::Retracted { .. }
        | Event::Tainted { .. }
        | Event::TaintCleared { .. }
        | Event::ReviewTaken { .. }
        | Event::ReviewReleased
        | Event::LetterClosed { .. }
        | Event::TaskCompleted { .. }
        | Event::Reserved { .. }
        | Event::Unreserved { .. }
        | Event::Asked(_)
        | Event::Answered { .. }
        | Event::AnswerDefaulted { .. }
        | Event::KeepEnded
        | Event::MessageSent { .. }
        | Event::MessagesAcknowledged { .. }
        | Event::Attached(_)
        | Event::PutBack { .. }
        | Event::TaskHeld { .. }
        | Event::TaskResumed { .. }
        | Event::Spent(_)
        | Event::WaitOver
        | Event::Joined { .. }
        | Event::PassedTo { .. }
        | Event::TrimFetched { .. }
        | Event::ClaimTold { .. } => return None,
        Event::ConstraintLifted { .. } => Event::TrimFetched {
            agent: agent("acme/coder"),
            memory: "acme/ms-4821".parse().unwrap(),
        },
        Event::CallOffered(_) => Event::Approved,
        Event::Approved => Event::Delivered { agent: agent("coder") },
        Event::Delivered { .. } => Event::Readied,
        Event::Readied => Event::Claimed(Claimed {
            agent: agent("coder"),
            claim_id: CLAIM,
            fence: FENCE,
            attempt: 1,
            lease_ms: 30_000,
            hard_until: Timestamp(1_800_003_600_000),
            request_id: Some("try-1".parse().unwrap()),
            probes: None,
        }),
        Event::Claimed(_) => Event::Started,
        Event::Started => Event::Progressed { percent: Some(50), note: Some(body("half").hash) },
        Event::Progressed { .. } => Event::Completed {
            fence: FENCE,
            result: body("done").hash,
            next: Some(HandoffId(4)),
            calls: vec![HandoffId(5), HandoffId(6)],
            recovers: None,
        },
        Event::Completed { .. } => Event::AttemptFailed {
            fence: FENCE,
            class: FailureClass::Retryable,
            failure: body("it broke").hash,
        },
        Event::AttemptFailed { .. } => Event::Declined { agent: agent("coder"), reason },
        Event::Declined { .. } => Event::Released { fence: FENCE },
        Event::Released { .. } => Event::LeaseLost { fence: FENCE, cause: LossCause::HardDeadline },
        Event::LeaseLost { .. } => Event::RetryScheduled { due: Timestamp(1_800_000_002_000) },
        Event::RetryScheduled { .. } => Event::Expired,
        Event::Expired => Event::dead_letter(DeadReason::AttemptsExhausted),
        Event::DeadLettered { .. } => Event::Cancelled { reason: None },
        Event::Cancelled { .. } => Event::Aborted { reason },
        Event::Aborted { .. } => {
            Event::LateReport { claim_id: CLAIM, fence: FENCE, report: body("late").hash }
        }
        Event::LateReport { .. } => Event::Redriven { to: HandoffId(7), changed: None },
        Event::Redriven { .. } => Event::Discarded { reason: body("pointless").hash },
        Event::Discarded { .. } => Event::EpochRaised { epoch: 2 },
        Event::EpochRaised { .. } => Event::RegistryChanged(Box::new(Change::ManifestPublished {
            agent: agent("acme/coder"),
            manifest: body("manifest").hash,
            version: 2,
            signed: Some(Signed {
                key_id: secret(1).public().id(),
                signature: secret(1).sign(b"m"),
            }),
        })),
        Event::RegistryChanged(change) => match change_after(change) {
            Some(change) => Event::RegistryChanged(Box::new(change)),
            None => Event::Countered(Countered {
                agent: agent("coder"),
                terms: Terms::default(),
                budget_tokens: Some(8000),
                reason: body("too little time").hash,
            }),
        },
        Event::Countered(_) => Event::CounterAccepted {
            agent: agent("coder"),
            terms: Terms::default(),
            budget_tokens: Some(8000),
        },
        Event::CounterAccepted { .. } => Event::CounterRefused { agent: agent("coder") },
        // What offers have learned to say since.
        Event::CounterRefused { .. } => Event::CallOffered(Box::new(Offered {
            contract: contract(),
            ..offered_with_everything()
        })),
    })
}

fn contract() -> Contract {
    let agreement = Agreement {
        capability: Some("review".parse().unwrap()),
        output_schema: Some(body("schema").hash),
        majors: vec![1, 2],
        budget_tokens: Some(4000),
        ..Agreement::default()
    };
    let routed = Some(Why {
        policy: Policy::LeastLoaded,
        candidates: 3,
        live: 2,
        avoided_sla: 1,
        avoided_full: 0,
        reason: Reason::Best,
    });
    let routing = Routing { routed, ..Routing::default() };
    Contract { agreement, routing, ..Contract::default() }
}

fn secret(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

fn change_after(change: &Change) -> Option<Change> {
    let coder = agent("acme/coder");
    let rules = vec![Rule {
        effect: Effect::Deny,
        targets: vec!["prod-*".into()],
        projects: vec!["web".into()],
        ..Rule::allow([Permission::Send, Permission::Read])
    }];
    Some(match change {
        Change::ManifestPublished { .. } => {
            Change::StandingSet { agent: coder, standing: Standing::Draining }
        }
        Change::StandingSet { .. } => {
            Change::KeyEnrolled { agent: coder, key: secret(1).public(), token: Some(TokenId(11)) }
        }
        Change::KeyEnrolled { .. } => Change::KeyRotated {
            agent: coder,
            old: secret(1).public().id(),
            new: secret(2).public(),
            until: Timestamp(1_800_003_600_000),
        },
        Change::KeyRotated { .. } => {
            Change::KeyRevoked { agent: coder, key: secret(2).public().id() }
        }
        Change::KeyRevoked { .. } => Change::RulesSet { agent: coder, rules },
        Change::RulesSet { .. } => Change::TokenIssued(Token {
            id: TokenId(11),
            purpose: Purpose::Join,
            secret: body("secret").hash,
            agent: coder,
            rules,
            issued_at: Timestamp(1_800_000_000_000),
            expires_at: Some(Timestamp(1_800_000_600_000)),
            ended_at: None,
            made_by: None,
            made_from: None,
        }),
        Change::TokenIssued(_) => Change::TokenRevoked { token: TokenId(11) },
        Change::TokenRevoked { .. } => Change::TenantSet(Tenant {
            id: "acme".parse().unwrap(),
            quotas: Quotas {
                in_flight: Some(100),
                stored_bytes: Some(1_000_000),
                requests_per_second: Some(50),
            },
        }),
        Change::TenantSet(_) => Change::AccessDenied {
            agent: coder,
            code: "not_permitted".into(),
            operation: "POST /v1/handoffs".into(),
        },
        Change::AccessDenied { .. }
        | Change::LimitsSet { .. }
        | Change::TargetPaused { .. }
        | Change::AlertMoved(_)
        | Change::NoticeTaken(_)
        | Change::NoticeTold(_)
        | Change::AlertSilenced(_)
        | Change::PushSet(_)
        | Change::PushTaken(_)
        | Change::PushTold(_)
        | Change::PushEnded(_)
        | Change::TargetResumed { .. }
        | Change::PipelineDeclared { .. }
        | Change::Subscribed { .. }
        | Change::Unsubscribed { .. } => {
            return None;
        }
    })
}

fn opened() -> Opened {
    Opened {
        owner: agent("planner"),
        intent: body("do it").hash,
        correlation_id: Some("request-7".parse().unwrap()),
        project: None,
        branch_of: None,
        parent_task_id: Some(TaskId(8)),
        coordinator: None,
        channel: None,
        hangs: None,
        follows: None,
        key: key("k-1", "request"),
    }
}

fn opened_below() -> Opened {
    let hangs = Hangs {
        above: vec![TaskId(8), TaskId(9)],
        under: Some(HANDOFF),
        on_parent_end: OnParentEnd::LetGo,
        deadline: Some(Timestamp(1_800_000_600_000)),
        on_hold: Some(HandoffId(4)),
    };
    let follows = Follows { envelope: body("envelope").hash, hop: 1, handoff: HANDOFF };
    Opened { hangs: Some(Box::new(hangs)), follows: Some(follows), ..opened() }
}

fn offered_with_everything() -> Offered {
    Offered {
        opens: Some(opened()),
        from: agent("planner"),
        to: to("coder"),
        envelope: body("envelope").hash,
        hop: 3,
        priority: 5,
        terms: Terms::default(),
        contract: Contract::default(),
        lifted: Vec::new(),
        expires_at: Timestamp(1_800_086_400_000),
        not_before: Some(Timestamp(1_800_000_060_000)),
        needs_approval: true,
        blocked: false,
        ordering_key: Some("account-1".parse().unwrap()),
        key: key("k-1", "request"),
        probe: false,
        amends: None,
        redrive_of: Some(Redrive {
            handoff_id: HandoffId(9),
            envelope_pos: Position(10),
            opened_task: true,
        }),
    }
}

fn examples() -> Vec<Record> {
    let first = Event::TaskOpened(opened());
    let kinds = std::iter::successors(Some(first), example_after);
    let record = |(index, event): (u32, Event)| {
        let of_store = matches!(event, Event::EpochRaised { .. } | Event::RegistryChanged(_))
            || event.facts().document.is_some();
        let of_task = matches!(
            event,
            Event::TaskOpened(_) | Event::TaskCancelled { .. } | Event::TaskCompleted { .. }
        );
        Record {
            v: Record::VERSION,
            task_id: if of_store { TaskId::STORE } else { TASK },
            index,
            handoff_id: (!of_store && !of_task).then_some(HANDOFF),
            at: Timestamp(1_800_000_000_000),
            actor: if of_store { Actor::Broker } else { Actor::Agent(agent("planner")) },
            turn: None,
            event,
        }
    };
    let mut records: Vec<_> = (0..).zip(kinds).map(record).collect();
    // What was added to kinds that were there before.
    let agreement = Agreement {
        expected_output: Some(body("wanted").hash),
        read_back: Some(body("binding").hash),
        ..contract().agreement
    };
    let contract = Contract { agreement, ..contract() };
    let lifted = vec![body("constraint").hash];
    let offered = Offered { contract, lifted, ..offered_with_everything() };
    let event = Event::TransferOffered(Box::new(offered));
    let index = u32::try_from(records.len()).unwrap();
    records.push(Record { turn: Some(Position(7)), ..record((index, event)) });
    let (constraint, reason) = (body("constraint").hash, body("no longer true").hash);
    let first = Event::ConstraintLifted { constraint, reason };
    let lifted = std::iter::successors(Some(first), example_after);
    records.extend((index + 1..).zip(lifted).map(record));
    let push = |records: &mut Vec<Record>, event| {
        let index = u32::try_from(records.len()).unwrap();
        records.push(record((index, event)));
    };
    let project = Some("web".parse().unwrap());
    let event = Event::TaskOpened(Opened { project, ..opened() });
    push(&mut records, event);
    let branch_of = Some(BranchOf { task_id: TaskId(8), hop: 2, envelope: body("envelope").hash });
    let opens = Some(Opened { branch_of, ..opened() });
    let offered = Offered { opens, redrive_of: None, ..offered_with_everything() };
    let event = Event::TransferOffered(Box::new(offered));
    push(&mut records, event);
    for event in later().into_iter().chain(talk()).chain(of_the_desk()).chain(together()) {
        push(&mut records, event);
    }
    records
}

/// Kinds that came after these, and what older ones have learned to say.
fn later() -> Vec<Event> {
    let channel: ChannelId = "news".parse().unwrap();
    let subscriber = || agent("coder");
    let opened =
        Opened { coordinator: Some(agent("lead")), channel: Some(channel.clone()), ..opened() };
    let stage = Some(StageRef {
        pipeline: "endpoint".into(),
        version: 3,
        stage: "review".into(),
        branch: true,
    });
    let contract = Contract {
        budget: None,
        agreement: Agreement { stage, ..contract().agreement },
        routing: Routing {
            fallbacks: vec![to("second"), to_any("review")],
            diverted_from: Some(to("first")),
            ..contract().routing
        },
        after: Some(After { tasks: vec![TASK], need: 1 }),
        fill: Some(Fill { token_count: 900, budget: 1000, completeness_per_mille: 950 }),
        ..Contract::default()
    };
    let terms = Terms { ack_ms: Some(15_000), ..Terms::default() };
    let offered = Offered {
        probe: true,
        amends: Some(HandoffId(9)),
        redrive_of: None,
        contract,
        terms,
        ..offered_with_everything()
    };
    let resources = vec!["src/**".parse().unwrap()];
    vec![
        Event::TaskOpened(opened),
        Event::TransferOffered(Box::new(offered)),
        Event::Escalated {
            to: to("second"),
            reason: DeadReason::Unacknowledged,
            against: Some(to("first")),
            limits: None,
        },
        Event::DeadLettered {
            reason: DeadReason::HopLimit,
            against: Some(to("first")),
            limits: None,
            because: None,
        },
        Event::dead_letter(DeadReason::Cycle),
        Event::Completed {
            fence: FENCE,
            result: body("done").hash,
            next: None,
            calls: Vec::new(),
            recovers: Some(to("first")),
        },
        Event::Retracted { reason: body("wrong").hash },
        Event::Tainted { source: HANDOFF, policy: TaintPolicy::Block },
        Event::Tainted { source: HANDOFF, policy: TaintPolicy::Flag },
        Event::TaintCleared { source: HANDOFF, reason: body("looked at it").hash, releases: false },
        Event::ReviewTaken { by: agent("person"), until: Timestamp(1_800_000_600_000) },
        Event::ReviewReleased,
        Event::Reserved { fence: FENCE, resources },
        Event::Unreserved { resources: vec!["docs/*.md".parse().unwrap()] },
        Event::RegistryChanged(Box::new(Change::Subscribed {
            channel: channel.clone(),
            agent: subscriber(),
        })),
        Event::RegistryChanged(Box::new(Change::Unsubscribed { channel, agent: subscriber() })),
        Event::TaskOpened(opened_below()),
        Event::TaskHeld { letter: HANDOFF },
        Event::TaskResumed {
            under: Some(HandoffId(4)),
            deadline: Some(Timestamp(1_800_000_600_000)),
            until: None,
        },
        Event::Spent(SpentBy { by: HANDOFF, used: Spent { tokens: 1200, cost: Cost(250_000) } }),
        Event::dead_letter(DeadReason::BudgetExhausted),
    ]
}

/// Breakers with numbers of their own.
fn of_the_desk() -> Vec<Event> {
    let limits = Some(Limits { failures: 5, open_ms: 10_000 });
    let (reason, against) = (DeadReason::AttemptsExhausted, Some(to("first")));
    vec![
        Event::RegistryChanged(Box::new(Change::LimitsSet { target: to("first"), limits })),
        Event::DeadLettered { reason, against: against.clone(), limits, because: None },
        Event::Escalated { to: to("second"), reason, against, limits },
        Event::Claimed(Claimed {
            agent: agent("first"),
            claim_id: ClaimId(7),
            fence: FENCE,
            attempt: 1,
            lease_ms: 30_000,
            hard_until: Timestamp(1_800_000_600_000),
            request_id: None,
            probes: Some(to("first")),
        }),
        Event::DeadLettered {
            reason: DeadReason::Rejected,
            against: None,
            limits: None,
            because: Some(body("done").hash),
        },
        Event::LetterClosed { because: Closed::TaskOfferedAnew },
        Event::LetterClosed { because: Closed::TaskCancelled },
        Event::LetterClosed { because: Closed::TaskCompleted },
        Event::TaskCompleted { result: Some(body("done").hash) },
        Event::TaskCompleted { result: None },
    ]
}

/// What hangs together above one hop.
fn together() -> Vec<Event> {
    let member = |came_to, result: Option<&str>| Member {
        task_id: TASK,
        came_to,
        handoff_id: Some(HANDOFF),
        result: result.map(|text| body(text).hash),
        result_pos: result.map(|_| Position(12)),
    };
    let members = vec![member(CameTo::Completed, Some("done")), member(CameTo::Retracted, None)];
    let agreement = Agreement { has_gaps: true, ..Agreement::default() };
    let contract = Contract { agreement, ..Contract::default() };
    let blocked =
        Offered { blocked: true, contract, redrive_of: None, ..offered_with_everything() };
    let until = Some(Timestamp(1_800_000_600_000));
    let pipeline = r#"{"name":"p","version":1,"first":"code","stages":[{"name":"code",
        "to":{"agent":"coder"},"next":[{"to":"end"}]}]}"#;
    let pipeline = Box::new(serde_json::from_str(pipeline).unwrap());
    let changed = |change| Event::RegistryChanged(Box::new(change));
    vec![
        Event::WaitOver,
        Event::Joined { members },
        Event::PassedTo { task: TaskId(8) },
        Event::TaintCleared { source: HANDOFF, reason: body("seen").hash, releases: true },
        Event::TransferOffered(Box::new(blocked)),
        Event::dead_letter(DeadReason::Deadlock),
        changed(Change::TargetPaused { target: to("coder"), until }),
        changed(Change::TargetPaused { target: to_any("review"), until: None }),
        changed(Change::TargetResumed { target: to("coder") }),
        changed(Change::PipelineDeclared { pipeline }),
        Event::ClaimTold { fence: FENCE, told: body("what it was told").hash },
        changed(Change::AlertMoved(AlertMoved {
            key: alert(),
            fires: true,
            since: Timestamp(1_800_000_000_000),
            moved_at: Timestamp(1_800_000_005_000),
            value: "0.021".into(),
        })),
        changed(Change::NoticeTaken(NoticeTaken {
            key: alert(),
            by: "here".into(),
            until: Timestamp(1_800_000_030_000),
        })),
        changed(Change::NoticeTold(NoticeTold {
            key: alert(),
            fires: true,
            since: Timestamp(1_800_000_000_000),
            sent: false,
            tries: 8,
            problem: Some("no answer".into()),
        })),
        changed(Change::AlertSilenced(Silenced {
            rule: Some("HandoffFailed".into()),
            target: None,
            until: Timestamp(1_800_003_600_000),
            reason: body("known").hash,
        })),
        changed(Change::PushSet(PushSet {
            key: push(),
            task: TASK,
            owner: Some(agent("planner")),
            told: 1,
            config: body("where to").hash,
        })),
        changed(Change::PushTaken(PushTaken {
            key: push(),
            by: "here".into(),
            until: Timestamp(1_800_000_120_000),
        })),
        changed(Change::PushTold(PushTold {
            key: push(),
            up_to: 3,
            sent: false,
            tries: 8,
            problem: Some("no answer".into()),
        })),
        changed(Change::PushEnded(push())),
    ]
}

fn push() -> PushKey {
    PushKey { handoff: HANDOFF, id: "hook".into() }
}

fn alert() -> AlertKey {
    AlertKey { rule: "HandoffFailed".into(), target: Some("agent:coder".into()) }
}

/// What is said while work goes on.
fn talk() -> Vec<Event> {
    let then = Timestamp(1_800_000_001_000);
    vec![
        Event::Asked(Asked {
            fence: FENCE,
            kind: QuestionKind::Authorization,
            question: body("may I?").hash,
            answer_by: Some(then),
            has_default: true,
            keep_ms: 30_000,
            by_id: true,
        }),
        Event::Answered { answer: body("yes").hash, kept_until: then },
        Event::AnswerDefaulted { kept_until: then },
        Event::KeepEnded,
        Event::MessageSent { number: 1, message: body("stop").hash },
        Event::MessagesAcknowledged { fence: FENCE, up_to: 1 },
        Event::Attached(Box::new(Attached {
            fence: FENCE,
            name: "draft".parse().unwrap(),
            kind: "text/markdown".into(),
            version: 1,
            artifact: body("# One").hash,
            bytes: 7,
        })),
        Event::PutBack { fence: FENCE, until: then, reason: Some(body("reason").hash) },
    ]
}

#[test]
fn every_kind_of_event_is_stored_as_it_always_was() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/events.jsonl");
    let records = examples();
    let mut encoded = String::new();
    for record in &records {
        encoded.push_str(std::str::from_utf8(&record.encode()).unwrap());
        encoded.push('\n');
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &encoded).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    for (now, then) in encoded.lines().zip(golden.lines()) {
        assert_eq!(now, then, "stored events must not change; see tests/rules/golden.rs");
    }
    assert_eq!(encoded.lines().count(), golden.lines().count(), "run with UPDATE_GOLDEN=1");

    for (line, record) in golden.lines().zip(&records) {
        let read: Record = serde_json::from_str(line).unwrap();
        assert_eq!(read, *record);
        assert!(line.contains(&format!(r#""kind":"{}""#, record.event.kind())), "{line}");
    }
}
