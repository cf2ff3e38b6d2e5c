// SPDX-License-Identifier: Apache-2.0
//! Telling something to many. Whoever publishes owns one task; below it each receiver gets one of
//! its own, made in the same step. What they answer is collected by looking at those.

use std::sync::Arc;

use serde::Serialize;
use tasuki_core::canonical::Body;
use tasuki_core::commands::{self, Command, Offer, OfferTask, OpenTask, RegistryWish};
use tasuki_core::envelope::Control;
use tasuki_core::event::Actor;
use tasuki_core::ids::ChannelId;
use tasuki_core::registry::rules::Permission;
use tasuki_core::report::Intent;
use tasuki_core::{
    AgentId, Handoff, HandoffId, Position, Refusal, Target, Task, TaskId, TaskState,
};
use tasuki_protocol::Need;
use tasuki_store::{HandoffFilter, PAGE_MAX, TaskFilter};

use crate::desk::Desk;
use crate::engine::{Engine, check_intent};
use crate::error::{Error, invalid};
use crate::folds::waiters::Topic;
use crate::keys;
use crate::offer::Place;
use crate::operations::asked;
use crate::requests::{FollowUp, NewOffer};
use crate::waiting::WAIT_FOR_MAX;

/// How many receivers one publication may have.
pub const RECEIVERS_MAX: usize = 10_000;

/// Something that is to be told to many.
#[derive(Debug, Clone, Serialize)]
pub struct Publication {
    pub channel: ChannelId,
    /// Who gets it; without them, whoever subscribes.
    pub receivers: Option<Vec<AgentId>>,
    /// What is told; whom it names as receiver does not count.
    pub message: NewOffer,
}

#[derive(Debug, Clone)]
pub struct Published {
    pub task: Arc<Task>,
    /// In the order of the receivers; none if the publication was there already.
    pub handoffs: Vec<Arc<Handoff>>,
    pub repeated: bool,
}

/// What has become of something that was told to many.
#[derive(Debug, Clone)]
pub struct Joined {
    pub task: Arc<Task>,
    pub need: u64,
    pub receivers: u64,
    pub completed: u64,
    /// Ended without a result.
    pub failed: u64,
    pub satisfied: bool,
    /// Whether as many as needed can still have a result.
    pub reachable: bool,
    /// Some of the tasks below it, with the last handoff of each.
    pub members: Vec<(Arc<Task>, Option<Arc<Handoff>>)>,
    pub next: Option<TaskId>,
}

impl Engine {
    async fn publish_or_repeat(&self, mut new: Publication) -> Result<Published, Error> {
        let told = self.try_publish(&new).await;
        let Err(error) = &told else { return told };
        let Some(key) = keys::formerly(new.message.key.as_ref(), &new, error) else { return told };
        new.message.key = Some(key);
        self.try_publish(&new).await
    }

    async fn try_publish(&self, new: &Publication) -> Result<Published, Error> {
        let Publication { channel, receivers, message } = new;
        let intent = message.intent.as_deref();
        let intent = intent.ok_or_else(|| invalid("intent", "expected the user's own words"))?;
        check_intent(intent)?;
        let receivers = match receivers {
            Some(named) => distinct(named),
            None => {
                let registry = self.registry();
                let there = registry.channels.get(channel);
                there.map(|there| there.subscribers.keys().cloned().collect()).unwrap_or_default()
            }
        };
        if receivers.len() > RECEIVERS_MAX {
            let problem = format!("has {}, expected at most {RECEIVERS_MAX}", receivers.len());
            return Err(invalid("receivers", problem));
        }
        let key = message.key.clone();
        let coordinator = self.coordinator(&message.from, message.coordinator.as_ref()).await?;
        let task = self.ids.task();
        let offers = self.offers_for(task, message, &receivers, coordinator.as_ref()).await?;
        let open = OpenTask {
            task,
            intent: Intent::body(intent),
            correlation_id: message.correlation_id.clone(),
            parent: None,
            project: message.project.clone(),
            coordinator,
            channel: Some(channel.clone()),
            on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
        };
        let publish = Command::by(message.from.clone(), commands::Publish { open, offers });
        let done = self.one(publish.with_key(key)).await?;
        let task = done.task.ok_or(Error::Store(tasuki_store::Error::Unknown))?;
        Ok(Published { task, handoffs: done.handoffs, repeated: done.outcome.repeated })
    }

    /// Collects what was answered, waiting for enough of it if there is not yet.
    async fn gather(
        &self,
        id: TaskId,
        need: Need,
        wait_ms: u64,
        before: Option<TaskId>,
        max: usize,
    ) -> Result<Joined, Error> {
        if need == Need::Quorum(0) {
            return Err(invalid("need", "a quorum is at least 1"));
        }
        let deadline = self.deadline(wait_ms);
        loop {
            let task = self.task(id).await?;
            let children = self.children(id).await?;
            // Listening begins before looking, so that nothing slips in between.
            let open = children.iter().filter(|it| it.state == TaskState::Open);
            let topics = open.map(|it| Topic::Task(it.id)).take(WAIT_FOR_MAX);
            let places: Vec<_> = match wait_ms {
                0 => Vec::new(),
                _ => topics.map(|topic| self.waiters.take_seat(topic)).collect(),
            };
            let news = crate::waiting::listen(&places);
            let children = if places.is_empty() { children } else { self.children(id).await? };
            let count = |state| children.iter().filter(|it| it.state == state).count() as u64;
            let (receivers, completed) = (children.len() as u64, count(TaskState::Completed));
            let failed = receivers - completed - count(TaskState::Open);
            let needed = match need {
                Need::All => receivers,
                Need::Any => 1,
                // What was asked for is what is needed, however many there are.
                Need::Quorum(number) => number,
            };
            let satisfied = completed >= needed;
            let reachable = receivers - failed >= needed;
            let more = !satisfied && reachable && wait_ms > 0;
            if more && self.wait_for_news(news, deadline).await {
                continue;
            }
            let from = children.iter().filter(|it| before.is_none_or(|before| it.id < before));
            let page: Vec<_> = from.take(max).cloned().collect();
            let next = (page.len() == max).then(|| page.last().map(|it| it.id)).flatten();
            let mut members = Vec::with_capacity(page.len());
            for child in page {
                let last = self.newest_handoff(child.id).await?;
                members.push((child, last));
            }
            let need = needed;
            return Ok(Joined {
                task,
                need,
                receivers,
                completed,
                failed,
                satisfied,
                reachable,
                members,
                next,
            });
        }
    }

    /// All tasks directly below one, the newest first.
    pub(crate) async fn children(&self, of: TaskId) -> Result<Vec<Arc<Task>>, Error> {
        let mut all = Vec::new();
        let mut before = None;
        loop {
            let filter =
                TaskFilter { parent: Some(of), before, max: PAGE_MAX, ..TaskFilter::default() };
            let page = self.store.list_tasks(filter).await?;
            let full = page.len() == PAGE_MAX;
            before = page.last().map(|task| task.id);
            all.extend(page);
            if !full {
                return Ok(all);
            }
        }
    }

    pub(crate) async fn newest_handoff(&self, task: TaskId) -> Result<Option<Arc<Handoff>>, Error> {
        let filter = HandoffFilter { task: Some(task), max: 1, ..HandoffFilter::default() };
        Ok(self.store.list_handoffs(filter).await?.pop())
    }

    /// The offers of something that is told to many: one task for each below the first.
    pub(crate) async fn offers_for(
        &self,
        parent: TaskId,
        new: &NewOffer,
        receivers: &[AgentId],
        coordinator: Option<&AgentId>,
    ) -> Result<Vec<Offer>, Error> {
        let intent: Arc<str> = new.intent.clone().unwrap_or_default().into();
        let mut offers = Vec::with_capacity(receivers.len());
        let project = self.rules_of(new.from.tenant(), new.project.as_ref()).await?;
        for receiver in receivers {
            let task = OfferTask::New {
                task: TaskId(derived(parent, receiver, "task")),
                intent: Intent::address(&intent),
                correlation_id: new.correlation_id.clone(),
                parent: Some(parent),
                project: new.project.clone(),
                branch_of: None,
                coordinator: coordinator.cloned(),
                on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
            };
            let place = Place {
                task,
                from: new.from.clone(),
                intent: intent.clone(),
                correlation_id: new.correlation_id.clone(),
                parent: Some(parent),
                previous: None,
                hop: 0,
                before: None,
                coordinator: coordinator.unwrap_or(&new.from).clone(),
                author: None,
                above: Vec::new(),
                left: None,
                limit: None,
                taints: Vec::new(),
                project: project.clone(),
            };
            let to = Target::Agent(receiver.clone());
            let hop = FollowUp { to, control: Control::Awaited, ..new.hop.clone() };
            let mut offer = self.make_offer(place, hop, None).await?;
            offer.handoff = HandoffId(derived(parent, receiver, "handoff"));
            offers.push(offer);
        }
        Ok(offers)
    }
}

/// An id that follows from another one and a name: it sorts with the first, and is the same however
/// often it is made.
fn derived(parent: TaskId, receiver: &AgentId, kind: &str) -> u128 {
    let text = serde_json::json!([parent, receiver, kind]);
    let hash = Body::of(&text).hash.0;
    let low = u64::from_be_bytes(hash[..8].try_into().expect("a hash has 32 bytes"));
    // The variant of a UUID, as in every other id.
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    (parent.0 >> 64 << 64) | u128::from(low)
}

fn distinct(named: &[AgentId]) -> Vec<AgentId> {
    let mut seen = std::collections::HashSet::new();
    named.iter().filter(|agent| seen.insert(*agent)).cloned().collect()
}

impl Desk {
    fn channel(&self, channel: &ChannelId) -> ChannelId {
        channel.seen_from(&self.caller.tenant())
    }

    pub async fn publish_on(
        &self,
        channel: &ChannelId,
        new: tasuki_protocol::Publication,
    ) -> Result<Published, Error> {
        asked::check_none(&new.more)?;
        let from = self.caller.speaks_for(&new.from_agent)?;
        let channel = self.channel(channel);
        if channel.tenant() != from.tenant() {
            return Err(Refusal::OtherTenant.into());
        }
        let project = new.project.as_ref();
        self.caller.must_to(Permission::Send, channel.name(), project)?;
        let receivers = match new.receivers {
            None => None,
            Some(named) => {
                let named: Vec<_> = named.iter().map(|it| self.caller.agent_named(it)).collect();
                for receiver in &named {
                    if receiver.tenant() != from.tenant() {
                        return Err(Refusal::OtherTenant.into());
                    }
                    self.caller.must_to(Permission::Send, receiver.name(), project)?;
                }
                Some(named)
            }
        };
        let coordinator = new.coordinator.map(|it| self.coordinator(it));
        let new = tasuki_protocol::Publication { from_agent: from, receivers, coordinator, ..new };
        let key = keys::of(&new, Some(&channel.to_string()));
        let mut publication = asked::publication(channel, new, self.terms());
        publication.message.key = key;
        publication.message.hop.instructs = self.instructs_all();
        self.may_await([&publication.message.hop]).await?;
        self.engine.publish_or_repeat(publication).await
    }

    pub async fn subscribe(
        &self,
        channel: &ChannelId,
        agent: &AgentId,
        wanted: bool,
    ) -> Result<Vec<(AgentId, Position)>, Error> {
        let agent = self.caller.speaks_for(agent)?;
        let channel = self.channel(channel);
        if channel.tenant() != agent.tenant() {
            return Err(Refusal::OtherTenant.into());
        }
        self.caller.must(Permission::Claim, Some(channel.name()))?;
        let by = Actor::Agent(agent.clone());
        let wish = match wanted {
            true => RegistryWish::Subscribe { channel: channel.clone(), agent: agent.clone() },
            false => RegistryWish::Unsubscribe { channel: channel.clone(), agent: agent.clone() },
        };
        self.engine.one(Command::registry(by, None, wish)).await?;
        // Who may not read of others hears of itself.
        let all = self.listed(&channel);
        if self.caller.may(Permission::Read, Some(channel.name())) {
            return Ok(all);
        }
        Ok(all.into_iter().filter(|(known, _)| *known == agent).collect())
    }

    fn listed(&self, channel: &ChannelId) -> Vec<(AgentId, Position)> {
        let registry = self.engine.registry();
        let ours = channel.tenant() == self.caller.tenant().as_str();
        let there = registry.channels.get(channel).filter(|_| ours);
        let each = there.map(|there| there.subscribers.iter()).into_iter().flatten();
        each.map(|(agent, at)| (agent.clone(), *at)).collect()
    }

    /// Who subscribes, with the position from which on they hear what is told.
    pub fn subscribers(&self, channel: &ChannelId) -> Result<Vec<(AgentId, Position)>, Error> {
        let channel = self.channel(channel);
        self.caller.must(Permission::Read, Some(channel.name()))?;
        Ok(self.listed(&channel))
    }

    /// What was told on a channel after a position, with its words.
    pub async fn messages(
        &self,
        channel: &ChannelId,
        after: Position,
        max: usize,
    ) -> Result<Vec<(Arc<Task>, Arc<str>)>, Error> {
        let channel = self.channel(channel);
        self.caller.must(Permission::Read, Some(channel.name()))?;
        let filter = TaskFilter {
            tenant: Some(self.caller.tenant()),
            channel: Some(channel),
            after: Some(after),
            max,
            ..TaskFilter::default()
        };
        let mut told = Vec::new();
        for task in self.engine.list_tasks(filter).await? {
            let intent = self.engine.intent_of(&task).await?;
            told.push((task, intent));
        }
        Ok(told)
    }

    /// What somebody was told by a publication: the envelope that one of the receivers got.
    pub async fn message(&self, id: TaskId) -> Result<Option<Body>, Error> {
        let task = self.engine.task(id).await?;
        let filter = TaskFilter { parent: Some(id), max: 1, ..TaskFilter::default() };
        let Some(channel) = &task.channel else { return Err(Refusal::TaskNotFound(id).into()) };
        if channel.tenant() != self.caller.tenant().as_str() {
            return Err(Refusal::TaskNotFound(id).into());
        }
        self.caller.must(Permission::Read, Some(channel.name()))?;
        let Some(child) = self.engine.store.list_tasks(filter).await?.pop() else {
            return Ok(None);
        };
        let Some(handoff) = self.engine.newest_handoff(child.id).await? else { return Ok(None) };
        Ok(self.engine.store.bodies(vec![handoff.envelope_pos]).await?.pop().flatten())
    }

    pub async fn join_answers(
        &self,
        id: TaskId,
        need: Need,
        wait_ms: u64,
        before: Option<TaskId>,
        max: usize,
    ) -> Result<Joined, Error> {
        self.task(id).await?;
        if !(1..=PAGE_MAX).contains(&max) {
            return Err(invalid("limit", format!("is {max}, expected 1 to {PAGE_MAX}")));
        }
        self.engine.gather(id, need, wait_ms, before, max).await
    }
}
