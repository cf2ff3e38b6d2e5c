// SPDX-License-Identifier: Apache-2.0
//! The one way in. Each method converts a request into a command, hands it to the store, and
//! returns what became of it.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};

use tasuki_core::address::Guard;
use tasuki_core::assembly::Profiles;
use tasuki_core::breaker::{House, Limits};
use tasuki_core::canonical::{Body, Object};
use tasuki_core::commands::{self, Command, OpenTask, Seeker};
use tasuki_core::cursor::Epochs;
use tasuki_core::envelope::{HOPS_MAX, INTENT_BYTES_MAX, Payload, version};
use tasuki_core::identity::{PublicKey, SecretKey};
use tasuki_core::ids::TENANT_DEFAULT;
use tasuki_core::observe::Records;
use tasuki_core::registry::Registry;
use tasuki_core::report::{Intent, Note, TaskResult};
use tasuki_core::secrets;
use tasuki_core::terms::{LEASE_MS_MAX, LEASE_MS_MIN};
use tasuki_core::{
    AgentId, Capability, Handoff, HandoffId, Position, Refusal, Target, Task, TaskId, TaskState,
    Terms, Timestamp,
};
use tasuki_protocol::Below;
use tasuki_store::{Done, Failure, Needs, PAGE_MAX, Reply, Store, TaskFilter, Until};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::alerting::{Messenger, Webhooks};
use crate::audience::Others;
use crate::authenticate::SecurityLog;
use crate::directory::Directory;
use crate::error::{Error, invalid};
use crate::fair::Fair;
use crate::folds::Fold;
use crate::folds::epochs::Turning;
use crate::folds::follower::Follower;
use crate::folds::metering::{Metering, Watched};
use crate::folds::observer::Observer;
use crate::folds::presence::{Presence, Sharing};
use crate::folds::waiters::Waiters;
use crate::folds::waking::Waking;
use crate::ids::IdSource;
use crate::instruments::Instruments;
use crate::keys;
use crate::offer::in_project;
use crate::pipelines::Declared;
use crate::pool::Pool;
use crate::populations::Studied;
use crate::rates::{Denials, Rates};
use crate::ready::Ready;
use crate::requests::{
    ClaimOneRequest, ClaimRequest, CounterRequest, Granted, NewTask, PeekRequest,
};
use crate::schemas::Schemas;
use crate::sight::Envelopes;
use crate::talk::Brought;
use crate::{folds, sweeper};

/// What holds where a request is silent.
#[derive(Debug, Clone)]
pub struct Settings {
    pub terms: Terms,
    /// When nothing more is sent to an agent that fails, and for how long.
    pub breakers: Limits,
    /// How long a handoff may take from offer to end.
    pub expires_in_ms: u64,
    /// How many handoffs one claim may take.
    pub claims_max: usize,
    /// How long one call may wait.
    pub wait_ms_max: u64,
    /// How many free-text bytes a reason or note may have.
    pub note_bytes_max: usize,
    /// Whether somebody who does not say who it is may speak for any agent.
    pub open: bool,
    /// The broker's own key, with which it signs what it delivers.
    pub signer: Option<Arc<SecretKey>>,
    /// What is done about secrets in what is to be stored.
    pub secrets: secrets::Policy,
    /// How many hops a chain may have.
    pub hops_max: u32,
    /// The key by which what the broker says is checked, where it signs anything.
    pub key: Option<PublicKey>,
    /// Where the broker may deliver besides public addresses.
    pub guard: Guard,
    /// What receivers want to see, by their role.
    pub profiles: Arc<Profiles>,
    /// Where notices of alerts go.
    pub webhooks: Webhooks,
    /// What is done about envelopes that decide against the log of their project.
    pub project_decisions: ProjectDecisions,
}

/// What is done about an envelope that decides otherwise than its project has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProjectDecisions {
    /// It is refused.
    #[default]
    Bind,
    /// Its sender is told.
    Tell,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            terms: Terms::default(),
            breakers: Limits::default(),
            expires_in_ms: 24 * 60 * 60 * 1000,
            claims_max: 100,
            wait_ms_max: 60_000,
            note_bytes_max: 16 * 1024,
            open: true,
            signer: None,
            secrets: secrets::Policy::default(),
            hops_max: HOPS_MAX,
            key: None,
            guard: Guard::default(),
            profiles: Arc::new(Profiles::standard().clone()),
            project_decisions: ProjectDecisions::default(),
            webhooks: Webhooks::default(),
        }
    }
}

impl Settings {
    /// What decisions must know of this broker.
    fn house(&self) -> House {
        let expires_in_ms = self.expires_in_ms;
        House { breakers: self.breakers, terms: self.terms, expires_in_ms }
    }
}

pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) settings: Settings,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) head: watch::Receiver<Position>,
    pub(crate) epochs: watch::Receiver<Option<Arc<Epochs>>>,
    /// Turns true when long waits should end, because the broker is going away.
    pub(crate) closing: watch::Sender<bool>,
    pub(crate) security: SecurityLog,
    pub(crate) rates: Rates,
    fair: Arc<Fair>,
    pub(crate) denials: Denials,
    pub(crate) others: Others,
    pub(crate) directory: Directory,
    pub(crate) schemas: Arc<Schemas>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) records: Arc<Mutex<Records>>,
    /// What is measured of the work, and the alerts that follow from it.
    pub(crate) watched: Arc<Watched>,
    /// What is measured of this broker.
    pub(crate) instruments: Arc<Instruments>,
    /// Sends notices, once that was begun.
    pub(crate) messenger: OnceLock<Arc<dyn Messenger>>,
    pub(crate) ready: Ready,
    pub(crate) pool: Pool,
    /// What was found out about the population last.
    pub(crate) studied: Studied,
    pub(crate) envelopes: Envelopes,
    /// Whose turn it is.
    pub(crate) turn: AtomicU64,
    /// Pipelines that are declared, by name and version.
    pub(crate) pipelines: Declared,
    /// The sweeper and the folds, which hold the store and would never end by themselves.
    workers: [AbortHandle; 4],
    /// Reacts to what was committed with commands of its own.
    follower: OnceLock<AbortHandle>,
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.workers.iter().chain(self.follower.get()).for_each(AbortHandle::abort);
    }
}

impl Engine {
    /// Starts the sweeper and the folds on the current runtime.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, ids: Arc<dyn IdSource>, settings: Settings) -> Arc<Self> {
        let waiters = Arc::new(Waiters::default());
        let (tell_head, head) = watch::channel(Position(0));
        let (tell_epochs, epochs) = watch::channel(None);
        let presence = Arc::new(Presence::default());
        let records = Arc::new(Mutex::new(Records::default()));
        let directory = Directory::default();
        let declared = directory.declared.clone();
        let observer = Observer::new(store.clone(), records.clone(), declared);
        let turning = Turning::new(store.clone(), tell_epochs);
        let waking = Waking { store: store.clone(), waiters: waiters.clone(), head: tell_head };
        let sharing = Sharing::new(store.clone(), presence.clone());
        let watched = Arc::<Watched>::default();
        let instruments = Arc::new(Instruments::new(store.clock().now().0));
        let metering = Metering::new(store.clone(), watched.clone(), instruments.clone());
        // What is known comes before the wake-ups, so that whoever is woken finds it.
        let reacting: Vec<Box<dyn Fold>> =
            vec![Box::new(turning), Box::new(observer), Box::new(waking)];
        let watch = store.workers().clone();
        let fold = |name, folds| {
            let driving = folds::drive(store.clone(), store.subscribe(), folds);
            watch.spawn(name, Until::Closed, driving).abort_handle()
        };
        let workers = [
            fold("observer and wake-ups", reacting),
            {
                let sweeping = sweeper::run(store.clone(), settings.house());
                watch.spawn("sweeper", Until::Closed, sweeping).abort_handle()
            },
            fold("sharing of presence", vec![Box::new(sharing)]),
            // By itself: it may have much to catch up with, and nobody is to wait for that.
            fold("metering", vec![Box::new(metering)]),
        ];
        let closing = watch::Sender::new(false);
        let news = store.subscribe();
        let engine = Arc::new(Self {
            store,
            ids,
            settings,
            waiters,
            head,
            epochs,
            closing,
            security: SecurityLog::default(),
            rates: Rates::default(),
            fair: Arc::default(),
            denials: Denials::default(),
            others: Others::default(),
            directory,
            schemas: Arc::default(),
            presence,
            records,
            watched,
            instruments,
            messenger: OnceLock::new(),
            ready: Ready::default(),
            pool: Pool::default(),
            studied: Studied::default(),
            envelopes: Envelopes::default(),
            turn: AtomicU64::new(0),
            pipelines: Declared::default(),
            workers,
            follower: OnceLock::new(),
        });
        let follower: Vec<Box<dyn Fold>> = vec![Box::new(Follower::new(Arc::downgrade(&engine)))];
        let follower = folds::drive(engine.store.clone(), news, follower);
        let follower = watch.spawn("follower", Until::Closed, follower).abort_handle();
        engine.follower.get_or_init(|| follower);
        engine
    }

    /// The terms that hold where an offer names none.
    #[must_use]
    pub fn terms(&self) -> Terms {
        self.settings.terms
    }

    /// Who is known.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.store.registry().borrow().clone()
    }

    /// Waits until the store's clock shows another second.
    pub async fn wait_for_next_second(&self) {
        let now = self.store.clock().now();
        let next = Timestamp(now.0 - now.0.rem_euclid(1000)).plus_ms(1000);
        self.store.clock().sleep_until(next).await;
    }

    /// Why a command sent now would not be taken, if so.
    #[must_use]
    pub fn not_ready(&self) -> Option<String> {
        if *self.closing.borrow() {
            return Some("the broker is shutting down".into());
        }
        self.store.failure()
    }

    /// Ends all long waits; they answer with what they have.
    pub fn end_waits(&self) {
        self.store.workers().may_end();
        self.closing.send_replace(true);
    }

    /// Writes everything down and lets go of the store.
    pub async fn close(&self) {
        self.end_waits();
        self.store.close().await;
    }

    /// Resolves once the broker cannot go on: the store can no longer be trusted, or something that
    /// works in the background is gone.
    pub async fn failed(&self) -> Failure {
        self.store.workers().failed().await
    }

    /// Starts something that works in the background until the broker goes away.
    pub fn start_worker(
        &self,
        name: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        self.store.workers().spawn(name, Until::Closed, work);
    }

    /// Carries out commands of one tenant, when it is its turn.
    pub(crate) async fn execute(&self, commands: Vec<Command>) -> Result<Vec<Reply>, Error> {
        let tenant =
            commands.first().map_or(TENANT_DEFAULT, |command| command.by.tenant()).to_owned();
        let _turn = self.fair.turn(&tenant, self.now()).await;
        let house = self.settings.house();
        let commands = commands.into_iter().map(|command| command.in_house(house)).collect();
        Ok(self.store.execute(commands).await?)
    }

    pub(crate) async fn one(&self, command: Command) -> Result<Done, Error> {
        let mut replies = self.execute(vec![command]).await?;
        let reply: Reply = replies.pop().unwrap_or(Err(tasuki_store::Error::Unknown));
        Ok(reply?)
    }

    pub(crate) async fn one_handoff(&self, command: Command) -> Result<Arc<Handoff>, Error> {
        let done = self.one(command).await?;
        done.handoffs.into_iter().next().ok_or(Error::Store(tasuki_store::Error::Unknown))
    }

    async fn one_task(&self, command: Command) -> Result<(Arc<Task>, bool), Error> {
        let done = self.one(command).await?;
        let task = done.task.ok_or(Error::Store(tasuki_store::Error::Unknown))?;
        Ok((task, done.outcome.repeated))
    }

    /// Opens a task that its owner keeps for now. Tells whether it was there already.
    pub async fn open_task(&self, mut new: NewTask) -> Result<(Arc<Task>, bool), Error> {
        let opened = self.try_open_task(new.clone()).await;
        let Err(error) = &opened else { return opened };
        let Some(key) = keys::formerly(new.key.as_ref(), &new, error) else { return opened };
        new.key = Some(key);
        self.try_open_task(new).await
    }

    async fn try_open_task(&self, new: NewTask) -> Result<(Arc<Task>, bool), Error> {
        let parent = match new.parent_task_id {
            Some(parent) => Some(self.parent(parent, &new.owner).await?),
            None => None,
        };
        let parent = parent.as_deref();
        let intent = match (new.intent, parent) {
            (Some(intent), _) => intent.into(),
            (None, Some(parent)) => self.intent_of(parent).await?,
            (None, None) => return Err(invalid("intent", "a new task needs the user's own words")),
        };
        check_intent(&intent)?;
        // What is not said is as it is above, as of a call.
        let coordinator = self.coordinator(&new.owner, new.coordinator.as_ref()).await?;
        let coordinator = coordinator.or_else(|| parent?.coordinator.clone());
        let correlation_id = new.correlation_id.or_else(|| parent?.correlation_id.clone());
        let key = new.key;
        let project = match parent {
            Some(parent) => in_project(parent, new.project)?,
            None => new.project,
        };
        let open = OpenTask {
            task: self.ids.task(),
            intent: Intent::body(&intent),
            correlation_id,
            parent: new.parent_task_id,
            coordinator,
            channel: None,
            project,
            on_parent_end: new.on_parent_end.unwrap_or_default(),
        };
        self.one_task(Command::by(new.owner, open).with_key(key)).await
    }

    pub async fn cancel_task(
        &self,
        task: TaskId,
        by: AgentId,
        reason: Option<String>,
    ) -> Result<Arc<Task>, Error> {
        let reason = self.note(reason)?;
        let letter = self.look(Needs::task(task)).await?.task(task).and_then(|task| task.last);
        let cancel = Command::by(by, commands::CancelTask { task, reason, letter });
        let cancelled = self.one_task(cancel).await?.0;
        self.settle_tree(task).await;
        Ok(cancelled)
    }

    /// Claims up to `max` handoffs, waiting for the first if there is none.
    pub async fn claim(&self, wish: ClaimRequest) -> Result<Vec<Granted>, Error> {
        self.claim_while(wish, || Ok(())).await
    }

    /// Claims as long as the caller may: it is asked again before each look.
    pub(crate) async fn claim_while(
        &self,
        wish: ClaimRequest,
        still_may: impl Fn() -> Result<(), Error>,
    ) -> Result<Vec<Granted>, Error> {
        let max = self.within_claims(wish.max)?;
        check_lease(wish.lease_ms)?;
        let major = self.major_for(&wish.agent, &wish.majors).await?;
        let seeker = Seeker { agent: wish.agent, capabilities: wish.capabilities };
        let command = || {
            // The decision leaves out what is paused; looking for less keeps that out of the way.
            let (registry, now) = (self.registry(), self.now());
            let open = |it: &&Capability| {
                registry.pause_of(&Target::Capability((*it).clone()), now).is_none()
            };
            let capabilities = seeker.capabilities.iter().filter(open).cloned().collect();
            Command::claim(commands::Claim {
                seeker: Seeker { agent: seeker.agent.clone(), capabilities },
                claim_ids: (0..max).map(|_| self.ids.claim()).collect(),
                lease_ms: wish.lease_ms,
                request_id: wish.request_id.clone(),
            })
        };
        let _looking = self.presence.looks(&seeker, self.now());
        let handoffs = self.until_work(&seeker, wish.wait_ms, command, still_may).await?;
        self.grant(handoffs, major).await
    }

    pub async fn claim_one(&self, wish: ClaimOneRequest) -> Result<Granted, Error> {
        self.claim_one_while(wish, || Ok(())).await
    }

    /// Claims one as long as the caller may: it is asked again after each wait.
    pub(crate) async fn claim_one_while(
        &self,
        wish: ClaimOneRequest,
        still_may: impl Fn() -> Result<(), Error>,
    ) -> Result<Granted, Error> {
        check_lease(wish.lease_ms)?;
        let major = self.major_for(&wish.agent, &wish.majors).await?;
        let claim = commands::Claim {
            seeker: Seeker { agent: wish.agent, capabilities: wish.capabilities },
            claim_ids: vec![self.ids.claim()],
            lease_ms: wish.lease_ms,
            request_id: wish.request_id,
        };
        let command = || Command::claim_one(wish.handoff, claim.clone());
        let handoff = self.until_answered(wish.handoff, wish.wait_ms, command, still_may).await?;
        let mut granted = self.grant(vec![handoff], major).await?;
        granted.pop().ok_or(Error::Store(tasuki_store::Error::Unknown))
    }

    /// Shows what waits for an agent, and records that it was shown.
    pub async fn peek(&self, wish: PeekRequest) -> Result<Vec<Granted>, Error> {
        let max = self.within_claims(wish.max)?;
        let major = self.major_for(&wish.agent, &wish.majors).await?;
        let seeker = Seeker { agent: wish.agent, capabilities: wish.capabilities };
        drop(self.presence.looks(&seeker, self.now()));
        let done = self.one(Command::peek(seeker, max)).await?;
        self.grant(done.handoffs, major).await
    }

    fn within_claims(&self, max: usize) -> Result<usize, Error> {
        if (1..=self.settings.claims_max).contains(&max) {
            return Ok(max);
        }
        Err(invalid("max", format!("is {max}, expected 1 to {}", self.settings.claims_max)))
    }

    /// What was claimed or shown, with its envelopes and what its tasks are built on, in one look.
    async fn grant(&self, handoffs: Vec<Arc<Handoff>>, major: u32) -> Result<Vec<Granted>, Error> {
        if handoffs.is_empty() {
            return Ok(Vec::new());
        }
        let at = handoffs.iter().map(|handoff| handoff.envelope_pos);
        let tasks = handoffs.iter().map(|handoff| handoff.task_id);
        let held = handoffs.iter().filter(|handoff| handoff.state.claim().is_some());
        let said = held.flat_map(|handoff| Brought::positions(handoff));
        let needs = Needs::default().and_tasks(tasks).and_bodies(at).and_bodies(said);
        // The claim is made; that its envelope could not be read leaves the caller with a question
        // that the same request id answers.
        let sight = self.store.look(needs).await;
        let sight = sight.map_err(|_| Error::Store(tasuki_store::Error::Unknown))?;
        let now = self.store.clock().now();
        let mut left = HashMap::new();
        for task in handoffs.iter().filter_map(|handoff| sight.task_of(handoff)) {
            let of_task = self.left_of(task).await;
            let of_task = of_task.map_err(|_| Error::Store(tasuki_store::Error::Unknown))?;
            left.insert(task.id, of_task);
        }
        let granted = handoffs.into_iter().map(|handoff| {
            let budget = left.get(&handoff.task_id).copied().flatten();
            let on_hold = sight.task_of(&handoff).and_then(|task| task.tree.on_hold);
            let envelope = sight.envelope(&handoff).cloned();
            let taints = sight.task_of(&handoff).map(|task| task.taints.iter());
            let taints = taints.into_iter().flatten().map(|(source, _)| *source).collect();
            let claim = handoff.state.claim();
            let lease_left_ms = claim.map_or(0, |claim| claim.ends_at().ms_after(now));
            let work_left_ms = claim.map_or(0, |claim| claim.hard_until.ms_after(now));
            let delivery = claim.and_then(|claim| self.deliver(&handoff, claim));
            let envelope = envelope.map(|envelope| in_major(envelope, major));
            let brought = claim.map(|_| Brought::of(&handoff, &sight)).unwrap_or_default();
            Granted {
                handoff,
                envelope,
                lease_left_ms,
                work_left_ms,
                taints,
                budget,
                on_hold,
                delivery,
                brought,
            }
        });
        Ok(granted.collect())
    }

    /// Says on which other terms an agent would take a handoff.
    pub async fn counter(&self, wish: CounterRequest) -> Result<Arc<Handoff>, Error> {
        let reason = self.note(Some(wish.reason))?;
        let reason =
            reason.ok_or_else(|| invalid("reason", "expected why other terms are needed"))?;
        let handoff = self.handoff(wish.handoff).await?;
        if handoff.from.tenant() != wish.agent.tenant() {
            return Err(Refusal::HandoffNotFound(wish.handoff).into());
        }
        let terms = wish.terms.over(handoff.terms);
        let seeker = Seeker { agent: wish.agent, capabilities: wish.capabilities };
        let budget_tokens = wish.budget_tokens;
        let handoff = wish.handoff;
        let command = Command::by(
            seeker.agent.clone(),
            commands::Counter { handoff, seeker, terms, budget_tokens, reason },
        );
        self.one_handoff(command).await
    }

    /// Accepts or refuses an agent's counter-offer.
    pub async fn settle_counter(
        &self,
        handoff: HandoffId,
        by: AgentId,
        agent: AgentId,
        accept: bool,
    ) -> Result<Arc<Handoff>, Error> {
        self.one_handoff(Command::by(by, commands::SettleCounter { handoff, agent, accept })).await
    }

    pub async fn cancel(
        &self,
        id: HandoffId,
        by: AgentId,
        reason: Option<String>,
    ) -> Result<Arc<Handoff>, Error> {
        let reason = self.note(reason)?;
        let cancel = Command::by(by, commands::Cancel { handoff: id, reason });
        let cancelled = self.one_handoff(cancel).await?;
        self.settle_tree(cancelled.task_id).await;
        Ok(cancelled)
    }

    pub async fn abort(
        &self,
        id: HandoffId,
        by: AgentId,
        reason: Option<String>,
    ) -> Result<Arc<Handoff>, Error> {
        let reason = self.note(reason)?;
        let abort = Command::by(by, commands::Abort { handoff: id, reason });
        let aborted = self.one_handoff(abort).await?;
        self.settle_tree(aborted.task_id).await;
        Ok(aborted)
    }

    pub async fn approve(&self, id: HandoffId, by: AgentId) -> Result<Arc<Handoff>, Error> {
        self.one_handoff(Command::by(by, commands::Approve { handoff: id })).await
    }

    pub async fn reject(
        &self,
        id: HandoffId,
        by: AgentId,
        reason: String,
    ) -> Result<Arc<Handoff>, Error> {
        if reason.trim().is_empty() {
            return Err(invalid("reason", "expected why it is not approved"));
        }
        let reason = self.note(Some(reason))?.expect("a reason was given");
        let reject = Command::by(by, commands::Reject { handoff: id, reason });
        let rejected = self.one_handoff(reject).await?;
        self.settle_tree(rejected.task_id).await;
        Ok(rejected)
    }

    /// Sends a dead letter on its way again and returns the new handoff.
    pub async fn redrive(
        &self,
        id: HandoffId,
        by: AgentId,
        to: Option<Target>,
        expires_in_ms: Option<u64>,
    ) -> Result<Arc<Handoff>, Error> {
        let new = self.ids.handoff();
        let letter = self.handoff(id).await?;
        let above = self.task(letter.task_id).await?.above().to_vec();
        let redrive = commands::Redrive { handoff: id, new, to, expires_in_ms, above };
        let sent = self.one_handoff(Command::by(by, redrive)).await?;
        self.settle_tree(sent.task_id).await;
        Ok(sent)
    }

    /// Ends a task with a result, as its owner.
    pub async fn complete_task(
        &self,
        id: TaskId,
        by: AgentId,
        payload: Payload,
        metadata: Object,
        below: Below,
    ) -> Result<Arc<Task>, Error> {
        let letter = self.look(Needs::task(id)).await?.task(id).and_then(|task| task.last);
        let open_below = match below {
            Below::LetGo => None,
            Below::Refuse => self.open_anywhere_below(id).await?,
        };
        let result = Body::of(&TaskResult { task_id: id, payload, metadata });
        let complete = commands::CompleteTask { task: id, result, letter, open_below };
        let completed = self.one_task(Command::by(by, complete)).await?.0;
        // What a dead letter of it kept back goes on by itself.
        self.settle_tree(id).await;
        Ok(completed)
    }

    /// A task anywhere below one that is not at its end, if there is one.
    async fn open_anywhere_below(&self, id: TaskId) -> Result<Option<TaskId>, Error> {
        let mut left = vec![id];
        while let Some(of) = left.pop() {
            if let Some(open) = self.open_below(of).await? {
                return Ok(Some(open));
            }
            let state = Some(TaskState::Completed);
            let mut filter =
                TaskFilter { parent: Some(of), state, max: PAGE_MAX, ..TaskFilter::default() };
            loop {
                let page = self.store.list_tasks(filter.clone()).await?;
                left.extend(page.iter().map(|task| task.id));
                match page.last() {
                    Some(last) if page.len() == PAGE_MAX => filter.before = Some(last.id),
                    Some(_) | None => break,
                }
            }
        }
        Ok(None)
    }

    /// A task right below one that is not at its end, if there is one.
    pub(crate) async fn open_below(&self, id: TaskId) -> Result<Option<TaskId>, Error> {
        for state in [TaskState::Open, TaskState::DeadLettered] {
            let state = Some(state);
            let filter = TaskFilter { parent: Some(id), state, max: 1, ..TaskFilter::default() };
            if let Some(task) = self.store.list_tasks(filter).await?.pop() {
                return Ok(Some(task.id));
            }
        }
        Ok(None)
    }

    pub async fn discard(
        &self,
        id: HandoffId,
        by: AgentId,
        reason: String,
    ) -> Result<Arc<Handoff>, Error> {
        if reason.trim().is_empty() {
            return Err(invalid("reason", "expected why the dead letter is put away"));
        }
        let reason = self.note(Some(reason))?;
        let reason = reason.expect("a reason was given");
        let discard = Command::by(by, commands::Discard { handoff: id, reason });
        let discarded = self.one_handoff(discard).await?;
        self.settle_tree(discarded.task_id).await;
        Ok(discarded)
    }

    pub(crate) fn note(&self, text: Option<String>) -> Result<Option<Body>, Error> {
        self.check_text("reason", text.as_deref())?;
        Ok(text.map(|text| Body::of(&Note { text })))
    }

    pub(crate) fn check_text(&self, field: &'static str, text: Option<&str>) -> Result<(), Error> {
        let max = self.settings.note_bytes_max;
        match text {
            Some(text) if text.len() > max => {
                Err(invalid(field, format!("has {} bytes, at most {max} are allowed", text.len())))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn first_handoff(reply: Option<Reply>) -> Result<Arc<Handoff>, Error> {
    let done = reply.unwrap_or(Err(tasuki_store::Error::Unknown))?;
    done.handoffs.into_iter().next().ok_or(Error::Store(tasuki_store::Error::Unknown))
}

/// A lease that is asked for is given or refused; another one would surprise its holder.
fn check_lease(lease_ms: Option<u64>) -> Result<(), Error> {
    match lease_ms {
        Some(ms) if !(LEASE_MS_MIN..=LEASE_MS_MAX).contains(&ms) => {
            let problem = format!("is {ms}, expected {LEASE_MS_MIN} to {LEASE_MS_MAX}");
            Err(invalid("lease_ms", problem))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_intent(intent: &str) -> Result<(), Error> {
    if intent.trim().is_empty() {
        return Err(invalid("intent", "expected the user's own words"));
    }
    if intent.len() > INTENT_BYTES_MAX {
        let problem = format!("has {} bytes, at most {INTENT_BYTES_MAX} fit", intent.len());
        return Err(invalid("intent", problem));
    }
    Ok(())
}
/// An envelope as a receiver of a major takes it. What is stored stays as it is.
fn in_major(envelope: Body, major: u32) -> Body {
    if major != 1 {
        return envelope;
    }
    match serde_json::from_str(envelope.text()) {
        Ok(members) => Body::of(&version::to_1(members)),
        Err(_) => envelope,
    }
}
