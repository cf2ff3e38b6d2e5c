// SPDX-License-Identifier: Apache-2.0
//! What holders do with their claims: begin, report, finish, give back; and the signatures that may
//! come with it.

use std::sync::Arc;

use tasuki_core::budget::Used;
use tasuki_core::canonical::Body;
use tasuki_core::commands::{self, Act, Command, Holder, UsedBy};
use tasuki_core::contract::{Checked, Successors};
use tasuki_core::envelope::inherit::Breach;
use tasuki_core::envelope::said::TextOr;
use tasuki_core::envelope::{Action, Envelope, ExpectedOutput, Fault, read_back};
use tasuki_core::handoff::Claim;
use tasuki_core::identity::statement;
use tasuki_core::join::Member;
use tasuki_core::registry::Signed;
use tasuki_core::report::{FailureReport, ResultReport};
use tasuki_core::{AgentId, Handoff, HandoffId, Hash, Refusal, State, Task};

use tasuki_store::{Needs, Sight};

use crate::contracts::Told;
use crate::engine::{Engine, first_handoff};
use crate::error::{Error, denied, invalid};
use crate::offer::Ending;
use crate::requests::{
    Brought, CompleteRequest, Delivery, FailRequest, FollowUp, Granted, Proof, ReadBack,
};
use crate::sight::{handoff_in, task_in};

impl Engine {
    /// The broker's own signature over what it gave to whom.
    pub(crate) fn deliver(&self, handoff: &Handoff, claim: &Claim) -> Option<Delivery> {
        let signer = self.settings.signer.as_ref()?;
        let attempt = handoff.attempts.last()?;
        let (fence, at) = (claim.fence, attempt.claimed_at);
        let text = statement::delivery(
            handoff.id,
            handoff.envelope,
            &claim.agent,
            fence,
            attempt.number,
            at,
        );
        let signed = Signed { key_id: signer.public().id(), signature: signer.sign(&text) };
        Some(Delivery { at, signed })
    }

    pub async fn start_work(
        &self,
        id: HandoffId,
        proof: Proof,
        by: Option<Holder>,
        read_back: Option<ReadBack>,
    ) -> Result<Arc<Handoff>, Error> {
        let act = match &read_back {
            Some(said) => Act::ReadBack(repeated(said)),
            None => Act::Start,
        };
        match (self.held(id, proof, by, act).await, read_back) {
            // The decision has checked the claim by now: what is missing is told to its holder.
            (Err(Error::Refused(Refusal::ReadBackNeeded { .. })), Some(said)) => {
                Err(self.not_read_back(id, &said).await?)
            }
            (answer, _) => answer,
        }
    }

    /// What a holder left out, or added, when it repeated what binds it.
    async fn not_read_back(&self, id: HandoffId, said: &ReadBack) -> Result<Error, Error> {
        let handoff = self.handoff(id).await?;
        let envelope = self.envelope_at(handoff.envelope_pos).await?;
        let Some(Envelope { parts, .. }) = envelope.as_deref() else {
            return Err(Refusal::HandoffNotFound(id).into());
        };
        let mut faults = Vec::new();
        for constraint in &parts.constraints {
            if !said.constraints.contains(&constraint.id) {
                let problem = format!("{} is missing: {}", constraint.id, constraint.text);
                faults.push(Breach::Malformed(Fault::new("/read_back/constraints", problem)));
            }
        }
        for (number, id) in said.constraints.iter().enumerate() {
            if !parts.constraints.iter().any(|constraint| constraint.id == *id) {
                let path = format!("/read_back/constraints/{number}");
                faults.push(Breach::Malformed(Fault::new(path, "binds nobody here")));
            }
        }
        if said.expected_output != parts.expected_output.as_ref().map(ExpectedOutput::hash) {
            let problem = "is not the address of the expected output";
            faults.push(Breach::Malformed(Fault::new("/read_back/expected_output", problem)));
        }
        Ok(Error::Envelope(faults))
    }

    async fn held(
        &self,
        handoff: HandoffId,
        proof: Proof,
        by: Option<Holder>,
        act: Act,
    ) -> Result<Arc<Handoff>, Error> {
        self.held_using(handoff, proof, by, act, None).await
    }

    async fn held_using(
        &self,
        handoff: HandoffId,
        proof: Proof,
        by: Option<Holder>,
        act: Act,
        used: Option<UsedBy>,
    ) -> Result<Arc<Handoff>, Error> {
        if by.as_ref().is_some_and(|by| by.signed.is_some()) {
            let sight = self.look(Needs::handoff(handoff)).await?;
            let held = held_in(&sight, handoff, by.as_ref().map(|by| &by.agent))?;
            self.check_acknowledgment(held, proof, by.as_ref(), &act)?;
        }
        let command = Command::held_using(handoff, proof, by, act, used);
        match self.one_handoff(command).await {
            Err(error) => Err(self.with_why(error, handoff, proof).await),
            done => done,
        }
    }

    /// A signature that comes with an act must be the holder's, over this very act.
    fn check_acknowledgment(
        &self,
        handoff: &Handoff,
        proof: Proof,
        by: Option<&Holder>,
        act: &Act,
    ) -> Result<(), Error> {
        let Some((by, signed)) = by.and_then(|by| Some((by, by.signed.as_ref()?))) else {
            return Ok(());
        };
        let Some((word, body)) = act.acknowledgment() else { return Ok(()) };
        let (claim, fence) = (proof.claim_id, proof.fence);
        let text =
            statement::acknowledgment(handoff.id, handoff.envelope, claim, fence, word, body);
        self.check_signature(&by.agent, signed, &text)
    }

    /// A signature must be one of a key of the agent that counts now.
    pub(crate) fn check_signature(
        &self,
        agent: &AgentId,
        signed: &Signed,
        text: &[u8],
    ) -> Result<(), Error> {
        let registry = self.registry();
        let found = registry.holder_of(signed.key_id, self.now());
        let right = found.is_some_and(|(holder, key)| {
            holder.id == *agent && key.verify(text, &signed.signature)
        });
        if right { Ok(()) } else { Err(denied(format!("the signature is not one of {agent}'s"))) }
    }

    /// Extends the lease. Returns how much of it is left, and what the holder was not told yet.
    pub async fn heartbeat(
        &self,
        id: HandoffId,
        proof: Proof,
        by: Option<Holder>,
    ) -> Result<Granted, Error> {
        self.beat(id, proof, by, None).await
    }

    /// The same, from a holder that took note of the messages up to a number.
    pub(crate) async fn beat(
        &self,
        id: HandoffId,
        proof: Proof,
        by: Option<Holder>,
        acknowledge: Option<u32>,
    ) -> Result<Granted, Error> {
        let act = match acknowledge {
            Some(up_to) => Act::Acknowledge { up_to },
            None => Act::Heartbeat,
        };
        let command = Command::held(id, proof, by, act);
        let done = match self.one(command).await {
            Ok(done) => done,
            Err(error) => return Err(self.with_why(error, id, proof).await),
        };
        let task = done.task;
        let handoff = done.handoffs.into_iter().next();
        let handoff = handoff.ok_or(Error::Store(tasuki_store::Error::Unknown))?;
        let now = self.store.clock().now();
        let claim = handoff.state.claim();
        if let Some(claim) = claim {
            self.presence.heard(&claim.agent, now);
        }
        let lease_left_ms = claim.map_or(0, |claim| claim.ends_at().ms_after(now));
        let work_left_ms = claim.map_or(0, |claim| claim.hard_until.ms_after(now));
        let messages = self.unacknowledged(&handoff).await?;
        Ok(Granted {
            handoff,
            envelope: None,
            lease_left_ms,
            work_left_ms,
            taints: task.iter().flat_map(|task| &task.taints).map(|(source, _)| *source).collect(),
            budget: None,
            on_hold: task.and_then(|task| task.tree.on_hold),
            delivery: None,
            brought: Brought { messages, ..Brought::default() },
        })
    }

    pub async fn progress(
        &self,
        id: HandoffId,
        proof: Proof,
        by: Option<Holder>,
        percent: Option<u8>,
        note: Option<String>,
    ) -> Result<Arc<Handoff>, Error> {
        if let Some(percent) = percent.filter(|percent| *percent > 100) {
            return Err(invalid("percent", format!("is {percent}, expected 0 to 100")));
        }
        let act = Act::Progress { percent, note: self.note(note)? };
        self.held(id, proof, by, act).await
    }

    /// Completes handoffs, each on its own, all with one commit.
    pub async fn complete(
        &self,
        requests: Vec<CompleteRequest>,
    ) -> Result<Vec<Result<Arc<Handoff>, Error>>, Error> {
        let sight = self
            .look(completed(requests.iter().map(|it| (it.handoff, !it.follow_ups.is_empty()))))
            .await?;
        self.complete_in(&sight, requests).await
    }

    /// The same, by a look that was taken already.
    pub(crate) async fn complete_in(
        &self,
        sight: &Sight,
        requests: Vec<CompleteRequest>,
    ) -> Result<Vec<Result<Arc<Handoff>, Error>>, Error> {
        let mut commands = Vec::with_capacity(requests.len());
        let mut slots = Vec::with_capacity(requests.len());
        for request in requests {
            match self.completion(sight, request).await {
                Ok(command) => {
                    commands.push(command);
                    slots.push(None);
                }
                Err(error) => slots.push(Some(error)),
            }
        }
        let mut replies = self.execute(commands).await?.into_iter();
        let answers = slots.into_iter().map(|error| match error {
            Some(error) => Err(error),
            None => first_handoff(replies.next()),
        });
        Ok(answers.collect())
    }

    async fn completion(&self, sight: &Sight, request: CompleteRequest) -> Result<Command, Error> {
        let id = request.handoff;
        if !matches!(
            request.action,
            Action::Completed | Action::NeedsReview | Action::ChangesRequested | Action::Escalated
        ) {
            let problem = "expected completed, needs_review, changes_requested or escalated";
            return Err(invalid("action", problem));
        }
        let by = request.by.as_ref().map(|by| &by.agent);
        let told = Told {
            payload: &request.payload,
            criteria: &request.criteria,
            done: request.action == Action::Completed,
        };
        let handoff = held_in(sight, id, by)?;
        let agreement = &handoff.contract.agreement;
        // What was agreed is in the envelope, and what follows is built on it.
        let envelope = match agreement.binds_result() || !request.follow_ups.is_empty() {
            true => self.envelope_of(sight, handoff).await?,
            false => None,
        };
        let verified = self.check_result(handoff, envelope.as_deref(), told).await?;
        let used = used_by(task_in(sight, handoff.task_id)?, request.usage.as_ref())?;
        let came = came_with(handoff, envelope.as_deref());
        if let Some(unknown) = request.resolved_gaps.iter().find(|gap| !came.contains(gap)) {
            let problem = format!("{unknown:?} is none of the gaps that came with this work");
            return Err(invalid("resolved_gaps", problem));
        }
        let lacks = Lacks { gaps: &request.gaps, resolved: &request.resolved_gaps };
        let gaps = lacks.with(came);
        let from = Ending { handoff, task: task_in(sight, handoff.task_id)?, envelope };
        let (follow_ups, successors) = if request.follow_ups.is_empty() {
            let (action, payload) = (request.action, &request.payload);
            self.next_stages(from, action, payload, lacks).await?
        } else {
            let hops = with_gaps(request.follow_ups, lacks);
            (self.onward(from).await?.follow_ups(self, hops).await?, Successors::Named)
        };
        let checked =
            agreement.binds_result().then(|| Checked { agreement: agreement.clone(), successors });
        let result = Body::of(&ResultReport {
            handoff_id: id,
            action: request.action,
            payload: request.payload,
            metadata: request.metadata,
            verified,
            declared: request.criteria,
            said_gaps: (gaps != request.gaps).then(|| request.gaps.clone()),
            gaps,
            usage: request.usage,
        });
        let act = Act::Complete { result, follow_ups, checked };
        self.check_acknowledgment(handoff, request.proof, request.by.as_ref(), &act)?;
        Ok(Command::held_using(id, request.proof, request.by, act, used))
    }

    pub async fn fail(&self, request: FailRequest) -> Result<Arc<Handoff>, Error> {
        let texts = [&Some(request.kind.clone()), &Some(request.message.clone())];
        for text in texts.into_iter().chain([&request.attempted, &request.hint]) {
            self.check_text("failure", text.as_deref())?;
        }
        let failure = FailureReport {
            handoff_id: request.handoff,
            action: Action::Failed,
            class: request.class,
            kind: request.kind,
            message: request.message,
            attempted: request.attempted,
            attempts: request.attempts,
            causes: request.causes,
            hint: request.hint,
            retry_after_ms: request.retry_after_ms,
            details: request.details,
            usage: request.usage,
        };
        failure.check().map_err(|(field, problem)| invalid(field, problem))?;
        let act = Act::Fail {
            class: request.class,
            failure: Body::of(&failure),
            retry_after_ms: request.retry_after_ms,
            entropy: self.ids.entropy(),
        };
        let FailRequest { handoff, proof, by, .. } = request;
        let used = match &failure.usage {
            None => None,
            Some(_) => {
                let sight = self.look(Needs::handoff(handoff)).await?;
                let task = task_in(&sight, handoff_in(&sight, handoff)?.task_id)?;
                used_by(task, failure.usage.as_ref())?
            }
        };
        let failed = self.held_using(handoff, proof, by, act, used).await?;
        if let State::DeadLettered { .. } = failed.state {
            self.settle_tree(failed.task_id).await;
        }
        Ok(failed)
    }

    pub async fn release(
        &self,
        id: HandoffId,
        proof: Proof,
        by: Option<Holder>,
    ) -> Result<Arc<Handoff>, Error> {
        self.one_handoff(Command::held(id, proof, by, Act::Release)).await
    }

    /// Declines a handoff: as its holder with a proof, or without one before claiming.
    pub async fn decline(
        &self,
        id: HandoffId,
        agent: AgentId,
        proof: Option<Proof>,
        by: Option<Holder>,
        reason: Option<String>,
    ) -> Result<Arc<Handoff>, Error> {
        let reason = self.note(reason)?;
        let command = match proof {
            Some(proof) => Command::held(id, proof, by, Act::Decline { reason }),
            None => Command::by(agent, commands::Decline { handoff: id, reason }),
        };
        self.one_handoff(command).await
    }
}

/// What an attempt used, for its task and all those above it.
fn used_by(task: &Task, usage: Option<&Used>) -> Result<Option<UsedBy>, Error> {
    let Some(usage) = usage else { return Ok(None) };
    usage.check().map_err(|problem| invalid("usage", problem))?;
    Ok(Some(UsedBy { spent: usage.spent(), above: task.above().to_vec() }))
}

/// The address of what a receiver repeats.
fn repeated(said: &ReadBack) -> Hash {
    read_back(said.constraints.clone(), said.expected_output)
}

/// What completing must see: with follow-ups, also the envelopes that they come after.
pub(crate) fn completed(each: impl Iterator<Item = (HandoffId, bool)>) -> Needs {
    let (handoffs, followed): (Vec<_>, Vec<_>) = each.unzip();
    let needs = Needs::handoffs(handoffs);
    match followed.contains(&true) {
        true => needs.with_envelopes(),
        false => needs,
    }
}

/// A handoff for somebody who is or was its holder. To others it is not there.
fn held_in<'s>(
    sight: &'s Sight,
    id: HandoffId,
    by: Option<&AgentId>,
) -> Result<&'s Arc<Handoff>, Error> {
    let handoff = handoff_in(sight, id)?;
    let theirs = |by: &AgentId| handoff.attempts.iter().any(|attempt| attempt.agent == *by);
    if by.is_none_or(theirs) {
        return Ok(handoff);
    }
    Err(Refusal::HandoffNotFound(id).into())
}

/// What a holder says about what is missing.
#[derive(Clone, Copy)]
pub(crate) struct Lacks<'r> {
    pub(crate) gaps: &'r [String],
    /// What came with the work as missing, and is there now.
    pub(crate) resolved: &'r [String],
}

impl Lacks<'_> {
    /// Everything that a result was made without: what its maker names, and what came with the work and
    /// is still missing.
    fn with(self, came: Vec<String>) -> Vec<String> {
        let mut gaps = self.gaps.to_vec();
        let open = came.into_iter().filter(|gap| !self.resolved.contains(gap));
        for gap in open {
            if !gaps.contains(&gap) {
                gaps.push(gap);
            }
        }
        gaps
    }

    /// What somebody had to work without is missing for those who build on it, until it is there.
    pub(crate) fn pass_on(self, hop: &mut FollowUp) {
        for gap in self.resolved {
            if !hop.said.resolved_gaps.contains(gap) {
                hop.said.resolved_gaps.push(gap.clone());
            }
        }
        let resolved = &hop.said.resolved_gaps;
        let open = self.gaps.iter().filter(|gap| !resolved.contains(gap));
        let open: Vec<_> = open.cloned().map(TextOr::Text).collect();
        hop.said.gaps.extend(open);
    }
}

/// The gaps that came with a handoff: those of its envelope, and those of what it waited for.
fn came_with(handoff: &Handoff, envelope: Option<&Envelope>) -> Vec<String> {
    let carried = envelope.into_iter().flat_map(|envelope| &envelope.parts.gaps);
    let mut came: Vec<_> = carried.map(|gap| gap.reference.clone()).collect();
    for (reference, _) in handoff.joined().iter().filter_map(Member::gap) {
        if !came.contains(&reference) {
            came.push(reference);
        }
    }
    came
}

fn with_gaps(hops: Vec<FollowUp>, lacks: Lacks<'_>) -> Vec<FollowUp> {
    let mut hops = hops;
    hops.iter_mut().for_each(|hop| lacks.pass_on(hop));
    hops
}
