// SPDX-License-Identifier: Apache-2.0
//! What people and coordinators do about what failed: look at it in groups, send it again as it is,
//! to another, or with another envelope, answer the question that it stopped at, put it away; and
//! take back a result on which others have built.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tasuki_core::budget::Budget;
use tasuki_core::canonical::{Body, Object};
use tasuki_core::commands::{self, Act, Command, Offer, OfferTask};
use tasuki_core::envelope::said::NewDecision;
use tasuki_core::envelope::{Payload, Said};
use tasuki_core::event::{DeadReason, TaintPolicy};
use tasuki_core::ids::Resource;
use tasuki_core::registry::rules::Permission;
use tasuki_core::reserve::Reservation;
use tasuki_core::{AgentId, Handoff, HandoffId, Hash, Refusal, State, Target, Task, TaskId, Terms};
use tasuki_protocol::{Amend, Wish};
use tasuki_store::{HandoffFilter, PAGE_MAX};

use crate::caller::Caller;
use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::{Error, invalid};
use crate::offer::Place;
use crate::operations::asked;
use crate::requests::{FollowUp, Proof};

/// How long somebody may keep a dead letter to itself.
const REVIEW_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// How many dead letters one call may decide on, and how many are looked at for groups.
pub const REVIEWED_MAX: usize = 1000;

/// What a coordinator decides about a dead letter.
#[derive(Debug, Clone)]
pub enum Ruling {
    /// Again, as it was.
    Retry,
    /// Again, to somebody else.
    Reroute(Target),
    /// No more.
    Abort { reason: String },
}

/// What is different in an envelope that takes the place of a dead letter's.
#[derive(Debug, Clone)]
pub(crate) struct Amendment {
    to: Option<Target>,
    payload: Option<Payload>,
    terms: Option<Terms>,
    said: Said,
    expires_in_ms: Option<u64>,
    budget: Option<Budget>,
    /// The address of what was asked for: the same again is the same decision.
    changed: Hash,
}

/// Dead letters that died of the same thing.
#[derive(Debug, Clone)]
pub struct Group {
    /// The address of what they have in common.
    pub fingerprint: Hash,
    pub reason: DeadReason,
    pub to: Target,
    /// The kind of error, and what it said the last time.
    pub kind: Option<String>,
    pub message: Option<String>,
    pub hint: Option<String>,
    pub count: u64,
    pub handoffs: Vec<HandoffId>,
}

/// Which dead letters a decision is about.
#[derive(Debug, Clone, Default)]
pub struct Chosen {
    pub handoffs: Vec<HandoffId>,
    pub fingerprint: Option<Hash>,
}

impl Engine {
    async fn fingerprint(&self, letter: &Handoff) -> Result<(Hash, Group), Error> {
        let State::DeadLettered { reason, .. } = letter.state else {
            let state = letter.state.name();
            return Err(Refusal::NotDeadLettered { handoff: letter.id, state }.into());
        };
        let failure = self.last_failure(letter).await?;
        let kind = failure.as_ref().map(|failure| failure.kind.clone());
        let message = failure.as_ref().map(|failure| failure.message.clone());
        let alike = message.as_deref().map(without_numbers);
        let common = json!([reason.as_str(), letter.to, kind, alike]);
        let fingerprint = Body::of(&common).hash;
        let group = Group {
            fingerprint,
            reason,
            to: letter.to.clone(),
            kind,
            message,
            hint: failure.and_then(|failure| failure.hint),
            count: 1,
            handoffs: vec![letter.id],
        };
        Ok((fingerprint, group))
    }

    async fn groups(&self, letters: &[Arc<Handoff>]) -> Result<Vec<Group>, Error> {
        let mut groups: BTreeMap<Hash, Group> = BTreeMap::new();
        for letter in letters {
            let (fingerprint, group) = self.fingerprint(letter).await?;
            match groups.get_mut(&fingerprint) {
                Some(known) => {
                    known.count += 1;
                    known.handoffs.push(letter.id);
                }
                None => drop(groups.insert(fingerprint, group)),
            }
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.count), group.fingerprint));
        Ok(groups)
    }

    async fn carry_out_ruling(
        &self,
        id: HandoffId,
        by: AgentId,
        ruling: Ruling,
        expires_in_ms: Option<u64>,
    ) -> Result<Arc<Handoff>, Error> {
        match ruling {
            Ruling::Retry => self.redrive(id, by, None, expires_in_ms).await,
            Ruling::Reroute(to) => self.redrive(id, by, Some(to), expires_in_ms).await,
            Ruling::Abort { reason } => self.discard(id, by, reason).await,
        }
    }

    async fn amend(
        &self,
        id: HandoffId,
        by: AgentId,
        amendment: Amendment,
    ) -> Result<Arc<Handoff>, Error> {
        let changed = amendment.changed;
        if amendment.expires_in_ms == Some(0) {
            return Err(invalid("expires_in_ms", "expected at least 1"));
        }
        let letter = self.handoff(id).await?;
        let house_ms = self.settings.expires_in_ms;
        let again_ms = || commands::again_ms(&letter, house_ms);
        let span_ms = amendment.expires_in_ms.unwrap_or_else(again_ms);
        let State::DeadLettered { .. } = letter.state else {
            let state = letter.state.name();
            return Err(Refusal::NotDeadLettered { handoff: id, state }.into());
        };
        let before = self.envelope_at(letter.envelope_pos).await?;
        let before = before.ok_or_else(|| invalid("handoff", "its envelope was erased"))?;
        let (now, mut said) = (self.now(), amendment.said);
        let start = commands::waits_anew(&letter, now);
        said.read_back |= letter.contract.agreement.read_back.is_some();
        let parts = before.parts.clone();
        said.ask = said.ask.or(parts.ask);
        said.summary = said.summary.or(parts.summary);
        said.state = said.state.or(parts.state);
        said.expected_output = said.expected_output.or(parts.expected_output);
        said.context_manifest = said.context_manifest.or(parts.context_manifest);
        // What the first receiver had, the second one has too.
        said.tried.splice(0..0, parts.tried);
        said.assumptions.splice(0..0, parts.assumptions);
        said.memory_refs.splice(0..0, parts.memory_refs);
        if said.context.is_empty() {
            said.context = parts.context;
        }
        let hop = FollowUp {
            control: letter.control,
            action: before.action,
            metadata: Object::default(),
            priority: Some(letter.priority),
            terms: Some(amendment.terms.unwrap_or(letter.terms)),
            capability: letter.contract.agreement.capability.clone(),
            fallbacks: letter.contract.routing.fallbacks.clone(),
            stage: letter.contract.agreement.stage.clone(),
            said,
            expires_in_ms: Some(span_ms),
            ordering_key: letter.ordering_key.clone(),
            needs_approval: letter.needs_approval,
            approvers: letter.contract.approvers.clone(),
            majors: letter.contract.agreement.majors.clone(),
            budget_tokens: letter.contract.agreement.budget_tokens,
            budget: amendment.budget,
            // What it waited for, it is given again.
            after: letter.contract.after.clone(),
            start_in_ms: start.map(|start| start.ms_after(now)),
            ..FollowUp::new(
                amendment.to.unwrap_or_else(|| letter.to.clone()),
                amendment.payload.unwrap_or_else(|| before.payload.clone()),
            )
        };
        let mut offer = self.amended(&letter, &by, hop).await?;
        // A deadline that has passed binds nobody: whoever decides gives it new time.
        if offer.expires_at <= self.now() {
            offer.expires_at = self.now().plus_ms(span_ms);
        }
        let amend = Command::by(by, commands::Amend { handoff: id, changed, offer });
        let sent = self.one_handoff(amend).await?;
        self.settle_tree(sent.task_id).await;
        Ok(sent)
    }

    /// The offer by which a dead letter goes on with another envelope, made by a reviewer.
    pub(crate) async fn amended(
        &self,
        letter: &Handoff,
        by: &AgentId,
        mut hop: FollowUp,
    ) -> Result<Offer, Error> {
        let task = self.task(letter.task_id).await?;
        let before = match self.envelope_at(letter.envelope_pos).await? {
            Some(envelope) => Some(self.before(letter, envelope).await?),
            None => None,
        };
        let intent = self.intent_before(&task, before.as_ref()).await?;
        let hop_number = task.envelope.map_or(0, |(_, hop)| hop + 1);
        hop.metadata.0.insert("amended_by".into(), by.to_string().into());
        let place = Place {
            task: OfferTask::Existing(task.id),
            from: letter.from.clone(),
            intent,
            correlation_id: task.correlation_id.clone(),
            parent: task.parent_task_id,
            previous: task.envelope.map(|(hash, _)| hash),
            hop: hop_number,
            before,
            coordinator: task.decider().clone(),
            author: Some(by.clone()),
            above: task.above().to_vec(),
            left: self.left_for(&task, hop.budget).await?,
            limit: self.time_again(&task).await?,
            taints: task.taints.clone(),
            project: self.rules_of(letter.from.tenant(), task.project.as_ref()).await?,
        };
        let mut offer = self.make_offer(place, hop, None).await?;
        // A person sends it on: a circle is what they want it to go through once more.
        offer.dead_end = offer.dead_end.filter(|reason| *reason == DeadReason::HopLimit);
        Ok(offer)
    }
}

/// Messages that differ in numbers and ids only are about the same thing.
fn without_numbers(text: &str) -> String {
    let words = text
        .split_whitespace()
        .map(|word| if word.chars().any(|c| c.is_ascii_digit()) { "#" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

impl Desk {
    pub async fn rule(
        &self,
        id: HandoffId,
        by: &AgentId,
        ruling: Ruling,
        expires_in_ms: Option<u64>,
    ) -> Result<Arc<Handoff>, Error> {
        let by = self.decides(Permission::Redrive, id, by).await?;
        let ruling = match ruling {
            Ruling::Reroute(to) => Ruling::Reroute(self.sendable(id, &to).await?),
            other => other,
        };
        self.engine.carry_out_ruling(id, by, ruling, expires_in_ms).await
    }

    /// Adds a decision to the log of the task, and lets the work go on with it.
    pub async fn answer(
        &self,
        id: HandoffId,
        by: &AgentId,
        decision: NewDecision,
        expires_in_ms: Option<u64>,
    ) -> Result<Arc<Handoff>, Error> {
        let said = Said { decisions: vec![decision], ..Said::default() };
        let amend = Amend {
            by: by.clone(),
            to: None,
            payload: None,
            terms: None,
            expires_in_ms,
            budget: None,
            said,
            more: Object::default(),
        };
        Box::pin(self.amend(id, amend)).await
    }

    /// Lets a dead letter go on with another envelope.
    pub async fn amend(&self, id: HandoffId, amend: Amend) -> Result<Arc<Handoff>, Error> {
        asked::check_none(&amend.more)?;
        let by = self.decides(Permission::Redrive, id, &amend.by).await?;
        let to = match &amend.to {
            Some(to) => Some(self.sendable(id, to).await?),
            None => None,
        };
        let amend = Amend { to, ..amend };
        let changed = amend.address(None);
        let amendment = Amendment {
            to: amend.to,
            payload: amend.payload,
            terms: amend.terms.map(|patch| patch.over(self.terms())),
            said: amend.said,
            budget: amend.budget,
            expires_in_ms: amend.expires_in_ms,
            changed,
        };
        Box::pin(self.engine.amend(id, by, amendment)).await
    }

    /// Whom a dead letter may go to: whoever the caller may send to, and whom its sender named itself.
    async fn sendable(&self, letter: HandoffId, to: &Target) -> Result<Target, Error> {
        let to = self.caller.target(to);
        if to.tenant() != self.caller.tenant().as_str() {
            return Err(Refusal::OtherTenant.into());
        }
        let letter = self.engine.handoff(letter).await?;
        let named = letter.to == to || letter.tried.contains(&to);
        if !named && !letter.contract.routing.fallbacks.contains(&to) {
            self.caller.must(Permission::Send, Some(to.name()))?;
        }
        Ok(to)
    }

    /// Keeps others from deciding for a while; with no time at all, no longer.
    pub async fn take_review(
        &self,
        id: HandoffId,
        by: &AgentId,
        for_ms: u64,
    ) -> Result<Arc<Handoff>, Error> {
        let by = self.decides(Permission::Redrive, id, by).await?;
        if for_ms > REVIEW_MS_MAX {
            let problem = format!("is {for_ms}, expected at most {REVIEW_MS_MAX}");
            return Err(invalid("for_ms", problem));
        }
        let until = (for_ms > 0).then(|| self.now().plus_ms(for_ms));
        self.engine.one_handoff(Command::by(by, commands::TakeReview { handoff: id, until })).await
    }

    pub async fn dead_letter_groups(&self) -> Result<Vec<Group>, Error> {
        let letters = self.unreviewed().await?;
        self.engine.groups(&letters).await
    }

    async fn unreviewed(&self) -> Result<Vec<Arc<Handoff>>, Error> {
        let filter = HandoffFilter {
            unreviewed: true,
            max: REVIEWED_MAX.min(PAGE_MAX),
            ..Default::default()
        };
        Ok(self.dead_letters(filter).await?.items)
    }

    /// Decides on many dead letters, each on its own; as a dry run, says which ones it would be.
    pub async fn rule_many(
        &self,
        chosen: Chosen,
        by: &AgentId,
        ruling: &Ruling,
        expires_in_ms: Option<u64>,
        dry_run: bool,
    ) -> Result<Vec<(HandoffId, Result<Arc<Handoff>, Error>)>, Error> {
        let mut letters = Vec::new();
        let mut decided = Vec::new();
        for id in &chosen.handoffs {
            match self.decides(Permission::Redrive, *id, by).await {
                Ok(_) => letters.push(self.engine.handoff(*id).await?),
                Err(error) => decided.push((*id, Err(error))),
            }
        }
        if let Some(wanted) = chosen.fingerprint {
            for letter in self.unreviewed().await? {
                if self.engine.fingerprint(&letter).await?.0 == wanted {
                    letters.push(letter);
                }
            }
        }
        if letters.len() + decided.len() == 0 || letters.len() > REVIEWED_MAX {
            let problem =
                format!("{} dead letters fit, expected 1 to {REVIEWED_MAX}", letters.len());
            return Err(invalid("handoffs", problem));
        }
        for letter in letters {
            let outcome = if dry_run {
                self.decides(Permission::Redrive, letter.id, by).await.and_then(|_| {
                    match &letter.state {
                        State::DeadLettered { review: None, .. } => Ok(letter.clone()),
                        State::DeadLettered { .. } => Err(Refusal::AlreadyReviewed {
                            handoff: letter.id,
                            decided: "decided on",
                        }
                        .into()),
                        state => {
                            let state = state.name();
                            Err(Refusal::NotDeadLettered { handoff: letter.id, state }.into())
                        }
                    }
                })
            } else {
                self.rule(letter.id, by, ruling.clone(), expires_in_ms).await
            };
            decided.push((letter.id, outcome));
        }
        Ok(decided)
    }

    /// Takes a result back. What is built on it is tainted, in this task and in the one above it.
    pub async fn retract(
        &self,
        id: HandoffId,
        by: &AgentId,
        reason: String,
        policy: TaintPolicy,
    ) -> Result<Arc<Handoff>, Error> {
        let by = self.caller.speaks_for(by)?;
        let handoff = self.handoff(id).await?;
        // Whoever made it takes it back, or whoever asked for it.
        if !self.caller.may(Permission::Complete, Some(handoff.to.name())) {
            self.caller.must(Permission::Send, None)?;
        }
        if reason.trim().is_empty() {
            return Err(invalid("reason", "expected why the result no longer holds"));
        }
        let reason = self.engine.note(Some(reason))?.expect("a reason was given");
        let task = self.engine.task(handoff.task_id).await?;
        let above = task.parent_task_id;
        let retract = commands::Retract { handoff: id, reason, policy, above };
        let retracted = self.engine.one_handoff(Command::by(by, retract)).await?;
        self.engine.spread_all(retracted.task_id).await;
        Ok(retracted)
    }

    pub async fn clear_taint(
        &self,
        task: TaskId,
        by: &AgentId,
        source: HandoffId,
        reason: String,
    ) -> Result<Arc<Task>, Error> {
        let by = self.caller.speaks_for(by)?;
        let owner = self.task(task).await?.owner.clone();
        let by_right = match &self.caller {
            Caller::Known(_) => self.caller.may(Permission::Approve, Some(owner.name())),
            Caller::Anyone => false,
        };
        if !by_right {
            self.caller.must(Permission::Send, None)?;
        }
        if reason.trim().is_empty() {
            return Err(invalid("reason", "expected why the task may go on"));
        }
        let reason = self.engine.note(Some(reason))?.expect("a reason was given");
        let done = self
            .engine
            .one(Command::by(by, commands::ClearTaint { task, source, reason, by_right }))
            .await?;
        done.task.ok_or(Error::Store(tasuki_store::Error::Unknown))
    }

    /// Takes resources for the holder of a claim, or gives them up.
    pub async fn reserve(
        &self,
        id: HandoffId,
        proof: Proof,
        resources: Vec<Resource>,
        wanted: bool,
    ) -> Result<Option<Arc<Reservation>>, Error> {
        self.may_report(id).await?;
        if resources.is_empty() {
            return Err(invalid("resources", "expected at least one"));
        }
        let act = if wanted { Act::Reserve { resources } } else { Act::Unreserve { resources } };
        let by = self.holder(None);
        self.engine.one_handoff(Command::held(id, proof, by, act)).await?;
        Ok(self.engine.registry().guards.reservations.get(&id).cloned())
    }

    /// What holders of the caller's tenant have for themselves.
    pub fn reservations(&self) -> Result<Vec<Arc<Reservation>>, Error> {
        self.caller.must(Permission::Read, None)?;
        let tenant = self.caller.tenant();
        let registry = self.engine.registry();
        let own = registry.guards.reservations.values();
        Ok(own.filter(|it| it.agent.tenant() == tenant.as_str()).cloned().collect())
    }
}
