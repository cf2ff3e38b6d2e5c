// SPDX-License-Identifier: Apache-2.0
//! Reacts to what was committed with commands of its own: lets go on what waits for other tasks, and
//! tells coordinators what failed. The log is its list of things to do, so nothing is forgotten by a
//! restart; whatever it does twice has the effect of once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use serde_json::json;
use tasuki_core::canonical::Body;
use tasuki_core::commands::{self, Command};
use tasuki_core::envelope::{Action, Control};
use tasuki_core::event::Event;
use tasuki_core::handoff::{Handoff, StateName};
use tasuki_core::redact::redact;
use tasuki_core::report::FailureReport;
use tasuki_core::secrets::Policy;
use tasuki_core::{AgentId, HandoffId, State, Target, Task, TaskId, TaskState, Timestamp};
use tasuki_store::{Change, Needs};

use super::circles::Calls;
use super::{AGAIN_MS, Flow, Fold, GO_ON, each_in};
use crate::caller::BROKER;
use crate::engine::Engine;
use crate::error::Error;
use crate::keys;
use crate::requests::{FollowUp, NewOffer};

/// How many things that could not be done are remembered; the dead letters themselves stay listed.
const LEFT_MAX: usize = 10_000;

/// The states in which somebody may wait for an answer.
pub(crate) const UNDER_WAY: [StateName; 8] = [
    StateName::AwaitingApproval,
    StateName::Scheduled,
    StateName::Pending,
    StateName::Claimed,
    StateName::InProgress,
    StateName::InputRequired,
    StateName::Answered,
    StateName::Failed,
];

/// How many tasks are looked at at once.
const LOOK_MAX: usize = 1000;

/// Of how many tasks it is remembered that nothing is below them; of others it is looked up.
const CHILDLESS_MAX: usize = 100_000;

pub(crate) struct Follower {
    engine: Weak<Engine>,
    /// Which handoffs wait for a task.
    waiting: BTreeMap<TaskId, BTreeSet<HandoffId>>,
    /// What may be able to go on.
    ready: BTreeSet<HandoffId>,
    /// What has just become a dead letter.
    dead: Vec<HandoffId>,
    /// Whether everything that waited at the beginning was found.
    listed: bool,
    /// What has just begun to wait for an approval.
    held: Vec<HandoffId>,
    /// Publications of which a receiver has come to an end.
    told: BTreeSet<TaskId>,
    /// Tasks from which something may follow for those below.
    moved: BTreeSet<TaskId>,
    /// Tasks whose taints others may have to be told of.
    spreading: BTreeSet<TaskId>,
    /// Who waits for whose answer.
    calls: Calls,
    /// Calls that may have closed a circle.
    called: BTreeSet<HandoffId>,
    /// Tasks that may have closed one by what they wait for.
    joining: BTreeSet<TaskId>,
    /// Tasks that were seen to begin, and nothing below them.
    childless: BTreeSet<TaskId>,
    /// When to try again what could not be done.
    again_at: Option<Timestamp>,
}

#[async_trait]
impl Fold for Follower {
    fn name(&self) -> Option<&'static str> {
        Some("follower")
    }

    async fn load(&mut self, _: Option<String>) -> Flow {
        self.start_over().await
    }

    async fn apply(&mut self, changes: &[Change], _: &[Target]) -> Flow {
        changes.iter().for_each(|change| self.note(change));
        self.wake().await
    }

    /// Everything that waits for other tasks.
    async fn start_over(&mut self) -> Flow {
        let Some(engine) = self.engine.upgrade() else { return Flow::Break(()) };
        self.waiting.clear();
        self.childless.clear();
        self.calls.clear();
        self.listed = false;
        self.list(&engine).await;
        self.wake().await
    }

    /// How far it got is all there is to know, unless something is left to do: that must be found
    /// again after a restart.
    fn save(&self) -> Option<String> {
        self.again_at.is_none().then(String::new)
    }

    fn wake_at(&self) -> Option<Timestamp> {
        self.again_at
    }

    async fn wake(&mut self) -> Flow {
        let Some(engine) = self.engine.upgrade() else { return Flow::Break(()) };
        if !self.listed {
            self.list(&engine).await;
        }
        self.act(&engine).await;
        GO_ON
    }
}

impl Follower {
    pub(crate) fn new(engine: Weak<Engine>) -> Self {
        Self {
            engine,
            waiting: BTreeMap::new(),
            ready: BTreeSet::new(),
            dead: Vec::new(),
            listed: false,
            held: Vec::new(),
            told: BTreeSet::new(),
            moved: BTreeSet::new(),
            spreading: BTreeSet::new(),
            calls: Calls::default(),
            called: BTreeSet::new(),
            joining: BTreeSet::new(),
            childless: BTreeSet::new(),
            again_at: None,
        }
    }

    async fn list(&mut self, engine: &Engine) {
        let listed = each_in(&*engine.store, StateName::Scheduled, |handoff| {
            if let Some(after) = handoff.waits_for_tasks() {
                self.wait_for(handoff.id, &after.tasks);
                self.calls.note_waiting(&Arc::new(handoff.clone()));
            }
        });
        let listed = match listed.await {
            Ok(()) => self.list_calls(engine).await,
            Err(error) => Err(error.into()),
        };
        match listed {
            Ok(()) => self.listed = true,
            Err(error) => tracing::warn!(%error, "what waits for other tasks is found out later"),
        }
    }

    /// Every call that is open.
    async fn list_calls(&mut self, engine: &Engine) -> Result<(), Error> {
        let mut open = Vec::new();
        for state in UNDER_WAY {
            let calls = each_in(&*engine.store, state, |handoff| {
                if handoff.answers().is_some() {
                    open.push(Arc::new(handoff.clone()));
                }
            });
            calls.await?;
        }
        for some in open.chunks(LOOK_MAX) {
            let tasks = some.iter().map(|call| call.task_id);
            let sight = engine.look(Needs::default().and_tasks(tasks)).await?;
            for call in some {
                self.calls.note(call, sight.task(call.task_id).map(|task| &**task));
            }
        }
        Ok(())
    }

    fn wait_for(&mut self, handoff: HandoffId, tasks: &[TaskId]) {
        for task in tasks {
            self.waiting.entry(*task).or_default().insert(handoff);
        }
        self.ready.insert(handoff);
    }

    fn note(&mut self, change: &Change) {
        let record = &change.sealed.record;
        if let (Some(id), Some((offered, _))) = (record.handoff_id, record.event.offered())
            && let Some(after) = &offered.contract.after
        {
            self.wait_for(id, &after.tasks);
        }
        if let Some(handoff) = change.handoff.as_ref().filter(|it| it.contract.after.is_some()) {
            self.calls.note_waiting(handoff);
            if record.event.offered().is_some() {
                self.joining.insert(handoff.task_id);
            }
        }
        if let Some(handoff) = change.handoff.as_ref().filter(|it| it.control == Control::Awaited) {
            self.calls.note(handoff, change.task.as_deref());
            if let Event::CallOffered(_) = record.event {
                self.called.insert(handoff.id);
            }
        }
        // It was approved, its time is over, or what is above it was decided on.
        let scheduled = |it: &&Arc<Handoff>| matches!(it.state, State::Scheduled { .. });
        if let Some(waits) = change.handoff.as_ref().filter(scheduled)
            && waits.waits_for_tasks().is_some()
        {
            self.ready.insert(waits.id);
        }
        if let Some(task) = change.task.as_ref().filter(|task| !task.taints.is_empty())
            && record.event.facts().spreads
        {
            self.spreading.insert(task.id);
        }
        if let (Some(id), Event::DeadLettered { .. }) = (record.handoff_id, &record.event) {
            self.dead.push(id);
        }
        let waits =
            change.handoff.as_ref().filter(|it| matches!(it.state, State::AwaitingApproval));
        let begins =
            matches!(record.event, Event::Tainted { .. }) || record.event.offered().is_some();
        if let Some(handoff) = waits.filter(|_| begins) {
            self.held.push(handoff.id);
        }
        if let Some(task) = change.task.as_ref().filter(|task| task.state.is_terminal()) {
            self.told.extend(task.parent_task_id);
        }
        if record.index == 0 {
            if self.childless.len() == CHILDLESS_MAX {
                self.childless.pop_first();
            }
            self.childless.insert(record.task_id);
            if let Some(parent) = change.task.as_ref().and_then(|task| task.parent_task_id) {
                self.childless.remove(&parent);
            }
        }
        // Most tasks have none below them, and need not be looked for.
        if record.event.facts().moves_below && !self.childless.contains(&record.task_id) {
            self.moved.insert(record.task_id);
        }
        if change.task.as_ref().is_none_or(|task| task.state != TaskState::Open)
            && let Some(waiting) = self.waiting.get(&record.task_id)
        {
            self.ready.extend(waiting);
        }
    }

    async fn act(&mut self, engine: &Engine) {
        for id in std::mem::take(&mut self.ready) {
            match engine.release_if_ready(id).await {
                Ok(true) => self.waiting.retain(|_, all| {
                    all.remove(&id);
                    !all.is_empty()
                }),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, handoff = %id, "it waits for longer");
                    self.ready.insert(id);
                }
            }
        }
        for id in std::mem::take(&mut self.dead) {
            if let Err(error) = engine.tell_coordinator(id).await {
                tracing::warn!(%error, handoff = %id, "its coordinator is told later");
                self.dead.push(id);
            }
        }
        self.dead.truncate(LEFT_MAX);
        for id in std::mem::take(&mut self.held) {
            if let Err(error) = engine.tell_approvers(id).await {
                tracing::warn!(%error, handoff = %id, "who may approve it is told later");
                self.held.push(id);
            }
        }
        self.held.truncate(LEFT_MAX);
        for id in std::mem::take(&mut self.told) {
            if let Err(error) = engine.end_publication(id).await {
                tracing::warn!(%error, task = %id, "the publication ends later");
                self.told.insert(id);
            }
        }
        for id in std::mem::take(&mut self.moved) {
            // One level: those below it are told of by the events that this makes.
            if let Err(error) = engine.settle_below(id).await {
                tracing::warn!(%error, task = %id, "what is below it follows later");
                self.moved.insert(id);
            }
        }
        for id in std::mem::take(&mut self.called) {
            let Some(circle) = self.calls.circle(id) else { continue };
            if let Err(error) = engine.end_circle(&circle).await {
                tracing::warn!(%error, handoff = %id, "the circle that it closes is ended later");
                self.called.insert(id);
            }
        }
        for id in std::mem::take(&mut self.joining) {
            let Some(circle) = self.calls.circle_of_tasks(id) else { continue };
            if let Err(error) = engine.end_circle_of_tasks(&circle).await {
                tracing::warn!(%error, task = %id, "the circle that it closes is ended later");
                self.joining.insert(id);
            }
        }
        for id in std::mem::take(&mut self.spreading) {
            // One step: those built on these are told of by the events that this makes.
            if let Err(error) = engine.spread_taints(id).await {
                tracing::warn!(%error, task = %id, "what is built on it is told later");
                self.spreading.insert(id);
            }
        }
        let left = !self.listed
            || !self.ready.is_empty()
            || !self.dead.is_empty()
            || !self.held.is_empty()
            || !self.told.is_empty()
            || !self.moved.is_empty()
            || !self.spreading.is_empty()
            || !self.called.is_empty()
            || !self.joining.is_empty();
        self.again_at = left.then(|| engine.now().plus_ms(AGAIN_MS));
    }
}

impl Engine {
    /// Lets a handoff go on that waits for other tasks, if it may. Says whether it waits no longer.
    async fn release_if_ready(&self, id: HandoffId) -> Result<bool, Error> {
        let Some(handoff) = self.store.handoff(id).await? else { return Ok(true) };
        let Some(after) = handoff.waits_for_tasks() else { return Ok(true) };
        if !matches!(handoff.state, State::Scheduled { .. }) {
            return Ok(handoff.state.is_terminal());
        }
        let tasks = self.look(Needs::default().and_tasks(after.tasks.iter().copied())).await?;
        let lasts = after.tasks.iter().filter_map(|id| tasks.task(*id)?.last);
        let join = commands::Join::new(id, after.tasks.clone(), lasts);
        let joined = self.one_handoff(Command::of_broker(join)).await?;
        Ok(joined.waits_for_tasks().is_none())
    }

    /// Hands a failure to whoever decides about the task, in the form of every other message. Where
    /// nobody is named, the dead letters are the list of what has to be decided.
    async fn tell_coordinator(&self, id: HandoffId) -> Result<(), Error> {
        let handoff = self.handoff(id).await?;
        let State::DeadLettered { reason, review: None, .. } = handoff.state else {
            return Ok(());
        };
        let task = self.task(handoff.task_id).await?;
        // A failure to tell of a failure is not told again.
        let Some(coordinator) = task.coordinator.clone().filter(|_| handoff.from.name() != BROKER)
        else {
            return Ok(());
        };
        let report = self.last_failure(&handoff).await?;
        let mut payload = json!({
            "type": "failure",
            "handoff_id": handoff.id,
            "task_id": handoff.task_id,
            "to": handoff.to,
            "reason": reason.as_str(),
            "attempts": report.as_ref().and_then(|said| said.attempts).unwrap_or(handoff.claims),
            "claims": handoff.claims,
            "decisions": ["retry", "reroute", "amend", "abort"],
        });
        if let (Some(report), Some(into)) = (&report, payload.as_object_mut()) {
            let said = [
                ("class", json!(report.class)),
                ("error_type", json!(report.kind)),
                ("message", json!(report.message)),
                ("attempted", json!(report.attempted)),
                ("causes", json!(report.causes)),
                ("hint", json!(report.hint)),
                ("retry_after_ms", json!(report.retry_after_ms)),
            ];
            let known = said.into_iter().filter(|(_, value)| !value.is_null());
            into.extend(known.map(|(name, value)| (name.to_owned(), value)));
        }
        // What a worker said as it failed was taken as it was, and a secret in it is no reason for
        // silence.
        if self.settings.secrets == Policy::Block {
            redact(&mut payload);
        }
        self.tell(&task, coordinator, Action::Failed, payload, &format!("failure:{id}")).await
    }

    /// Tells each of those who may approve a handoff that it waits for them: the approvers that are
    /// named, or the coordinator of its task. Where nobody is named, the list of what waits tells.
    async fn tell_approvers(&self, id: HandoffId) -> Result<(), Error> {
        let handoff = self.handoff(id).await?;
        if !matches!(handoff.state, State::AwaitingApproval) || handoff.from.name() == BROKER {
            return Ok(());
        }
        let task = self.task(handoff.task_id).await?;
        let takes_part = |agent: &AgentId| {
            *agent == handoff.from || matches!(&handoff.to, Target::Agent(to) if to == agent)
        };
        let mut approvers = handoff.contract.approvers.clone();
        if approvers.is_empty() {
            approvers.extend(task.coordinator.clone());
        }
        for approver in approvers.into_iter().filter(|agent| !takes_part(agent)) {
            let payload = json!({
                "type": "approval",
                "handoff_id": handoff.id,
                "task_id": handoff.task_id,
                "from_agent": handoff.from,
                "to": handoff.to,
                "expires_at": handoff.expires_at,
                "decisions": ["approve", "reject"],
            });
            let key = format!("approval:{id}:{}", approver.name());
            self.tell(&task, approver, Action::NeedsReview, payload, &key).await?;
        }
        Ok(())
    }

    /// Ends the task of a publication, if everybody who was told has come to an end.
    async fn end_publication(&self, id: TaskId) -> Result<(), Error> {
        let Some(task) = self.store.task(id).await? else { return Ok(()) };
        if task.channel.is_none() || task.state != TaskState::Open {
            return Ok(());
        }
        if self.open_below(id).await?.is_none() {
            self.one(Command::of_broker(commands::EndPublication { task: id })).await?;
        }
        Ok(())
    }

    /// Hands a message of the broker's own to an agent, once.
    async fn tell(
        &self,
        task: &Task,
        to: AgentId,
        action: Action,
        payload: serde_json::Value,
        key: &str,
    ) -> Result<(), Error> {
        let Ok(payload) = serde_json::from_value(payload) else { return Ok(()) };
        let tenant = to.tenant().parse();
        let broker: AgentId = BROKER.parse().expect("a plain name");
        let from = tenant.map_or(broker.clone(), |tenant| broker.seen_from(&tenant));
        let mut hop = FollowUp::new(Target::Agent(to), payload);
        hop.action = action;
        let offer = NewOffer {
            from,
            task_id: None,
            intent: Some(self.intent_of(task).await?.to_string()),
            correlation_id: task.correlation_id.clone(),
            coordinator: None,
            project: task.project.clone(),
            hop,
            key: keys::told(key),
        };
        match self.offer(offer).await {
            // It was told before, with other words.
            Err(Error::Refused(tasuki_core::Refusal::IdempotencyConflict { .. })) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What the last attempt said about why it failed.
    pub(crate) async fn last_failure(
        &self,
        handoff: &Handoff,
    ) -> Result<Option<FailureReport>, Error> {
        let reports = handoff.attempts.iter().rev().filter_map(|attempt| attempt.ended.as_ref());
        let Some((at, _)) = reports.filter_map(|ended| ended.report).next() else {
            return Ok(None);
        };
        let body: Option<Body> = self.store.bodies(vec![at]).await?.pop().flatten();
        Ok(body.and_then(|body| serde_json::from_str(body.text()).ok()))
    }
}
