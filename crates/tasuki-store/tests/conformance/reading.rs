// SPDX-License-Identifier: Apache-2.0
//! Listings, bodies and the log.

use std::collections::BTreeSet;
use std::sync::Arc;

use tasuki_core::commands::{self, Act, Command, OpenTask};
use tasuki_core::event::FailureClass;
use tasuki_core::handoff::StateName;
use tasuki_core::talk::QuestionKind;
use tasuki_core::{Handoff, Position, Task, TaskId, TaskState};
use tasuki_store::audit::Verdict;
use tasuki_store::{HandoffFilter, Needs, Store, TaskFilter};

use crate::stage::{Backend, Stage};
use crate::support::{HOUR, SECOND, agent, body, complete, fail, to, to_any};

/// Handoffs in every state, and tasks with and without parents.
pub(crate) async fn populate(stage: &Stage) {
    let later = stage.now().plus_ms(HOUR);
    for target in [to("coder"), to_any("review"), to_any("test")] {
        stage.offer_to(target.clone(), |offer| offer.needs_approval = true).await;
        stage.offer_to(target.clone(), |offer| offer.not_before = Some(later)).await;
        stage.offer_to(target.clone(), |offer| offer.from = agent("tester")).await;
        stage.offer_to(target.clone(), |offer| offer.priority = 9).await;
        let ends = [
            Act::Start,
            Act::Heartbeat,
            complete("done"),
            fail(FailureClass::Retryable),
            fail(FailureClass::Permanent),
        ];
        for end in ends {
            let id = stage.offer_to(target.clone(), |_| {}).await;
            let proof = stage.claim(id, "coder").await;
            stage.act(id, proof, end).await.unwrap();
        }
        for answered in [false, true] {
            let id = stage.offer_to(target.clone(), |_| {}).await;
            let proof = stage.claim(id, "coder").await;
            stage.act(id, proof, ask()).await.unwrap();
            let (question, answer) = (body("which one?").hash, body("this one"));
            let answer = commands::Answer { handoff: id, question, answer, by_right: false };
            if answered {
                stage.run(Command::by(agent("planner"), answer)).await.unwrap();
            }
        }
        let id = stage.offer_to(target.clone(), |_| {}).await;
        let by = agent("planner");
        stage
            .run(Command::by(by.clone(), commands::Cancel { handoff: id, reason: None }))
            .await
            .unwrap();
        let id = stage.offer_to(target.clone(), |_| {}).await;
        stage.run(Command::by(by, commands::Abort { handoff: id, reason: None })).await.unwrap();
        let id = stage.offer_to(to("coder"), |_| {}).await;
        stage.kill(id).await;
        stage.redrive(id).await.unwrap();
    }
    let mut parent = None;
    for _ in 0..3 {
        let task = TaskId(stage.next_id());
        let open = OpenTask {
            task,
            intent: body("do it"),
            correlation_id: Some("order 7".parse().unwrap()),
            project: None,
            parent,
            coordinator: None,
            channel: None,
            on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
        };
        stage.run(Command::by(agent("planner"), open)).await.unwrap();
        parent = Some(task);
    }
    stage.clock.advance_ms(SECOND);
}

fn ask() -> Act {
    Act::Ask(commands::Ask {
        kind: QuestionKind::Input,
        question: body("which one?"),
        answer_ms: None,
        has_default: false,
        // Long enough to be there still when everything is listed.
        keep_ms: Some(HOUR),
        by_id: false,
    })
}

/// A listing, page by page.
pub(crate) async fn handoffs(
    store: &dyn Store,
    filter: &HandoffFilter,
    page: usize,
) -> Vec<Arc<Handoff>> {
    let mut listed: Vec<Arc<Handoff>> = Vec::new();
    loop {
        let before = listed.last().map(|last| last.id).or(filter.before);
        let filter = HandoffFilter { before, max: page, ..filter.clone() };
        let more = store.list_handoffs(filter).await.unwrap();
        assert!(more.len() <= page);
        if more.is_empty() {
            return listed;
        }
        listed.extend(more);
    }
}

pub(crate) async fn tasks(store: &dyn Store, filter: &TaskFilter, page: usize) -> Vec<Arc<Task>> {
    let mut listed: Vec<Arc<Task>> = Vec::new();
    loop {
        let before = listed.last().map(|last| last.id).or(filter.before);
        let filter = TaskFilter { before, max: page, ..filter.clone() };
        let more = store.list_tasks(filter).await.unwrap();
        assert!(more.len() <= page);
        if more.is_empty() {
            return listed;
        }
        listed.extend(more);
    }
}

pub(crate) async fn a_listing_of_handoffs_is_what_its_filter_lets_through(stage: Stage) {
    populate(&stage).await;
    let everything = handoffs(&*stage.store, &HandoffFilter::default(), 1000).await;
    let ids: BTreeSet<_> =
        stage.log().await.iter().filter_map(|entry| entry.sealed.record.handoff_id).collect();
    assert!(everything.iter().map(|h| h.id).eq(ids.iter().rev().copied()), "newest first");
    let states: BTreeSet<_> = everything.iter().map(|handoff| handoff.state.name()).collect();
    assert_eq!(states.len(), StateName::ALL.len(), "every state is there");
    for listed in &everything {
        assert_eq!(*listed, stage.handoff(listed.id).await);
    }

    let some = everything[7].clone();
    let mut filters = vec![
        HandoffFilter { task: Some(some.task_id), ..Default::default() },
        HandoffFilter { before: Some(some.id), ..Default::default() },
        HandoffFilter { from: Some(agent("tester")), ..Default::default() },
        HandoffFilter { from: Some(agent("nobody")), ..Default::default() },
        HandoffFilter { unreviewed: true, ..Default::default() },
        // A capability is not an agent of the same name.
        HandoffFilter { to: Some(to("review")), ..Default::default() },
    ];
    for state in StateName::ALL.iter().map(|state| Some(*state)) {
        for to in [None, Some(to("coder")), Some(to_any("review"))] {
            filters.push(HandoffFilter { state, to, ..Default::default() });
        }
        filters.push(HandoffFilter { state, unreviewed: true, ..Default::default() });
        filters.push(HandoffFilter { state, from: Some(agent("planner")), ..Default::default() });
    }
    for filter in &filters {
        let expected: Vec<_> = everything.iter().filter(|h| filter.lets_through(h)).collect();
        for page in [1, 3, 1000] {
            let listed = handoffs(&*stage.store, filter, page).await;
            assert!(listed.iter().eq(expected.iter().copied()), "{filter:?} by {page}");
        }
    }
}

pub(crate) async fn a_listing_of_tasks_is_what_its_filter_lets_through(stage: Stage) {
    populate(&stage).await;
    stage.run(Command::of_broker(commands::RaiseEpoch { epoch: 2 })).await.unwrap();
    let everything = tasks(&*stage.store, &TaskFilter::default(), 1000).await;
    let ids: BTreeSet<_> =
        stage.log().await.iter().map(|entry| entry.sealed.record.task_id).collect();
    let ids = ids.into_iter().filter(|id| *id != TaskId::STORE).rev();
    assert!(everything.iter().map(|task| task.id).eq(ids), "newest first, the store's own apart");

    let some = everything[7].clone();
    let mut filters = vec![
        TaskFilter { parent: Some(everything[1].id), ..Default::default() },
        TaskFilter { parent: Some(some.id), ..Default::default() },
        TaskFilter { before: Some(some.id), ..Default::default() },
        TaskFilter { owner: Some(agent("coder")), ..Default::default() },
    ];
    for state in TaskState::ALL.iter().map(|state| Some(*state)) {
        filters.push(TaskFilter { state, ..Default::default() });
        filters.push(TaskFilter { state, owner: Some(agent("planner")), ..Default::default() });
    }
    for filter in &filters {
        let expected: Vec<_> = everything.iter().filter(|t| filter.lets_through(t)).collect();
        for page in [1, 4, 1000] {
            let listed = tasks(&*stage.store, filter, page).await;
            assert!(listed.iter().eq(expected.iter().copied()), "{filter:?} by {page}");
        }
    }
}

pub(crate) async fn a_listing_knows_every_reply_that_was_given_before_it(stage: Stage) {
    for count in 1..=20 {
        let id = stage.offered().await;
        let filter = HandoffFilter { max: 1000, ..Default::default() };
        let listed = stage.store.list_handoffs(filter).await.unwrap();
        assert_eq!((listed.len(), listed[0].id), (count, id));
        let proof = stage.claim(id, "coder").await;
        stage.act(id, proof, complete("done")).await.unwrap();
    }
}

pub(crate) async fn bodies_are_found_where_their_events_are(stage: Stage) {
    populate(&stage).await;
    let log = stage.log().await;
    let mut at: Vec<_> = log.iter().map(|entry| entry.sealed.position).collect();
    at.push(Position(0));
    at.push(Position(stage.store.head().0 + 1));
    at.push(Position(u64::MAX));
    let bodies = stage.store.bodies(at).await.unwrap();
    for (entry, body) in log.iter().zip(&bodies) {
        let expected = entry.sealed.record.event.body();
        assert_eq!(body.as_ref().map(|body| body.hash), expected, "{entry:?}");
    }
    assert_eq!(bodies[log.len()..], [None, None, None]);
    let twice = stage.store.bodies(vec![Position(1), Position(1)]).await.unwrap();
    assert_eq!(twice[0], twice[1], "asked for twice, given twice");
}

pub(crate) async fn events_come_in_order_and_a_chain_is_those_of_its_task(stage: Stage) {
    populate(&stage).await;
    let log = stage.log().await;
    assert_eq!(log.len() as u64, stage.store.head().0);
    for (place, entry) in log.iter().enumerate() {
        assert_eq!(entry.sealed.position.0, place as u64 + 1);
        assert_eq!(entry.sealed.record.encode(), entry.encoded.as_bytes());
    }
    let mut paged = Vec::new();
    let mut after = Position(0);
    loop {
        let page = stage.store.events(after, 7).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.sealed.position;
        paged.extend(page);
    }
    assert!(paged.iter().map(|e| &e.sealed).eq(log.iter().map(|e| &e.sealed)));

    for id in log.iter().map(|entry| entry.sealed.record.task_id).collect::<BTreeSet<_>>() {
        let chain = stage.store.chain(id).await.unwrap();
        let own = log.iter().filter(|entry| entry.sealed.record.task_id == id);
        assert!(chain.iter().map(|e| &e.sealed).eq(own.map(|e| &e.sealed)), "{id}");
    }
}

pub(crate) async fn the_log_of_a_busy_store_verifies(stage: Stage) {
    populate(&stage).await;
    stage.wait_and_sweep(HOUR).await;
    let verdict = stage.store.verify().await.unwrap();
    assert_eq!(verdict.first_bad, None);
    let log = stage.log().await;
    assert_eq!(verdict.events, log.len() as u64);
    let tasks: BTreeSet<_> = log.iter().map(|entry| entry.sealed.record.task_id).collect();
    assert_eq!(verdict.tasks, tasks.len() as u64);
    let bodies = log.iter().filter(|entry| entry.sealed.record.event.body().is_some()).count();
    assert_eq!(verdict.bodies, bodies as u64);
}

pub(crate) async fn a_check_goes_on_where_the_last_one_ended(mut stage: Stage) {
    let waits = stage.offered().await;
    let mut before = Vec::new();
    for _ in 0..3 {
        populate(&stage).await;
        if stage.backend != Backend::Volatile {
            // What is closed is sealed to its end.
            stage = stage.restart().await;
        }
        let new = stage.store.verify_new().await.unwrap();
        before.push(new.verified_before);
        let full = stage.store.verify().await.unwrap();
        assert_eq!(Verdict { verified_before: None, ..new }, full);
        assert_eq!(full.first_bad, None);
    }
    // A task that began before the mark goes on after it.
    let proof = stage.claim(waits, "coder").await;
    stage.act(waits, proof, complete("done")).await.unwrap();
    let new = stage.store.verify_new().await.unwrap();
    let full = stage.store.verify().await.unwrap();
    assert_eq!(Verdict { verified_before: None, ..new }, full);
    if stage.backend != Backend::Volatile {
        assert!(before[0].is_none() && before[1].is_some() && before[1] < before[2], "{before:?}");
    }
}

/// One look shows handoffs with their tasks, tasks with what is under way for them, and the bodies
/// that were asked for, whether all that is still worked on or long at its end.
pub(crate) async fn one_look_shows_everything_that_was_named(stage: Stage) {
    let done = stage.offer_to(to("coder"), |_| {}).await;
    let proof = stage.claim(done, "coder").await;
    stage.act(done, proof, complete("done")).await.unwrap();
    let waiting = stage.offer_to(to("coder"), |_| {}).await;
    for moment in ["as it was left", "when everything is written down"] {
        let task = stage.store.handoff(waiting).await.unwrap().unwrap().task_id;
        let needs = Needs::handoffs([done, tasuki_core::HandoffId(999)]).and_tasks([task]);
        let needs = needs.with_envelopes().with_results().with_intents();
        let sight = stage.store.look(needs).await.unwrap();
        let ended = sight.handoff(done).expect(moment);
        assert_eq!(ended.state.name(), StateName::Completed, "{moment}");
        assert!(sight.handoff(tasuki_core::HandoffId(999)).is_none());
        let of_ended = sight.task_of(ended).expect(moment);
        assert_eq!(of_ended.state, TaskState::Completed, "{moment}");
        assert!(sight.result(ended).unwrap().text().contains("done"), "{moment}");
        let open = sight.task(task).expect(moment);
        let under_way = sight.under_way(open).expect(moment);
        assert_eq!(under_way.id, waiting, "{moment}");
        for handoff in [ended, under_way] {
            assert_eq!(sight.envelope(handoff).unwrap().hash, handoff.envelope, "{moment}");
        }
        // An offer that opens its task brings the intent with its envelope.
        assert_eq!(open.intent_pos, under_way.envelope_pos);
        assert!(sight.intent(open).is_some(), "{moment}");
        // A listing lets rows catch up, so what has ended leaves the RAM.
        stage.store.list_handoffs(HandoffFilter { max: 1, ..Default::default() }).await.unwrap();
    }
}

/// A caller that has its reply sees what the reply told.
pub(crate) async fn a_reply_is_seen_at_once(stage: Stage) {
    for _ in 0..20 {
        let id = stage.offer_to(to("coder"), |_| {}).await;
        let seen = stage.store.handoff(id).await.unwrap().unwrap();
        assert_eq!(seen.state.name(), StateName::Pending);
        let proof = stage.claim(id, "coder").await;
        let seen = stage.store.handoff(id).await.unwrap().unwrap();
        assert_eq!(seen.state.name(), StateName::Claimed);
        assert_eq!(stage.store.waiting(vec![to("coder")]).await.unwrap(), [0]);
        stage.act(id, proof, complete("done")).await.unwrap();
        let sight = stage.store.look(Needs::handoff(id)).await.unwrap();
        let seen = sight.handoff(id).unwrap();
        assert_eq!(seen.state.name(), StateName::Completed);
        assert_eq!(sight.task_of(seen).unwrap().state, TaskState::Completed);
        assert_eq!(stage.store.usage("default".parse().unwrap()).await.unwrap().in_flight, 0);
    }
}
