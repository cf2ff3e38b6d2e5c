// SPDX-License-Identifier: Apache-2.0
//! The writer with a journal that commits when and as it is told: what happens to a batch that
//! cannot be made durable.

use std::sync::mpsc;
use std::time::Duration;

use tasuki_core::commands::{self, Act, Claim, Offer, OfferTask, Proof, Seeker};
use tasuki_core::decide::Replay;
use tasuki_core::document::StoredBody;
use tasuki_core::envelope::Control;
use tasuki_core::event::Key;
use tasuki_core::ids::{Epoch, IdempotencyKey};
use tasuki_core::{
    AgentId, Body, ClaimId, Document, DocumentId, Handoff, HandoffId, Target, Task, TaskId, Terms,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::*;
use crate::ManualClock;
use crate::live::Appended;
use crate::machine::{Fault, Written};

/// A safety net only.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks for a verdict on each batch, and stands still until it comes.
struct Told {
    asks: UnboundedSender<usize>,
    verdicts: mpsc::Receiver<Result<(), Fault>>,
    room: bool,
}

impl Journal for Told {
    fn load_handoff(&mut self, _: HandoffId) -> Result<Option<Handoff>, Error> {
        Ok(None)
    }
    fn load_task(&mut self, _: TaskId) -> Result<Option<Task>, Error> {
        Ok(None)
    }
    fn load_replay(
        &mut self,
        _: &AgentId,
        _: &IdempotencyKey,
        _: Timestamp,
    ) -> Result<Option<Replay>, Error> {
        Ok(None)
    }
    fn load_document(&mut self, _: &DocumentId) -> Result<Option<Document>, Error> {
        Ok(None)
    }
    fn load_body(&mut self, _: Position) -> Result<Option<StoredBody>, Error> {
        Ok(None)
    }
    fn commit(
        &mut self,
        batch: &[Appended],
        _: &Live,
        _: CatchUp,
        _: Timestamp,
    ) -> Result<Written, Fault> {
        self.asks.send(batch.len()).unwrap();
        let verdict = self.verdicts.recv_timeout(PATIENCE).unwrap();
        verdict.map(|()| Written::default())
    }
    fn save_fold(&mut self, _: &str, _: Position, _: &str) -> Result<(), Error> {
        Ok(())
    }
    fn has_room(&mut self, _: Timestamp) -> bool {
        self.room
    }
    fn free_reserve(&mut self, _: Timestamp) {
        self.room = false;
    }
    fn lag(&self) -> usize {
        0
    }
    fn projected(&self) -> Position {
        Position(0)
    }
    fn close(&mut self) {}
}

struct Stage {
    handle: Arc<Handle>,
    asks: UnboundedReceiver<usize>,
    verdicts: mpsc::Sender<Result<(), Fault>>,
}

impl Stage {
    fn new() -> Self {
        let (asks, asked) = unbounded_channel();
        let (verdicts, told) = mpsc::channel();
        let journal = Told { asks, verdicts: told, room: true };
        let live = Live::new(Epoch(1), Position(0));
        let handle =
            Handle::start(journal, live, ManualClock::at(Timestamp(0)), &Workers::default());
        Self { handle: Arc::new(handle), asks: asked, verdicts }
    }

    /// Sends a command without waiting for its reply. It is in the queue when this returns.
    fn send(&self, command: Command) -> JoinHandle<Result<Vec<Reply>, Error>> {
        let (reply, answer) = oneshot::channel();
        self.handle.send(Message::Execute(vec![command], reply)).unwrap();
        tokio::spawn(async { answer.await.map_err(|_| Error::Unknown) })
    }

    /// How many events the writer wants to commit.
    async fn asked(&mut self) -> usize {
        tokio::time::timeout(PATIENCE, self.asks.recv()).await.unwrap().unwrap()
    }

    /// Lets the writer take up one command and stand still with it.
    async fn stand_still(&mut self) -> JoinHandle<Result<Vec<Reply>, Error>> {
        let first = self.send(offer(1, None));
        assert_eq!(self.asked().await, 1);
        first
    }

    /// What a reader sees now, without asking the writer.
    fn sees(&self, id: u128) -> Option<Arc<Handoff>> {
        self.handle.shared.images().unwrap().handoff(HandoffId(id)).cloned()
    }

    fn say(&self, verdict: Result<(), Fault>) {
        self.verdicts.send(verdict).unwrap();
    }

    /// A handoff that its receiver holds.
    async fn claimed(&mut self, id: u128) -> Proof {
        self.say(Ok(()));
        self.say(Ok(()));
        only(self.send(offer(id, None)).await.unwrap()).unwrap();
        let done = only(self.send(claim(id)).await.unwrap()).unwrap();
        assert_eq!((self.asked().await, self.asked().await), (1, 1));
        let claim = done.handoffs[0].state.claim().unwrap();
        Proof { claim_id: claim.claim_id, fence: claim.fence }
    }
}

fn only(replies: Result<Vec<Reply>, Error>) -> Reply {
    replies.unwrap().pop().unwrap()
}

fn body(text: &str) -> Body {
    Body::of(&serde_json::json!({ "text": text }))
}

pub(crate) fn offer(id: u128, key: Option<&str>) -> Command {
    let key = key.map(|key| Key { key: key.parse().unwrap(), request: body("request").hash });
    let offer = Offer {
        handoff: HandoffId(id),
        task: OfferTask::New {
            task: TaskId(id),
            intent: body("do it").hash,
            correlation_id: None,
            project: None,
            branch_of: None,
            parent: None,
            coordinator: None,
            on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
        },
        from: "planner".parse().unwrap(),
        to: Target::Agent("coder".parse().unwrap()),
        control: Control::Passed,
        envelope: body("envelope"),
        hop: 0,
        previous: None,
        priority: 5,
        terms: Terms::default(),
        contract: tasuki_core::contract::Contract::default(),
        after: None,
        lifted: Vec::new(),
        above: Vec::new(),
        dead_end: None,
        answered_by: Vec::new(),
        expires_at: Timestamp(1_000_000),
        not_before: None,
        needs_approval: false,
        ordering_key: None,
    };
    Command::offer(offer).with_key(key)
}

pub(crate) fn claim(id: u128) -> Command {
    let seeker = Seeker { agent: "coder".parse().unwrap(), capabilities: Vec::new() };
    let claim_ids = vec![ClaimId(id)];
    let claim = Claim { seeker, claim_ids, lease_ms: None, request_id: None };
    Command::claim_one(HandoffId(id), claim)
}

pub(crate) fn complete(id: u128, proof: Proof) -> Command {
    let act = Act::Complete { result: body("done"), follow_ups: Vec::new(), checked: None };
    Command::held(HandoffId(id), proof, None, act)
}

#[tokio::test]
async fn what_comes_in_during_a_commit_shares_the_next_one() {
    let mut stage = Stage::new();
    let first = stage.stand_still().await;
    let waiting: Vec<_> = (2..52).map(|id| stage.send(offer(id, None))).collect();
    assert_eq!(stage.handle.shared.head(), Position(0), "nothing is told too early");
    assert!(!first.is_finished(), "nothing is acknowledged before its commit");
    stage.say(Ok(()));
    stage.say(Ok(()));
    assert_eq!(stage.asked().await, 50);
    only(first.await.unwrap()).unwrap();
    for reply in waiting {
        only(reply.await.unwrap()).unwrap();
    }
    assert_eq!(stage.handle.shared.stats().commits, 2);
}

#[tokio::test]
async fn a_batch_that_found_the_file_busy_is_taken_back_whole() {
    let mut stage = Stage::new();
    let mut news = stage.handle.shared.committed.subscribe();
    let first = stage.stand_still().await;
    let second = stage.send(offer(2, Some("k-1")));
    let third = stage.send(claim(1));
    let (reply, caught_up) = oneshot::channel();
    stage.handle.send(Message::CatchUp(reply)).unwrap();
    stage.say(Ok(()));
    stage.say(Err(Fault::Busy));
    assert_eq!(stage.asked().await, 2);

    only(first.await.unwrap()).unwrap();
    assert!(matches!(only(second.await.unwrap()), Err(Error::Overloaded)));
    assert!(matches!(only(third.await.unwrap()), Err(Error::Overloaded)));
    assert_eq!(stage.sees(2), None, "a reader saw what was not kept");
    assert!(matches!(caught_up.await.unwrap(), Err(Error::Overloaded)));
    assert_eq!(stage.handle.shared.head(), Position(1));
    assert_eq!(news.try_recv().unwrap().changes.len(), 1);
    assert!(news.try_recv().is_err(), "subscribers heard of what was not kept");

    // The key was not used, the handoff not claimed, the positions not taken.
    stage.say(Ok(()));
    stage.say(Ok(()));
    let again = only(stage.send(offer(3, Some("k-1"))).await.unwrap()).unwrap();
    assert!(!again.outcome.repeated);
    assert_eq!(again.handoffs[0].last_pos, Position(2));
    only(stage.send(claim(1)).await.unwrap()).unwrap();
}

#[tokio::test]
async fn readers_see_what_is_committed_while_the_writer_stands_still() {
    let mut stage = Stage::new();
    let proof = stage.claimed(7).await;
    let coder = Target::Agent("coder".parse().unwrap());
    let waiting = |stage: &Stage| stage.handle.shared.images().unwrap().waiting(&coder);
    let in_flight = |stage: &Stage| {
        stage.handle.shared.images().unwrap().usage(&"default".parse().unwrap()).in_flight
    };
    let new = stage.send(offer(8, None));
    assert_eq!(stage.asked().await, 1);
    assert_eq!(stage.sees(8), None, "nothing is seen before its commit");
    assert_eq!(stage.sees(7).unwrap().state.name().as_str(), "claimed");
    assert_eq!((waiting(&stage), in_flight(&stage)), (0, 1));
    stage.say(Ok(()));
    only(new.await.unwrap()).unwrap();
    assert!(stage.sees(8).is_some(), "a reply is seen by whoever has it");
    assert_eq!((waiting(&stage), in_flight(&stage)), (1, 2));
    stage.say(Ok(()));
    only(stage.send(complete(7, proof)).await.unwrap()).unwrap();
    assert_eq!((waiting(&stage), in_flight(&stage)), (1, 1));
}

#[tokio::test]
async fn a_full_disk_refuses_new_work_and_takes_what_finishes_work() {
    let mut stage = Stage::new();
    let proof = stage.claimed(7).await;
    let first = stage.stand_still().await;
    let new = stage.send(offer(2, None));
    let finishing = stage.send(complete(7, proof));
    stage.say(Ok(()));
    stage.say(Err(Fault::Full));
    stage.say(Ok(()));
    assert_eq!(stage.asked().await, 2, "together");
    only(first.await.unwrap()).unwrap();
    assert!(matches!(only(new.await.unwrap()), Err(Error::DiskFull)));
    only(finishing.await.unwrap()).unwrap();
    assert_eq!(stage.asked().await, 1, "the completion by itself, with the space set aside");
    assert!(stage.handle.shared.stats().disk_full);
    let refused = only(stage.send(offer(3, None)).await.unwrap());
    assert!(matches!(refused, Err(Error::DiskFull)), "without trying");
}

#[tokio::test]
async fn when_not_even_the_reserve_is_enough_nothing_is_acknowledged() {
    let mut stage = Stage::new();
    let proof = stage.claimed(7).await;
    let finishing = stage.send(complete(7, proof));
    stage.say(Err(Fault::Full));
    stage.say(Err(Fault::Full));
    assert!(matches!(only(finishing.await.unwrap()), Err(Error::DiskFull)));
    assert_eq!(stage.sees(7).unwrap().state.name().as_str(), "claimed");
    stage.say(Ok(()));
    only(stage.send(complete(7, proof)).await.unwrap()).unwrap();
}

#[tokio::test]
async fn after_a_fault_of_unknown_outcome_nothing_is_acknowledged_any_more() {
    let mut stage = Stage::new();
    let first = stage.stand_still().await;
    let behind = stage.send(offer(2, None));
    stage.say(Err(Fault::Fatal("the sync failed".into())));
    assert!(matches!(first.await.unwrap(), Err(Error::Unknown)));
    assert!(matches!(behind.await.unwrap(), Err(Error::Unknown)));
    let failure = stage.handle.shared.workers.failed().await;
    assert_eq!(failure, Failure::Store("the sync failed".into()));
    assert!(matches!(stage.handle.shared.images().map(drop), Err(Error::Closed)));
    assert_eq!(stage.handle.shared.head(), Position(0));
}

#[tokio::test]
async fn a_full_queue_refuses_at_once() {
    let mut stage = Stage::new();
    let _first = stage.stand_still().await;
    let sweep = || {
        let (reply, answer) = oneshot::channel();
        let sent = stage
            .handle
            .send(Message::Execute(vec![Command::of_broker(commands::Sweep::now(1))], reply));
        sent.map(|()| answer)
    };
    let waiting: Vec<_> = (0..QUEUE_MAX).map(|_| sweep().unwrap()).collect();
    assert!(matches!(sweep(), Err(Error::Overloaded)));
    stage.say(Ok(()));
    for answer in waiting {
        assert!(answer.await.is_ok(), "what was taken in is answered");
    }
}
