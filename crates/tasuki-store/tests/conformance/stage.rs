// SPDX-License-Identifier: Apache-2.0
//! A stage to play stories on: a store of some backend, a clock that only moves when told, and
//! short words for the usual commands. Clones share all of it, so that several workers can play.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tasuki_core::commands::{self, Act, Claim, Command, Offer, OfferTask, Proof};
use tasuki_core::envelope::Control;
use tasuki_core::event::Key;
use tasuki_core::handoff::PRIORITY_DEFAULT;
use tasuki_core::{
    ClaimId, Handoff, HandoffId, Position, Refusal, Target, Task, TaskId, Terms, Timestamp,
};
use tasuki_store::{
    Clock, Done, Entry, Error, ManualClock, Postgres, PostgresOptions, Sqlite, SqliteOptions,
    Store, Sync, Volatile,
};

use crate::support::{DAY, agent, body, seeker, to};

pub(crate) const BEGIN: Timestamp = Timestamp(1_800_000_000_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Volatile,
    Sqlite,
    Postgres,
}

impl Backend {
    /// A store that keeps what it keeps in a directory, if it keeps anything.
    pub(crate) async fn open(
        self,
        dir: &Path,
        sync: Sync,
        clock: Arc<ManualClock>,
    ) -> Arc<dyn Store> {
        match self {
            Self::Volatile => Arc::new(Volatile::new(clock)),
            Self::Sqlite => {
                let options = SqliteOptions { dir: dir.to_owned(), sync };
                Arc::new(Sqlite::open(options, clock).await.unwrap())
            }
            Self::Postgres => Arc::new(open_postgres(dir, clock).await),
        }
    }
}

/// A store on a database of its own, whose URL is kept where others keep their files.
async fn open_postgres(dir: &Path, clock: Arc<ManualClock>) -> Postgres {
    std::fs::create_dir_all(dir).unwrap();
    let url = match std::fs::read_to_string(dir.join("url")) {
        Ok(url) => url,
        Err(_) => {
            let url = scratch_postgres::shared().database().await;
            std::fs::write(dir.join("url"), &url).unwrap();
            url
        }
    };
    let key = tasuki_store::key::load(dir).unwrap();
    let options = PostgresOptions { connections_max: 4, ..PostgresOptions::new(url, key) };
    Postgres::open(options, clock).await.unwrap()
}

#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    /// Where the store keeps its files, below what is cleared away after the story.
    pub(crate) dir: PathBuf,
    pub(crate) base: Arc<tempfile::TempDir>,
    pub(crate) backend: Backend,
    pub(crate) ids: Arc<AtomicU64>,
}

impl Stage {
    pub(crate) async fn open(backend: Backend) -> Self {
        let base = Arc::new(tempfile::tempdir().unwrap());
        let dir = base.path().join("data");
        let clock = ManualClock::at(BEGIN);
        let store = backend.open(&dir, Sync::Full, clock.clone()).await;
        Self { store, clock, dir, base, backend, ids: Arc::default() }
    }

    /// The same story goes on with the data in another directory.
    pub(crate) async fn go_on_in(&self, dir: &Path) -> Self {
        let store = self.backend.open(dir, Sync::Full, self.clock.clone()).await;
        Self { store, dir: dir.to_owned(), ..self.clone() }
    }

    /// Closes the store and opens it again.
    pub(crate) async fn restart(&self) -> Self {
        self.store.close().await;
        self.go_on_in(&self.dir).await
    }

    pub(crate) fn next_id(&self) -> u128 {
        u128::from(self.ids.fetch_add(1, Ordering::Relaxed)) + 1
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) async fn run(&self, command: Command) -> Result<Done, Error> {
        self.store.execute(vec![command]).await?.pop().unwrap()
    }

    pub(crate) async fn sweep(&self) -> Vec<HandoffId> {
        self.run(Command::of_broker(commands::Sweep::now(100))).await.unwrap().outcome.handoffs
    }

    pub(crate) async fn wait_and_sweep(&self, ms: u64) -> Vec<HandoffId> {
        self.clock.advance_ms(ms);
        self.sweep().await
    }

    pub(crate) fn new_task(&self) -> OfferTask {
        let task = TaskId(self.next_id());
        OfferTask::New {
            task,
            intent: body("do it").hash,
            correlation_id: None,
            parent: None,
            coordinator: None,
            project: None,
            branch_of: None,
            on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
        }
    }

    /// The planner's offer of a new task, which nobody sent yet.
    pub(crate) fn offer(&self, to: Target) -> Offer {
        let handoff = HandoffId(self.next_id());
        Offer {
            handoff,
            task: self.new_task(),
            from: agent("planner"),
            to,
            control: Control::Passed,
            envelope: body(&format!("envelope {handoff}")),
            hop: 0,
            previous: None,
            priority: PRIORITY_DEFAULT,
            terms: Terms::default(),
            contract: tasuki_core::contract::Contract::default(),
            after: None,
            lifted: Vec::new(),
            above: Vec::new(),
            dead_end: None,
            answered_by: Vec::new(),
            expires_at: self.now().plus_ms(DAY),
            not_before: None,
            needs_approval: false,
            ordering_key: None,
        }
    }

    /// The planner's offer of a new task, changed by the story before it is sent.
    pub(crate) async fn offer_to(&self, to: Target, change: impl FnOnce(&mut Offer)) -> HandoffId {
        let mut offer = self.offer(to);
        change(&mut offer);
        self.send(offer).await.unwrap().outcome.handoffs[0]
    }

    /// A new task that the planner hands to the coder.
    pub(crate) async fn offered(&self) -> HandoffId {
        self.offer_to(to("coder"), |_| {}).await
    }

    pub(crate) async fn send(&self, offer: Offer) -> Result<Done, Error> {
        self.run(Command::offer(offer)).await
    }

    pub(crate) async fn send_keyed(&self, offer: Offer, key: Option<Key>) -> Result<Done, Error> {
        self.run(Command::offer(offer).with_key(key)).await
    }

    pub(crate) fn wish(&self, name: &str, count: usize) -> Claim {
        let claim_ids = (0..count).map(|_| ClaimId(self.next_id())).collect();
        Claim { seeker: seeker(name), claim_ids, lease_ms: None, request_id: None }
    }

    pub(crate) async fn try_claim(&self, handoff: HandoffId, name: &str) -> Result<Done, Error> {
        let claim = self.wish(name, 1);
        self.run(Command::claim_one(handoff, claim)).await
    }

    pub(crate) async fn claim(&self, handoff: HandoffId, name: &str) -> Proof {
        proof_of(&self.try_claim(handoff, name).await.unwrap().handoffs[0])
    }

    pub(crate) async fn claim_next(&self, name: &str, count: usize) -> Vec<HandoffId> {
        self.run(Command::claim(self.wish(name, count))).await.unwrap().outcome.handoffs
    }

    pub(crate) async fn act(
        &self,
        handoff: HandoffId,
        proof: Proof,
        act: Act,
    ) -> Result<Done, Error> {
        self.run(Command::held(handoff, proof, None, act)).await
    }

    pub(crate) async fn redrive(&self, handoff: HandoffId) -> Result<Done, Error> {
        let new = HandoffId(self.next_id());
        self.run(Command::by(
            agent("person"),
            commands::Redrive { handoff, new, to: None, expires_in_ms: None, above: Vec::new() },
        ))
        .await
    }

    /// Makes a dead letter of a handoff that the coder could claim.
    pub(crate) async fn kill(&self, handoff: HandoffId) {
        let proof = self.claim(handoff, "coder").await;
        let fail = crate::support::fail(tasuki_core::event::FailureClass::Permanent);
        self.act(handoff, proof, fail).await.unwrap();
    }

    pub(crate) async fn handoff(&self, id: HandoffId) -> Arc<Handoff> {
        self.store.handoff(id).await.unwrap().unwrap()
    }

    /// The task that a handoff moves.
    pub(crate) async fn task_of(&self, id: HandoffId) -> Arc<Task> {
        self.store.task(self.handoff(id).await.task_id).await.unwrap().unwrap()
    }

    pub(crate) async fn state(&self, id: HandoffId) -> &'static str {
        self.handoff(id).await.state.name().as_str()
    }

    /// The whole log.
    pub(crate) async fn log(&self) -> Vec<Entry> {
        self.store.events(Position(0), usize::MAX).await.unwrap()
    }

    /// What happened to a handoff, in order.
    pub(crate) async fn story(&self, id: HandoffId) -> Vec<&'static str> {
        let log = self.log().await;
        let records = log.iter().map(|entry| &entry.sealed.record);
        records.filter(|r| r.handoff_id == Some(id)).map(|r| r.event.kind()).collect()
    }

    /// The log holds together from its first entry to its last.
    pub(crate) async fn verified(&self) {
        let verdict = self.store.verify().await.unwrap();
        assert_eq!(verdict.first_bad, None);
        // What another broker has just committed may not have been heard of yet.
        let head = self.store.head().0;
        assert!(verdict.events == head || self.backend == Backend::Postgres, "{verdict:?}");
        assert!(verdict.events >= head, "{verdict:?}");
    }
}

/// What a crash leaves: the files as they are at this moment, in the middle of whatever goes on.
/// The write-ahead log must not be moved into the database meanwhile, so this is for small stores.
pub(crate) fn copy_as_after_a_crash(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for name in ["tasuki.db", "tasuki.db-wal", "broker.key", "instance", "url"] {
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

/// What the present holder of a handoff can show.
pub(crate) fn proof_of(handoff: &Handoff) -> Proof {
    let claim = handoff.state.claim().unwrap();
    Proof { claim_id: claim.claim_id, fence: claim.fence }
}

/// The code of a refusal.
#[track_caller]
pub(crate) fn code(result: Result<Done, Error>) -> &'static str {
    match result {
        Err(Error::Refused(refusal)) => Refusal::code(&refusal),
        other => panic!("expected a refusal, got {other:?}"),
    }
}
