// SPDX-License-Identifier: Apache-2.0
//! What a store tells without being asked: commits, what is due next, counts.

use std::sync::Arc;

use tasuki_core::commands::{self, Act, Command};
use tasuki_core::event::FailureClass;
use tasuki_core::{Target, Timestamp};
use tasuki_store::{COMMANDS_MAX, Committed, Error};
use tokio::sync::broadcast::Receiver;
use tokio::task::JoinSet;

use crate::stage::{Backend, Stage, code};
use crate::support::{DAY, HOUR, SECOND, agent, complete, fail, key, to, to_any};

const LEASE: u64 = 30 * SECOND;

/// Everything that was told until now. A reply comes after its news.
fn told(news: &mut Receiver<Arc<Committed>>) -> (Vec<&'static str>, Vec<Target>) {
    let mut kinds = Vec::new();
    let mut ready = Vec::new();
    while let Ok(committed) = news.try_recv() {
        kinds.extend(committed.changes.iter().map(|change| change.sealed.record.event.kind()));
        ready.extend(committed.ready.iter().cloned());
    }
    (kinds, ready)
}

pub(crate) async fn subscribers_hear_what_was_committed_and_what_can_be_claimed(stage: Stage) {
    let mut news = stage.store.subscribe();
    let id = stage.offered().await;
    assert_eq!(told(&mut news), (vec!["transfer_offered"], vec![to("coder")]));
    let proof = stage.claim(id, "coder").await;
    assert_eq!(told(&mut news), (vec!["claimed"], vec![]));
    stage.act(id, proof, Act::Heartbeat).await.unwrap();
    assert_eq!(told(&mut news), (vec![], vec![]));
    stage.act(id, proof, Act::Release).await.unwrap();
    assert_eq!(told(&mut news), (vec!["released"], vec![to("coder")]));
    stage.claim(id, "coder").await;
    stage.wait_and_sweep(LEASE).await;
    assert_eq!(told(&mut news), (vec!["claimed", "lease_lost"], vec![to("coder")]));
    let proof = stage.claim(id, "coder").await;
    stage.act(id, proof, fail(FailureClass::Retryable)).await.unwrap();
    assert_eq!(told(&mut news).1, []);
    stage.wait_and_sweep(LEASE).await;
    assert_eq!(told(&mut news), (vec!["readied"], vec![to("coder")]));

    assert_eq!(code(stage.redrive(id).await), "not_dead_lettered");
    assert_eq!(told(&mut news), (vec![], vec![]), "nothing happened");
}

/// Nobody who is told of an event has to look what became of the handoff and its task.
pub(crate) async fn subscribers_see_what_an_event_led_to(stage: Stage) {
    let mut news = stage.store.subscribe();
    let id = stage.offered().await;
    let proof = stage.claim(id, "coder").await;
    stage.act(id, proof, complete("done")).await.unwrap();
    let mut states = Vec::new();
    while let Ok(committed) = news.try_recv() {
        for change in &committed.changes {
            let (handoff, task) = (change.handoff.as_ref().unwrap(), change.task.as_ref().unwrap());
            assert_eq!(
                (handoff.last_pos, task.last_pos),
                (change.sealed.position, change.sealed.position)
            );
            states.push((handoff.state.name().as_str(), task.state.as_str()));
        }
    }
    let open = |state| (state, "open");
    assert_eq!(states, [open("pending"), open("claimed"), ("completed", "completed")]);
}

pub(crate) async fn a_line_tells_when_its_next_one_can_be_claimed(stage: Stage) {
    let mut offered = Vec::new();
    let mut news = stage.store.subscribe();
    for _ in 0..2 {
        let ordered = |offer: &mut tasuki_core::commands::Offer| {
            offer.ordering_key = Some("a".parse().unwrap());
        };
        offered.push(stage.offer_to(to_any("review"), ordered).await);
    }
    assert_eq!(told(&mut news).1, [to_any("review")], "only the first");
    let proof = stage.claim(offered[0], "coder").await;
    stage.act(offered[0], proof, Act::Start).await.unwrap();
    stage.act(offered[0], proof, Act::Heartbeat).await.unwrap();
    assert_eq!(told(&mut news).1, [], "the second has to wait");
    stage.act(offered[0], proof, complete("done")).await.unwrap();
    assert_eq!(told(&mut news).1, [to_any("review")]);
}

pub(crate) async fn subscribers_hear_every_event_once_and_in_order(stage: Stage) {
    let mut news = stage.store.subscribe();
    let mut workers = JoinSet::new();
    for worker in 0..16 {
        let stage = stage.clone();
        workers.spawn(async move {
            let name = format!("agent-{worker}");
            for _ in 0..10 {
                let id = stage.offer_to(to(&name), |_| {}).await;
                let proof = stage.claim(id, &name).await;
                stage.act(id, proof, complete("done")).await.unwrap();
            }
        });
    }
    workers.join_all().await;
    let mut heard = Vec::new();
    while let Ok(committed) = news.try_recv() {
        heard.extend(committed.changes.iter().map(|change| change.sealed.clone()));
    }
    let log = stage.log().await;
    assert_eq!(log.len(), 16 * 10 * 3);
    assert!(heard.iter().eq(log.iter().map(|entry| &entry.sealed)));
}

pub(crate) async fn what_is_due_next_is_told(stage: Stage) {
    let due = stage.store.next_due();
    let next = || *due.borrow();
    let after = |ms| Some(stage.now().plus_ms(ms));
    assert_eq!(next(), None);
    let id = stage.offered().await;
    assert_eq!(next(), after(DAY), "its expiry");
    let start = stage.now().plus_ms(HOUR);
    let other = stage.offer_to(to("tester"), |offer| offer.not_before = Some(start)).await;
    assert_eq!(next(), after(HOUR), "a start");
    let proof = stage.claim(id, "coder").await;
    assert_eq!(next(), after(LEASE), "a lease");
    stage.clock.advance_ms(SECOND);
    stage.act(id, proof, Act::Heartbeat).await.unwrap();
    // What is put off or over may be told until somebody looked.
    stage.sweep().await;
    assert_eq!(next(), after(LEASE), "an extended lease");
    stage.act(id, proof, complete("done")).await.unwrap();
    stage.sweep().await;
    assert_eq!(next(), Some(start));
    let cancel = Command::by(agent("planner"), commands::Cancel { handoff: other, reason: None });
    stage.run(cancel).await.unwrap();
    stage.sweep().await;
    assert_eq!(next(), None::<Timestamp>);
}

pub(crate) async fn counts_tell_what_there_is(stage: Stage) {
    let mut ids = Vec::new();
    for number in 0..4 {
        let key = key(&format!("k-{number}"), "request");
        let done = stage.send_keyed(stage.offer(to("coder")), key).await.unwrap();
        ids.push(done.outcome.handoffs[0]);
    }
    let stats = stage.store.stats();
    assert_eq!((stats.live_handoffs, stats.waiting_handoffs), (4, 4));
    assert_eq!((stats.commands, stats.events, stats.idempotency_keys), (4, 4, 4));
    let in_ram = stage.backend != Backend::Postgres;
    assert!((stats.live_bytes > 0) == in_ram && !stats.disk_full);

    let proof = stage.claim(ids[0], "coder").await;
    let stats = stage.store.stats();
    assert_eq!((stats.live_handoffs, stats.waiting_handoffs), (4, 3));
    stage.act(ids[0], proof, complete("done")).await.unwrap();
    assert_eq!(code(stage.act(ids[0], proof, complete("other")).await), "already_completed");
    let stats = stage.store.stats();
    assert_eq!((stats.live_handoffs, stats.waiting_handoffs), (3, 3));
    assert_eq!((stats.commands, stats.commits), (7, stats.events), "one by one here");
    stage.clock.advance_ms(DAY);
    stage.sweep().await;
    let stats = stage.store.stats();
    assert_eq!((stats.live_handoffs, stats.idempotency_keys), (0, 0));
}

pub(crate) async fn one_call_is_one_commit(stage: Stage) {
    let offers = (0..COMMANDS_MAX).map(|_| Command::offer(stage.offer(to("coder"))));
    let replies = stage.store.execute(offers.collect()).await.unwrap();
    assert!(replies.iter().all(Result::is_ok));
    let stats = stage.store.stats();
    assert_eq!((stats.commits, stats.events), (1, COMMANDS_MAX as u64));

    let too_many =
        (0..=COMMANDS_MAX).map(|_| Command::of_broker(commands::Sweep::now(1))).collect();
    assert!(matches!(stage.store.execute(too_many).await, Err(Error::Overloaded)));
}
