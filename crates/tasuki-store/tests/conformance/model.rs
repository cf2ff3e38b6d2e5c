// SPDX-License-Identifier: Apache-2.0
//! Random stories of every kind of wish, played on a store and on the core's plain model side by side: the same ids, the
//! same clock, so the same outcomes, the same log and the same state in the end, to the last hash.

use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tasuki_core::commands::{Command, Proof};
use tasuki_core::{Event, HandoffId, Position, TaskId};
use tasuki_store::audit::Verdict;
use tasuki_store::{Error, HandoffFilter, ManualClock, Store, Sync, TaskFilter};

use crate::hangs::{self, ROUNDS_MAX};
use crate::random::pause_ms;
use crate::stage::{BEGIN, Backend, copy_as_after_a_crash};
use crate::support::Stage as Model;
use crate::wider::{Wide, wide};

#[derive(Debug, Clone)]
enum Step {
    Wish(Wide, u64),
    /// Looks at everything, which also lets rows catch up.
    List,
    /// Closes the store and opens it again.
    Restart,
    /// Leaves the store as it is and goes on with a copy of its files, as after a crash.
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => (wide(), pause_ms()).prop_map(|(wish, pause_ms)| Step::Wish(wish, pause_ms)),
        2 => Just(Step::List),
        1 => Just(Step::Restart),
        1 => Just(Step::Crash),
    ]
}

struct Pair {
    model: Model,
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    backend: Backend,
    base: tempfile::TempDir,
    dir: PathBuf,
    crashes: u32,
    claims: Vec<(HandoffId, Proof)>,
}

impl Pair {
    async fn new(backend: Backend) -> Self {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("0");
        let clock = ManualClock::at(BEGIN);
        let store = backend.open(&dir, Sync::Off, clock.clone()).await;
        let model = Model::new();
        assert_eq!(model.now, BEGIN);
        Self { model, store, clock, backend, base, dir, crashes: 0, claims: Vec::new() }
    }

    async fn step(&mut self, step: &Step) {
        match step {
            Step::Wish(wish, pause_ms) => {
                self.model.wait(*pause_ms);
                self.clock.advance_ms(*pause_ms);
                if let Some(command) = wish.command(&mut self.model, &self.claims) {
                    self.run(command).await;
                    self.rest().await;
                    hangs::hold(&self.model.world);
                }
            }
            Step::List => self.agree().await,
            Step::Restart if self.backend == Backend::Volatile => {}
            Step::Restart => {
                self.store.close().await;
                self.reopen().await;
            }
            Step::Crash if self.backend == Backend::Volatile => {}
            Step::Crash => {
                self.crashes += 1;
                let copy = self.base.path().join(self.crashes.to_string());
                copy_as_after_a_crash(&self.dir, &copy);
                self.dir = copy;
                self.reopen().await;
            }
        }
    }

    /// A restart gives every holder a full lease, in the model too. Where other brokers may have
    /// been up all the time, leases run on.
    async fn reopen(&mut self) {
        self.store = self.backend.open(&self.dir, Sync::Off, self.clock.clone()).await;
        if self.backend == Backend::Postgres {
            return;
        }
        for handoff in self.model.world.handoffs.values_mut() {
            Arc::make_mut(handoff).renew(self.model.now);
        }
    }

    /// What the broker does by itself, on the store too, until nothing more follows.
    async fn rest(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let more = hangs::follows(&self.model);
            if more.is_empty() {
                return;
            }
            for command in more {
                self.run(command).await;
            }
        }
        panic!("what follows from a wish never comes to rest");
    }

    async fn run(&mut self, command: Command) {
        let blocked = hangs::blocked(&self.model.world);
        let said = format!("{command:?}");
        let seen = self.model.world.log.len();
        let expected = self.model.run(command.clone());
        let got = self.store.execute(vec![command]).await.unwrap().pop().unwrap();
        match (&expected, got) {
            (Ok(expected), Ok(got)) => {
                assert_eq!(got.outcome, *expected, "{said}");
                for handoff in &got.handoffs {
                    assert_eq!(*handoff, self.model.world.handoffs[&handoff.id], "{said}");
                }
                assert_eq!(got.handoffs.len(), expected.handoffs.len());
                assert_eq!(got.task.map(|task| task.id), expected.task);
            }
            (Err(expected), Err(Error::Refused(got))) => assert_eq!(got, *expected, "{said}"),
            (expected, got) => panic!("{said}: expected {expected:?}, got {got:?}"),
        }
        hangs::offered_since(&self.model.world, seen, &blocked);
        for sealed in &self.model.world.log[seen..] {
            if let (Some(id), Event::Claimed(claimed)) =
                (sealed.record.handoff_id, &sealed.record.event)
            {
                let proof = Proof { claim_id: claimed.claim_id, fence: claimed.fence };
                self.claims.push((id, proof));
            }
        }
    }

    /// What a check says that goes on from the last one, and one of everything. A checkpoint may come
    /// between the two.
    async fn verdicts(&self) -> (Verdict, Verdict) {
        loop {
            let before = self.store.verify().await.unwrap();
            let new = self.store.verify_new().await.unwrap();
            let verdict = self.store.verify().await.unwrap();
            if before.checkpoints == verdict.checkpoints {
                return (new, verdict);
            }
        }
    }

    /// Store and model show the same, however one looks at it.
    async fn agree(&self) {
        let world = &self.model.world;
        let log = self.store.events(Position(0), usize::MAX).await.unwrap();
        assert!(log.iter().map(|entry| &entry.sealed).eq(&world.log));
        for (id, task) in &world.tasks {
            assert_eq!(self.store.task(*id).await.unwrap().as_ref(), Some(task));
        }
        for (id, handoff) in &world.handoffs {
            assert_eq!(self.store.handoff(*id).await.unwrap().as_ref(), Some(handoff));
        }
        let filter = TaskFilter { max: usize::MAX, ..Default::default() };
        let listed = self.store.list_tasks(filter).await.unwrap();
        let tasks = world.tasks.values().rev().filter(|task| task.id != TaskId::STORE);
        assert!(listed.iter().eq(tasks));
        // A heartbeat is no event, so a listing may show an older lease.
        let filter = HandoffFilter { max: usize::MAX, ..Default::default() };
        let listed = self.store.list_handoffs(filter).await.unwrap();
        assert!(
            listed.iter().map(|h| (h.id, h.last_pos)).eq(world
                .handoffs
                .values()
                .rev()
                .map(|h| (h.id, h.last_pos)))
        );
        let known = self.store.registry().borrow().clone();
        assert_eq!(known.guards, world.registry.guards);
        assert_eq!(known.agents, world.registry.agents);
        assert_eq!(known.tokens, world.registry.tokens);
        assert_eq!(known.tenants, world.registry.tenants);
        assert_eq!(known.channels, world.registry.channels);
        let ids = world.documents.keys().map(|id| (id.clone(), None)).collect();
        let found = self.store.documents(ids).await.unwrap().into_iter().flatten();
        assert!(
            found.map(|kept| kept.document).eq(world.documents.values().cloned().map(Arc::new))
        );
        let (new, verdict) = self.verdicts().await;
        assert_eq!(Verdict { verified_before: None, ..new }, verdict, "whether it goes on or not");
        assert_eq!((verdict.first_bad, verdict.events), (None, world.log.len() as u64));
    }
}

fn play(backend: Backend, steps: &[Step]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut pair = Pair::new(backend).await;
        for step in steps {
            pair.step(step).await;
        }
        pair.agree().await;
    });
}

/// The same stories each time, unless `TASUKI_SEED` asks for others.
fn config(cases: u32) -> ProptestConfig {
    let seed = std::env::var("TASUKI_SEED").ok().and_then(|seed| seed.parse().ok());
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed.unwrap_or(20_261_115)),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(300))]
    #[test]
    fn the_volatile_store_does_what_the_model_does(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        play(Backend::Volatile, &steps);
    }
}

proptest! {
    #![proptest_config(config(150))]
    #[test]
    fn the_sqlite_store_does_what_the_model_does_across_restarts_and_crashes(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        play(Backend::Sqlite, &steps);
    }
}

proptest! {
    #![proptest_config(config(40))]
    #[test]
    fn the_postgres_store_does_what_the_model_does_across_restarts_and_crashes(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        play(Backend::Postgres, &steps);
    }
}
