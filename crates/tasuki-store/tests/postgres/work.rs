// SPDX-License-Identifier: Apache-2.0
//! Workers that go on whatever happens to the database, and remember what they were told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tasuki_core::commands::{Command, Proof};
use tasuki_core::event::Event;
use tasuki_core::{HandoffId, Refusal};
use tasuki_store::{Done, Error};
use tokio::sync::Notify;

use crate::stage::{Stage, proof_of};
use crate::support::{complete, key, to};

/// How often a worker repeats a step before it gives up on the database.
const REPEATS_MAX: usize = 50;

#[derive(Default)]
pub(crate) struct Told {
    offered: Mutex<BTreeSet<HandoffId>>,
    completed: Mutex<BTreeMap<HandoffId, Proof>>,
    steps: AtomicUsize,
    step: Notify,
}

impl Told {
    fn note(&self) {
        self.steps.fetch_add(1, Ordering::SeqCst);
        self.step.notify_waiters();
    }

    /// Waits until so many steps were acknowledged.
    pub(crate) async fn steps(&self, count: usize) {
        loop {
            let next = self.step.notified();
            if self.steps.load(Ordering::SeqCst) >= count {
                return;
            }
            next.await;
        }
    }
}

/// Repeats a step that is safe to repeat until somebody says what became of it.
async fn insist<F: Future<Output = Result<Done, Error>>>(step: impl Fn() -> F) -> Done {
    for _ in 0..REPEATS_MAX {
        match step().await {
            Ok(done) => return done,
            Err(Error::Unavailable | Error::Unknown | Error::Overloaded) => {}
            Err(Error::Refused(Refusal::AlreadyCompleted { .. })) => {
                panic!("a completion that was repeated by its own claim is no conflict")
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    panic!("the database did not come back");
}

/// Whole lives, one after the other: offer, claim, complete.
pub(crate) async fn lives(stage: Stage, worker: usize, turns: usize, told: &Told) {
    let name = format!("worker-{worker}");
    for turn in 0..turns {
        let offer = stage.offer(to(&name));
        let key = key(&format!("{name}-{turn}"), "request");
        let done = insist(|| stage.send_keyed(offer.clone(), key.clone())).await;
        let id = done.outcome.handoffs[0];
        assert!(told.offered.lock().unwrap().insert(id));
        told.note();
        let mut wish = stage.wish(&name, 1);
        wish.request_id = Some(format!("{name}-{turn}").parse().unwrap());
        let done = insist(|| stage.run(Command::claim_one(id, wish.clone()))).await;
        let proof = proof_of(&done.handoffs[0]);
        told.note();
        insist(|| stage.act(id, proof, complete("done"))).await;
        assert!(told.completed.lock().unwrap().insert(id, proof).is_none());
        told.note();
    }
}

/// Everything that was told is in the log, once, and the log holds together.
pub(crate) async fn check(stage: &Stage, told: &Told) {
    stage.verified().await;
    let mut offers: BTreeMap<HandoffId, usize> = BTreeMap::new();
    let mut claims: BTreeMap<HandoffId, Vec<Proof>> = BTreeMap::new();
    let mut ends: BTreeMap<HandoffId, usize> = BTreeMap::new();
    for entry in stage.log().await {
        let record = &entry.sealed.record;
        let Some(id) = record.handoff_id else { continue };
        match &record.event {
            Event::TransferOffered(_) => *offers.entry(id).or_default() += 1,
            Event::Claimed(claimed) => claims
                .entry(id)
                .or_default()
                .push(Proof { claim_id: claimed.claim_id, fence: claimed.fence }),
            Event::Completed { .. } => *ends.entry(id).or_default() += 1,
            _ => {}
        }
    }
    let offered = told.offered.lock().unwrap();
    assert!(offered.iter().all(|id| offers.get(id) == Some(&1)), "offered once");
    assert_eq!(offers.len(), offered.len(), "a repeated offer made no second handoff");
    for (id, proof) in &*told.completed.lock().unwrap() {
        assert_eq!(ends.get(id), Some(&1), "completed once");
        assert_eq!(claims[id].last(), Some(proof), "by its last holder");
        assert!(claims[id].is_sorted_by(|one, next| one.fence < next.fence), "fences rise");
    }
}
