// SPDX-License-Identifier: Apache-2.0
//! What goes beyond one handoff, the same on every store: targets that fail, others that are asked,
//! many that are told, work that waits, resources that one holder has, and results taken back.

use tasuki_core::breaker::BreakerState;
use tasuki_core::commands::{self, Act, Offer, OfferTask, OpenTask, Proof, Publish};
use tasuki_core::contract::After;
use tasuki_core::event::{FailureClass, TaintPolicy};
use tasuki_core::{Command, HandoffId, Position, TaskId, Terms};
use tasuki_store::TaskFilter;

use crate::stage::{Backend, Stage, code};
use crate::support::{agent, body, to, to_any};

fn fail() -> Act {
    let class = FailureClass::Retryable;
    Act::Fail { class, failure: body("it broke"), retry_after_ms: None, entropy: 7 }
}

fn once() -> Terms {
    Terms { attempts: 1, ..Terms::default() }
}

async fn exhaust(stage: &Stage, name: &str) -> HandoffId {
    let id = stage.offer_to(to(name), |offer| offer.terms = once()).await;
    let proof = stage.claim(id, name).await;
    stage.act(id, proof, fail()).await.unwrap();
    id
}

fn breaker(stage: &Stage, name: &str) -> BreakerState {
    let registry = stage.store.registry().borrow().clone();
    let known = registry.guards.breakers.get(&to(name)).cloned();
    known.map_or(BreakerState::Closed, |known| known.state(stage.now()))
}

async fn again(stage: Stage) -> Stage {
    if stage.backend == Backend::Volatile { stage } else { stage.restart().await }
}

pub(crate) async fn a_breaker_opens_outlives_a_restart_and_closes(stage: Stage) {
    for _ in 0..3 {
        exhaust(&stage, "flaky").await;
    }
    assert!(matches!(breaker(&stage, "flaky"), BreakerState::Open { .. }));
    assert_eq!(code(stage.send(stage.offer(to("flaky"))).await), "target_unavailable");
    let stage = again(stage).await;
    assert_eq!(code(stage.send(stage.offer(to("flaky"))).await), "target_unavailable");
    stage.clock.advance_ms(60_000);
    let half_open = BreakerState::HalfOpen { claimed: false, until: None };
    assert_eq!(breaker(&stage, "flaky"), half_open);
    let probe = stage.offer_to(to("flaky"), |_| {}).await;
    assert_eq!(code(stage.send(stage.offer(to("flaky"))).await), "target_unavailable");
    let proof = stage.claim(probe, "flaky").await;
    let done = Act::Complete { result: body("done"), follow_ups: Vec::new(), checked: None };
    stage.act(probe, proof, done).await.unwrap();
    assert_eq!(breaker(&stage, "flaky"), BreakerState::Closed);
    stage.offer_to(to("flaky"), |_| {}).await;
    let stage = again(stage).await;
    assert_eq!(breaker(&stage, "flaky"), BreakerState::Closed);
    stage.verified().await;
}

pub(crate) async fn what_is_not_claimed_in_time_goes_from_one_to_the_next(stage: Stage) {
    let id = stage
        .offer_to(to("first"), |offer| {
            offer.terms.ack_ms = Some(15_000);
            offer.ordering_key = Some("one".parse().unwrap());
            offer.contract.routing.fallbacks = vec![to("second"), to_any("review")];
        })
        .await;
    assert!(stage.wait_and_sweep(14_999).await.is_empty());
    assert_eq!(stage.wait_and_sweep(1).await, [id]);
    assert_eq!(stage.handoff(id).await.to, to("second"));
    let stage = again(stage).await;
    assert_eq!(stage.wait_and_sweep(15_000).await, [id]);
    let handoff = stage.handoff(id).await;
    assert_eq!(
        (&handoff.to, &handoff.tried[..]),
        (&to_any("review"), &[to("first"), to("second")][..])
    );
    assert!(stage.claim_next("first", 1).await.is_empty(), "it had its time");
    assert_eq!(stage.wait_and_sweep(15_000).await, [id]);
    assert_eq!(stage.state(id).await, "dead_lettered");
    stage.verified().await;
}

/// It waits in the queue of whoever has it now, and in no other.
pub(crate) async fn a_fallback_finds_in_its_queue_what_was_passed_on_to_it(stage: Stage) {
    let offer = |offer: &mut Offer| {
        offer.terms.ack_ms = Some(15_000);
        offer.contract.routing.fallbacks = vec![to("second")];
    };
    let id = stage.offer_to(to("first"), offer).await;
    let later = stage.offer_to(to("first"), |_| {}).await;
    assert_eq!(stage.wait_and_sweep(15_000).await, [id]);
    let stage = again(stage).await;
    assert_eq!(stage.claim_next("first", 2).await, [later]);
    assert_eq!(stage.claim_next("second", 2).await, [id]);
    stage.verified().await;
}

/// The offer that is made to one receiver of a publication.
fn below(stage: &Stage, parent: TaskId, receiver: &str) -> Offer {
    let task = OfferTask::New {
        task: TaskId(stage.next_id()),
        intent: body("do it").hash,
        correlation_id: None,
        parent: Some(parent),
        coordinator: None,
        project: None,
        branch_of: None,
        on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
    };
    Offer { task, control: tasuki_core::envelope::Control::Awaited, ..stage.offer(to(receiver)) }
}

fn publication(stage: &Stage, receivers: usize) -> (TaskId, Publish) {
    let task = TaskId(stage.next_id());
    let open = OpenTask {
        task,
        intent: body("do it"),
        correlation_id: None,
        parent: None,
        project: None,
        coordinator: None,
        channel: Some("news".parse().unwrap()),
        on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
    };
    let offers = (0..receivers).map(|number| below(stage, task, &format!("agent-{number}")));
    let offers = offers.collect();
    (task, Publish { open, offers })
}

pub(crate) async fn a_publication_is_there_for_all_or_for_none(stage: Stage) {
    let (task, publish) = publication(&stage, 500);
    let done = stage.run(Command::by(agent("planner"), publish)).await.unwrap();
    assert_eq!(done.handoffs.len(), 500);
    let (_, mut bad) = publication(&stage, 3);
    bad.offers[2].expires_at = stage.now();
    let bad = Command::by(agent("planner"), bad);
    assert_eq!(code(stage.run(bad).await), "deadline_passed");
    let stage = again(stage).await;
    let told = TaskFilter {
        channel: Some("news".parse().unwrap()),
        after: Some(Position(0)),
        max: 10,
        ..TaskFilter::default()
    };
    let told = stage.store.list_tasks(told).await.unwrap();
    assert_eq!(told.iter().map(|task| task.id).collect::<Vec<_>>(), [task]);
    let children = TaskFilter { parent: Some(task), max: 1000, ..TaskFilter::default() };
    assert_eq!(stage.store.list_tasks(children).await.unwrap().len(), 500);
    assert_eq!(stage.claim_next("agent-499", 9).await.len(), 1);
    stage.verified().await;
}

pub(crate) async fn work_goes_on_when_enough_of_what_it_waits_for_is_done(stage: Stage) {
    let parts = [stage.offered().await, stage.offered().await];
    let tasks = vec![stage.task_of(parts[0]).await.id, stage.task_of(parts[1]).await.id];
    let after = After { tasks: tasks.clone(), need: 1 };
    let id = stage.offer_to(to("last"), |offer| offer.contract.after = Some(after)).await;
    let join = || Command::of_broker(commands::Join::new(id, tasks.clone(), parts));
    stage.run(join()).await.unwrap();
    assert_eq!(stage.state(id).await, "scheduled", "nothing is done yet");
    let proof = stage.claim(parts[1], "coder").await;
    let done = Act::Complete { result: body("done"), follow_ups: Vec::new(), checked: None };
    stage.act(parts[1], proof, done).await.unwrap();
    let stage = again(stage).await;
    stage.run(join()).await.unwrap();
    assert_eq!(stage.state(id).await, "pending");
    assert_eq!(stage.task_of(id).await.taints, [(parts[0], TaintPolicy::Flag)]);
    assert_eq!(stage.claim_next("last", 1).await, [id]);
}

pub(crate) async fn a_resource_has_one_holder_until_its_claim_ends(stage: Stage) {
    let (one, two) = (stage.offered().await, stage.offered().await);
    let (first, second) = (stage.claim(one, "coder").await, stage.claim(two, "coder").await);
    let reserve = |name: &str| Act::Reserve { resources: vec![name.parse().unwrap()] };
    stage.act(one, first, reserve("src/**")).await.unwrap();
    let taken = async |stage: &Stage, id: HandoffId, proof: Proof, name: &str| {
        code(stage.act(id, proof, reserve(name)).await)
    };
    assert_eq!(taken(&stage, two, second, "src/a.rs").await, "resource_reserved");
    let stage = again(stage).await;
    assert_eq!(taken(&stage, two, second, "src/a.rs").await, "resource_reserved");
    stage.act(one, first, Act::Release).await.unwrap();
    stage.act(two, second, reserve("src/a.rs")).await.unwrap();
    stage.wait_and_sweep(60_000).await;
    assert!(stage.store.registry().borrow().guards.reservations.is_empty(), "its lease was lost");
    let stage = again(stage).await;
    assert!(stage.store.registry().borrow().guards.reservations.is_empty());
    stage.verified().await;
}

pub(crate) async fn what_is_built_on_a_retracted_result_is_held_back(stage: Stage) {
    let id = stage.offered().await;
    let proof = stage.claim(id, "coder").await;
    let before = stage.handoff(id).await;
    let next = Offer {
        task: OfferTask::Existing(before.task_id),
        from: agent("coder"),
        previous: Some(before.envelope),
        hop: 1,
        ..stage.offer(to("tester"))
    };
    let follows = next.handoff;
    let done = Act::Complete { result: body("done"), follow_ups: vec![next], checked: None };
    stage.act(id, proof, done).await.unwrap();
    let policy = TaintPolicy::Block;
    let retract = Command::by(
        agent("coder"),
        commands::Retract { handoff: id, reason: body("wrong"), policy, above: None },
    );
    stage.run(retract.clone()).await.unwrap();
    assert!(stage.run(retract).await.unwrap().outcome.repeated);
    assert_eq!(stage.state(follows).await, "awaiting_approval");
    let stage = again(stage).await;
    assert!(stage.task_of(id).await.is_blocked());
    let clear = Command::by(
        agent("planner"),
        commands::ClearTaint {
            task: before.task_id,
            source: id,
            reason: body("it is fine"),
            by_right: false,
        },
    );
    stage.run(clear).await.unwrap();
    assert!(!stage.task_of(id).await.is_blocked());
    assert_eq!(stage.state(follows).await, "pending", "in one step");
    assert_eq!(stage.claim_next("tester", 1).await, [follows]);
    stage.verified().await;
}

pub(crate) async fn a_dead_letter_is_taken_for_review_and_amended_once(stage: Stage) {
    let id = exhaust(&stage, "coder").await;
    let until = Some(stage.now().plus_ms(1000));
    let take = Command::by(agent("ann"), commands::TakeReview { handoff: id, until });
    stage.run(take).await.unwrap();
    let stage = again(stage).await;
    assert_eq!(code(stage.redrive(id).await), "review_taken");
    let before = stage.handoff(id).await;
    let offer = Offer {
        task: OfferTask::Existing(before.task_id),
        previous: Some(before.envelope),
        hop: 1,
        ..stage.offer(to("coder"))
    };
    let new = offer.handoff;
    let changed = offer.envelope.hash;
    let amend = Command::by(agent("ann"), commands::Amend { handoff: id, changed, offer });
    stage.run(amend.clone()).await.unwrap();
    let repeated = stage.run(amend).await.unwrap();
    assert_eq!((repeated.outcome.repeated, &repeated.outcome.handoffs[..]), (true, &[new][..]));
    assert_eq!(stage.claim_next("coder", 9).await, [new]);
    stage.verified().await;
}
