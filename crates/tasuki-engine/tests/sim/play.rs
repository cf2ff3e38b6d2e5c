// SPDX-License-Identifier: Apache-2.0
//! What happens: in each act somebody does something, or something goes wrong.

use std::collections::BTreeSet;
use std::sync::Arc;

use tasuki_core::{AgentId, HandoffId, Position, State};
use tasuki_engine::{Entry, Error, Granted, HandoffFilter, PAGE_MAX};
use tasuki_store::{Clock, ManualClock, Mishap, Volatile};

use crate::cast::{Agent, NAMES, Request, Wish, failure, some_offer};
use crate::judge::Judge;
use crate::random::Random;
use crate::support::{BEGIN, HOUR, Ids, MINUTE, SECOND, Stage, agent, completion, proof};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Volatile,
    Sqlite,
}

pub(crate) struct Play {
    random: Random,
    stage: Stage,
    judge: Judge,
    agents: Vec<Agent>,
    /// Offers whose senders heard no answer.
    unanswered: Vec<Request>,
    /// What went over the wire and may come again.
    sent: Vec<Request>,
    numbers: u64,
    place: Place,
    base: tempfile::TempDir,
    ids: Arc<Ids>,
    crashes: u32,
    /// Where there is no disk, what stands for one.
    ram: Option<Arc<Volatile>>,
    /// What has gone wrong with it so far.
    pub(crate) mishaps: BTreeSet<Mishap>,
}

enum Answer {
    Offered(HandoffId),
    Granted(Vec<Granted>),
    Done,
    Refused(&'static str),
    /// The broker could not do it, or cannot say whether it did.
    Failed,
}

impl Play {
    pub(crate) async fn new(seed: u64, place: Place) -> Self {
        let base = tempfile::tempdir().unwrap();
        let ids = Ids::seeded(seed);
        let clock = ManualClock::at(BEGIN);
        let (stage, ram) = match place {
            Place::Volatile => {
                let store = Arc::new(Volatile::new(clock.clone()));
                (Stage::on(store.clone(), clock, ids.clone()), Some(store))
            }
            Place::Sqlite => {
                let dir = base.path().join("0");
                (Stage::sqlite(&dir, clock, ids.clone()).await, None)
            }
        };
        Self {
            random: Random::seeded(seed),
            stage,
            judge: Judge::default(),
            agents: NAMES.map(Agent::new).into(),
            unanswered: Vec::new(),
            sent: Vec::new(),
            numbers: 0,
            place,
            base,
            ids,
            crashes: 0,
            ram,
            mishaps: BTreeSet::new(),
        }
    }

    pub(crate) async fn act(&mut self) {
        match self.random.below(100) {
            0..15 => self.sender_acts().await,
            15..70 => self.agent_acts().await,
            70..76 => self.an_agent_fails(),
            76..80 => self.a_request_comes_again().await,
            80..83 => self.reviewer_acts().await,
            83..85 => self.broker_restarts().await,
            _ => {
                let ms = match self.random.below(40) {
                    0 => self.random.below(HOUR),
                    1..4 => 10 * SECOND + self.random.below(MINUTE),
                    _ => self.random.below(3 * SECOND),
                };
                self.time_passes(ms).await;
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    async fn sender_acts(&mut self) {
        let again = !self.unanswered.is_empty() && self.random.percent(60);
        let request = if again {
            self.unanswered.swap_remove(0)
        } else {
            let number = self.number();
            Request::Offer(some_offer(&mut self.random, number))
        };
        let answer = self.deliver(&request).await;
        if matches!(answer, Answer::Failed) || self.random.percent(25) {
            self.unanswered.push(request);
        } else if let Answer::Offered(id) = answer {
            self.judge.acknowledged.insert(id);
        }
    }

    async fn agent_acts(&mut self) {
        let place = usize::try_from(self.random.below(NAMES.len() as u64)).unwrap();
        if self.agents[place].paused_until > self.stage.clock.now() {
            return;
        }
        let number = self.number();
        let request = match self.agents[place].unanswered.take() {
            Some(request) => request,
            None => self.agents[place].next(&mut self.random, number),
        };
        let answer = self.deliver(&request).await;
        let lost = matches!(answer, Answer::Failed) || self.random.percent(20);
        let agent = &mut self.agents[place];
        match (&request, answer) {
            _ if lost => agent.unanswered = Some(request),
            (_, Answer::Granted(granted)) => {
                for granted in granted {
                    let held = (granted.handoff.id, proof(&granted));
                    self.judge.granted(held.0, held.1);
                    if !agent.holds.contains(&held) {
                        agent.holds.push(held);
                    }
                }
            }
            (
                Request::Held { wish: Wish::Start | Wish::Heartbeat | Wish::Progress, .. },
                Answer::Done,
            ) => {}
            (
                Request::Held { proof, .. },
                Answer::Done | Answer::Refused("stale_claim" | "already_completed"),
            ) => agent.holds.retain(|(_, held)| held != proof),
            _ => {}
        }
    }

    fn an_agent_fails(&mut self) {
        let place = usize::try_from(self.random.below(NAMES.len() as u64)).unwrap();
        let now = self.stage.clock.now();
        let agent = &mut self.agents[place];
        if self.random.percent(50) {
            // It crashes and comes back knowing nothing.
            *agent = Agent::new(agent.name);
        } else {
            // It stops, perhaps past its lease, and goes on as if nothing had happened.
            agent.paused_until = now.plus_ms(self.random.below(MINUTE));
        }
    }

    async fn a_request_comes_again(&mut self) {
        if let Some(request) = self.random.pick(&self.sent).cloned() {
            self.deliver(&request).await;
        }
    }

    async fn reviewer_acts(&mut self) {
        let known: Vec<_> = self.judge.handoffs.keys().copied().collect();
        let Some(id) = self.random.pick(&known).copied() else { return };
        let engine = &self.stage.engine;
        let handoff = engine.handoff(id).await.unwrap();
        let person = || -> AgentId { agent("person") };
        let decided = match (&handoff.state, self.random.below(3)) {
            (State::DeadLettered { .. }, 0) => {
                engine.discard(id, person(), "pointless".into()).await
            }
            (State::DeadLettered { .. }, _) => engine.redrive(id, person(), None, None).await,
            (_, 0) => engine.cancel(id, handoff.from.clone(), None).await,
            _ => return,
        };
        let full = matches!(decided, Err(Error::Store(tasuki_store::Error::DiskFull)));
        assert!(full || matches!(decided, Ok(_) | Err(Error::Refused(_))), "{decided:?}");
        self.read_log(None).await;
    }

    async fn broker_restarts(&mut self) {
        if self.place == Place::Volatile {
            if self.random.percent(50) {
                self.stage.engine.close().await;
            }
            self.another_broker();
            return;
        }
        let (clock, ids) = (self.stage.clock.clone(), self.ids.clone());
        let dir = self.base.path().join(self.crashes.to_string());
        if self.random.percent(50) {
            self.stage.engine.close().await;
            self.stage = Stage::sqlite(&dir, clock, ids).await;
            return;
        }
        self.crashes += 1;
        let copy = self.base.path().join(self.crashes.to_string());
        std::fs::create_dir(&copy).unwrap();
        for name in ["tasuki.db", "tasuki.db-wal", "broker.key", "instance"] {
            std::fs::copy(dir.join(name), copy.join(name)).unwrap();
        }
        self.stage = Stage::sqlite(&copy, clock, ids).await;
    }

    /// One that finds what the one before has written.
    fn another_broker(&mut self) {
        let Some(before) = self.ram.take() else { return };
        let store = Arc::new(before.restarted());
        self.stage = Stage::on(store.clone(), self.stage.clock.clone(), self.ids.clone());
        self.ram = Some(store);
    }

    /// Lets something go wrong with the disk, now and then.
    fn plan(&mut self) -> Option<Mishap> {
        let ram = self.ram.clone()?;
        let mishap = match self.random.below(60) {
            0 => Some(Mishap::Full),
            1 => Some(Mishap::Busy),
            2 => Some(Mishap::LostBefore),
            3 => Some(Mishap::LostAfter),
            _ => None,
        };
        ram.plan(mishap);
        mishap
    }

    /// Moves the clock and lets the sweeper do what is due.
    async fn time_passes(&mut self, ms: u64) {
        self.stage.clock.advance_ms(ms);
        let due = self.stage.store.next_due();
        while due.borrow().is_some_and(|due| due <= self.stage.clock.now()) {
            tokio::task::yield_now().await;
        }
        self.read_log(None).await;
    }

    async fn deliver(&mut self, request: &Request) -> Answer {
        if self.sent.len() == 64 {
            self.sent.swap_remove(usize::try_from(self.random.below(64)).unwrap());
        }
        self.sent.push(request.clone());
        let planned = self.plan();
        let answered = self.carry_out(request).await;
        if let Some(ram) = &self.ram {
            ram.plan(None);
        }
        // A broker whose disk failed is gone, and another one takes its place.
        if self.stage.store.failure().is_some() {
            self.another_broker();
        }
        self.read_log(Some(request)).await;
        let answer = match answered {
            Ok(answer) => answer,
            Err(Error::Refused(refusal) | Error::Ended { refusal, .. }) => {
                Answer::Refused(refusal.code())
            }
            Err(Error::Store(error)) if planned.is_some() || self.lacks_room(&error) => {
                self.mishaps.extend(planned);
                Answer::Failed
            }
            Err(error) => panic!("{error}"),
        };
        match answer {
            Answer::Refused(code) => self.judge.told(request, Err(code)),
            Answer::Offered(_) | Answer::Granted(_) | Answer::Done => {
                self.judge.told(request, Ok(()));
            }
            Answer::Failed => {}
        }
        answer
    }

    /// Whether new work is refused because something went wrong before.
    fn lacks_room(&self, error: &tasuki_store::Error) -> bool {
        matches!(error, tasuki_store::Error::DiskFull) && self.mishaps.contains(&Mishap::Full)
    }

    async fn carry_out(&self, request: &Request) -> Result<Answer, Error> {
        let engine = &self.stage.engine;
        let (id, proof, wish) = match request {
            Request::Offer(new) => {
                let offered = engine.offer(new.clone()).await?;
                return Ok(Answer::Offered(offered.handoff.id));
            }
            Request::Claim(wish) => return engine.claim(wish.clone()).await.map(Answer::Granted),
            Request::Held { handoff, proof, wish } => (*handoff, *proof, wish),
        };
        match wish {
            Wish::Start => drop(engine.start_work(id, proof, None, None).await?),
            Wish::Heartbeat => drop(engine.heartbeat(id, proof, None).await?),
            Wish::Progress => drop(engine.progress(id, proof, None, Some(50), None).await?),
            Wish::Complete(follow_ups) => {
                let request = completion(id, proof, follow_ups.clone());
                drop(engine.complete(vec![request]).await?.pop().unwrap()?);
            }
            Wish::Fail(class) => drop(engine.fail(failure(id, proof, *class)).await?),
            Wish::Release => drop(engine.release(id, proof, None).await?),
            Wish::Decline(agent) => {
                drop(engine.decline(id, agent.clone(), Some(proof), None, None).await?);
            }
        }
        Ok(Answer::Done)
    }

    async fn read_log(&mut self, cause: Option<&Request>) {
        for entry in self.stage.store.events(self.judge.at, usize::MAX).await.unwrap() {
            self.judge.read(&entry.sealed, cause);
        }
    }

    /// Left alone for long enough, everything has an end, and all of it can be seen.
    pub(crate) async fn end(mut self) -> (Vec<Entry>, BTreeSet<Mishap>) {
        self.everything_is_visible().await;
        for _ in 0..4 {
            self.time_passes(24 * HOUR).await;
        }
        self.everything_is_visible().await;
        for (id, account) in &self.judge.handoffs {
            assert_eq!(account.ends, 1, "{id} has no end");
            let (handoff, envelope) = self.stage.engine.envelope(*id).await.unwrap();
            assert!(handoff.state.is_terminal());
            assert_eq!(
                envelope.unwrap().hash,
                account.envelope,
                "{id} does not carry its envelope"
            );
        }
        let stats = self.stage.engine.stats();
        assert_eq!((stats.live_handoffs, stats.waiting_handoffs), (0, 0));
        let verdict = self.stage.engine.verify(true).await.unwrap();
        assert_eq!((verdict.first_bad, verdict.events), (None, self.judge.at.0));
        let log = self.stage.store.events(Position(0), usize::MAX).await.unwrap();
        self.stage.engine.close().await;
        (log, self.mishaps)
    }

    /// Every handoff of the log is listed, and every acknowledged offer is among them.
    async fn everything_is_visible(&self) {
        let mut listed = Vec::new();
        loop {
            let before = listed.last().copied();
            let filter = HandoffFilter { before, max: PAGE_MAX, ..Default::default() };
            let page = self.stage.engine.list_handoffs(filter).await.unwrap();
            if page.is_empty() {
                break;
            }
            listed.extend(page.iter().map(|handoff| handoff.id));
        }
        listed.reverse();
        assert!(listed.iter().eq(self.judge.handoffs.keys()));
        for id in &self.judge.acknowledged {
            assert!(self.judge.handoffs.contains_key(id), "{id} was acknowledged and is gone");
        }
    }
}
