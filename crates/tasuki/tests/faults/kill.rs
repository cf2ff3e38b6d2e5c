// SPDX-License-Identifier: Apache-2.0
//! `kill -9` under load, again and again, on one data directory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::Notify;

use crate::broker::{Broker, Client};

const ROUNDS: usize = 20;
const WORKERS: usize = 16;

/// What clients were told, and so must find again.
#[derive(Default)]
pub(crate) struct Told {
    offered: Mutex<Vec<String>>,
    /// By handoff: the claim that was granted last.
    claimed: Mutex<HashMap<String, Value>>,
    completed: Mutex<HashMap<String, String>>,
    steps: AtomicUsize,
    enough: Notify,
    kill_after: AtomicUsize,
    pub(crate) over: AtomicBool,
}

impl Told {
    /// Waits until so many more steps were acknowledged.
    pub(crate) async fn steps(&self, more: usize) {
        self.kill_after.store(self.steps.load(Ordering::SeqCst) + more, Ordering::SeqCst);
        self.enough.notified().await;
    }

    pub(crate) fn completions(&self) -> usize {
        self.completed.lock().unwrap().len()
    }

    fn step(&self) {
        let steps = self.steps.fetch_add(1, Ordering::SeqCst) + 1;
        if steps == self.kill_after.load(Ordering::SeqCst) {
            self.enough.notify_one();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_step_survives_being_killed_and_none_happens_twice() {
    let data = tempfile::tempdir().unwrap();
    let told = Arc::new(Told::default());
    // Not a clock and not the system's randomness: a failure can be run again.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..ROUNDS {
        let mut broker = Broker::start(data.path());
        check(&broker.client(), &told).await;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round as u64);
        let steps = 50 + usize::try_from(random >> 33).unwrap() % 400;
        told.over.store(false, Ordering::SeqCst);
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| tokio::spawn(work(broker.client(), told.clone(), round, number)))
            .collect();
        told.steps(steps).await;
        broker.kill();
        told.over.store(true, Ordering::SeqCst);
        for worker in workers {
            worker.await.unwrap();
        }
    }
    let broker = Broker::start(data.path());
    check(&broker.client(), &told).await;
    let completed = told.completions();
    assert!(completed > ROUNDS, "only {completed} completions: the test does not test");
}

/// Offers, claims and completes until the broker is gone.
pub(crate) async fn work(client: Client, told: Arc<Told>, round: usize, number: usize) {
    for turn in 0.. {
        if told.over.load(Ordering::SeqCst) {
            return;
        }
        let key = format!("{round}-{number}-{turn}");
        let Ok((status, offered)) = client.offer(&key, &key).await else { return };
        assert_eq!(status, 201, "{offered}");
        told.offered.lock().unwrap().push(text(&offered, "handoff_id"));
        told.step();
        let Ok((status, claims)) = client.claim(&format!("worker-{number}"), &key, 0).await else {
            return;
        };
        assert_eq!(status, 200, "{claims}");
        for claim in claims["claims"].as_array().unwrap() {
            let id = text(claim, "handoff_id");
            told.claimed.lock().unwrap().insert(id.clone(), claim.clone());
            told.step();
            let result = format!("by {key}");
            let Ok((status, answer)) = client.complete(claim, &result).await else { return };
            assert_eq!(status, 200, "{answer}");
            told.completed.lock().unwrap().insert(id, result);
            told.step();
        }
    }
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap().to_owned()
}

pub(crate) async fn check(client: &Client, told: &Told) {
    let offered = told.offered.lock().unwrap().clone();
    let claimed = told.claimed.lock().unwrap().clone();
    let completed = told.completed.lock().unwrap().clone();
    let (_, verdict) = client.get("/v1/audit/verify").await.unwrap();
    assert_eq!(verdict["intact"], true, "{verdict}");
    let mut ends: HashMap<String, usize> = HashMap::new();
    let mut offers: HashMap<String, usize> = HashMap::new();
    for line in client.log().await {
        let record = &line["event"]["record"];
        let id = record["handoff_id"].as_str().unwrap_or_default().to_owned();
        match record["kind"].as_str() {
            Some("completed") => *ends.entry(id).or_default() += 1,
            Some("transfer_offered") => *offers.entry(id).or_default() += 1,
            _ => {}
        }
    }
    assert!(ends.values().all(|times| *times == 1), "something was completed twice");
    for id in &offered {
        assert_eq!(offers.get(id), Some(&1), "{id} was acknowledged and is not in the log once");
    }
    for (id, result) in &completed {
        assert_eq!(ends.get(id), Some(&1), "{id} was completed and is not in the log");
        let handoff = client.handoff(id).await;
        assert_eq!(handoff["state"], "completed", "{id}");
        assert_eq!(handoff["output"]["payload"]["text"], result.as_str(), "{id}");
    }
    for (id, claim) in claimed.iter().filter(|(id, _)| !completed.contains_key(*id)) {
        let handoff = client.handoff(id).await;
        // The completion may have got through without its answer; otherwise the claim still holds,
        // because a restart gives every holder a full lease.
        match handoff["state"].as_str() {
            Some("completed") => {}
            Some("claimed") => assert_eq!(handoff["holder"]["fence"], claim["fence"], "{id}"),
            other => panic!("{id} was claimed and is {other:?}"),
        }
    }
}
