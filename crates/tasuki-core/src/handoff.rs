// SPDX-License-Identifier: Apache-2.0
// Long because: it is one machine.
//! One hop of a task to one receiver: what was offered, how far it has come, and how events move it
//! on. What is allowed in which state is in [`crate::commands`].

use std::ops::Deref;
use std::sync::Arc;

use crate::contract::{Contract, Counter};
use crate::envelope::{Control, Target};
use crate::event::{self, Actor, DeadReason, Event, LossCause, Offered, Sealed, TaintPolicy};
use crate::ids::{
    AgentId, ClaimId, DocumentId, Fence, HandoffId, Hash, OrderingKey, Position, TaskId, Timestamp,
};
use crate::join::Joining;
use crate::shared::SharedList;
use crate::terms::Terms;
use crate::turn::Rank;

mod attempt;
mod state;
pub mod talk;

pub use attempt::{Attempt, AttemptEnd, Ended};
pub use state::{Asking, Claim, Kept, Review, State, StateName, Status};
pub use talk::Talk;

use talk::{Answer, Artifact, Message, Noted, Question};

/// How many attempts a handoff remembers; older ones are in the audit log only.
pub const ATTEMPTS_KEPT_MAX: usize = 32;
/// How many fetches of what was trimmed a handoff counts.
pub const FETCHED_MAX: usize = 1000;

/// One hop of a task to one receiver: what was offered, and how far it has come. Every event and
/// every heartbeat makes a copy, so what is large is shared: the facts, and the lists until they
/// change.
#[derive(Debug, Clone, PartialEq)]
pub struct Handoff {
    /// Read as if they were members of the handoff.
    pub facts: Arc<Facts>,
    /// What is true in one state only is in the state.
    pub state: State,
    /// Nobody has approved it yet, and somebody must before it is claimed.
    pub needs_approval: bool,
    /// What its task is built on keeps it back, and nothing else does.
    pub blocked: bool,
    /// The highest fence given out so far.
    pub fence: Fence,
    pub claims: u32,
    /// Attempts that ended in a declared failure.
    pub failures: u32,
    /// Leases lost in all, and lost in a row without progress.
    pub losses: u32,
    pub losses_in_row: u32,
    /// When the receiver first had the envelope, claimed or not.
    pub delivered_at: Option<Timestamp>,
    /// Set while a task above is a dead letter that nobody has decided on.
    pub on_hold: Option<OnHold>,
    /// The last event that is in here.
    pub last_pos: Position,
    /// Terms on which agents would take it.
    pub counters: SharedList<Counter>,
    /// Targets that could not or would not do it, the first one first.
    pub tried: SharedList<Target>,
    /// Who does not get it: who declined or approved it, or could not do it when it was the one asked.
    pub declined_by: SharedList<AgentId>,
    pub attempts: SharedList<Attempt>,
    /// Constraints of the envelope that do not bind the next one any more.
    pub lifts: SharedList<Lift>,
    /// Memories that the receiver fetched because the envelope had passed less of them, each once.
    pub fetched: SharedList<DocumentId>,
    /// What was said about it while it was worked on.
    pub talk: Talk,
    /// How far it has come with the tasks that it waits for. Nothing for most.
    pub join: Option<Arc<Joining>>,
}

/// What a handoff waited for when it was put on hold, and what it goes on with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OnHold {
    /// Its start time or its retry; without one, it was ready.
    pub due: Option<Timestamp>,
}

/// What the offer says. It stays as it is unless somebody else is asked, or on other terms, which makes
/// new facts.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    pub id: HandoffId,
    pub task_id: TaskId,
    pub from: AgentId,
    pub to: Target,
    pub control: Control,
    pub envelope: Hash,
    /// Where the envelope is kept.
    pub envelope_pos: Position,
    pub hop: u32,
    pub priority: u8,
    pub terms: Terms,
    pub contract: Arc<Contract>,
    pub offered_at: Timestamp,
    pub expires_at: Timestamp,
    pub not_before: Option<Timestamp>,
    pub ordering_key: Option<OrderingKey>,
    /// The event that offered it: handoffs with one ordering key go in this order.
    pub offered_pos: Position,
    /// Whether this offer opened its task.
    pub opened_task: bool,
    pub redrive_of: Option<HandoffId>,
}

impl Deref for Handoff {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

/// A constraint that somebody lifted between two hops.
#[derive(Debug, Clone, PartialEq)]
pub struct Lift {
    pub constraint: Hash,
    pub by: AgentId,
    /// Where the reason is kept.
    pub reason_pos: Position,
}

impl Handoff {
    /// A new handoff, from the event that offered it.
    #[must_use]
    pub fn offered(id: HandoffId, offered: &Offered, control: Control, sealed: &Sealed) -> Self {
        let record = &sealed.record;
        let start = match offered.contract.after {
            Some(_) => Some(offered.not_before.unwrap_or(offered.expires_at)),
            None => offered.not_before,
        };
        let facts = Facts {
            id,
            task_id: record.task_id,
            from: offered.from.clone(),
            to: offered.to.clone(),
            control,
            envelope: offered.envelope,
            envelope_pos: offered
                .redrive_of
                .map_or(sealed.position, |redrive| redrive.envelope_pos),
            hop: offered.hop,
            priority: offered.priority,
            terms: offered.terms,
            contract: offered.contract.shared(),
            offered_at: record.at,
            expires_at: offered.expires_at,
            not_before: start,
            ordering_key: offered.ordering_key.clone(),
            offered_pos: sealed.position,
            opened_task: offered.opens.is_some()
                || offered.redrive_of.is_some_and(|redrive| redrive.opened_task),
            redrive_of: offered.redrive_of.map(|redrive| redrive.handoff_id),
        };
        let mut handoff = Self {
            facts: Arc::new(facts),
            state: State::AwaitingApproval,
            needs_approval: offered.needs_approval,
            blocked: offered.blocked,
            fence: Fence(0),
            claims: 0,
            failures: 0,
            losses: 0,
            losses_in_row: 0,
            delivered_at: None,
            on_hold: None,
            last_pos: sealed.position,
            counters: SharedList::default(),
            tried: offered.contract.routing.diverted_from.clone().into_iter().collect(),
            declined_by: SharedList::default(),
            attempts: SharedList::default(),
            lifts: SharedList::default(),
            fetched: SharedList::default(),
            talk: Talk::default(),
            join: None,
        };
        if !handoff.needs_approval {
            handoff.state = handoff.start_state(handoff.not_before, sealed);
        }
        handoff
    }

    /// Moves to where an event leads. Events are facts, so this cannot fail.
    pub fn apply(&mut self, sealed: &Sealed) {
        let (at, position) = (sealed.record.at, sealed.position);
        self.last_pos = position;
        match &sealed.record.event {
            Event::Countered(countered) => {
                self.counters.retain(|counter| counter.agent != countered.agent);
                self.counters.push(Counter {
                    agent: countered.agent.clone(),
                    terms: countered.terms,
                    budget_tokens: countered.budget_tokens,
                    reason_pos: position,
                });
            }
            Event::CounterAccepted { agent, terms, budget_tokens } => {
                self.counters.clear();
                let facts = Arc::make_mut(&mut self.facts);
                facts.to = Target::Agent(agent.clone());
                facts.terms = *terms;
                if let Some(tokens) = budget_tokens {
                    Arc::make_mut(&mut facts.contract).agreement.budget_tokens = Some(*tokens);
                }
                // It stands in another queue from here, at its end like everything that comes.
                if let State::Pending { .. } = &self.state {
                    self.state = self.pending(sealed);
                }
            }
            Event::CounterRefused { agent } => {
                self.counters.retain(|counter| counter.agent != *agent);
            }
            Event::Approved => {
                self.needs_approval = false;
                self.blocked = false;
                // Nobody does what it approved itself, nor when others are asked next.
                let mut asked =
                    std::iter::once(&self.facts.to).chain(&self.facts.contract.routing.fallbacks);
                let open_to_many = asked.any(|to| matches!(to, Target::Capability(_)));
                if let Actor::Agent(by) = &sealed.record.actor
                    && open_to_many
                    && !self.declined_by.contains(by)
                {
                    self.declined_by.push(by.clone());
                }
                self.wait(self.start_state(self.starts_at(), sealed));
            }
            Event::Delivered { .. } => {
                self.delivered_at.get_or_insert(at);
            }
            Event::ConstraintLifted { constraint, .. } => {
                if let Actor::Agent(by) = &sealed.record.actor {
                    let (constraint, by) = (*constraint, by.clone());
                    self.lifts.push(Lift { constraint, by, reason_pos: position });
                }
            }
            Event::TrimFetched { memory, .. } => self.fetched.push(memory.clone()),
            Event::ClaimTold { told, .. } => {
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.told = Some((position, *told));
                }
            }
            Event::Readied => {
                // Work that waited for other tasks went on by this before it was noted with what.
                if self.waits_for_tasks().is_some() {
                    let join = self.join.get_or_insert_default();
                    Arc::make_mut(join).members = Some(Vec::new());
                }
                self.wait(self.pending(sealed));
            }
            Event::WaitOver => {
                let join = self.join.get_or_insert_default();
                Arc::make_mut(join).overdue = true;
                self.state = State::Scheduled { due: self.expires_at };
            }
            Event::Joined { members } => {
                let join = self.join.get_or_insert_default();
                Arc::make_mut(join).members = Some(members.clone());
                self.wait(self.pending(sealed));
            }
            Event::Claimed(claimed) => self.claimed(claimed, at),
            Event::Started => {
                if let State::Claimed(claim) = &self.state {
                    self.state = State::InProgress(claim.clone());
                }
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.started_at.get_or_insert(at);
                }
            }
            Event::Progressed { percent, note } => {
                self.losses_in_row = 0;
                self.renew(at);
                if let (Some(_), Some(attempt)) = (note, self.attempts.last()) {
                    let (fence, percent) = (attempt.fence, *percent);
                    self.talk.edit().note(Noted { fence, at, percent, note_pos: position });
                }
            }
            Event::Asked(asked) => self.asked(asked, sealed),
            Event::Answered { answer, kept_until } => {
                if let Actor::Agent(by) = &sealed.record.actor {
                    let (by, answer) = (by.clone(), *answer);
                    let given = Answer::Given { by, at, answer, answer_pos: position };
                    self.answered(given, *kept_until, position);
                }
            }
            Event::AnswerDefaulted { kept_until } => {
                self.answered(Answer::Default { at }, *kept_until, position);
            }
            Event::KeepEnded => self.wait(self.pending(sealed)),
            Event::MessageSent { number, message } => {
                if let Actor::Agent(by) = &sealed.record.actor {
                    self.talk.edit().send(Message {
                        number: *number,
                        by: by.clone(),
                        at,
                        message: *message,
                        message_pos: position,
                        acknowledged: None,
                    });
                }
            }
            Event::MessagesAcknowledged { up_to, .. } => {
                if let Actor::Agent(by) = &sealed.record.actor {
                    self.talk.edit().acknowledge(*up_to, by, at);
                }
            }
            Event::Attached(attached) => {
                self.losses_in_row = 0;
                self.renew(at);
                self.attached(attached, sealed);
            }
            Event::PutBack { until, reason, .. } => {
                let report = reason.map(|hash| (position, hash));
                self.end_attempt(at, AttemptEnd::PutBack, report);
                self.wait(State::Scheduled { due: *until });
            }
            Event::Completed { fence, result, .. } => {
                let claim_id = self.state.claim().map_or(ClaimId(0), |claim| claim.claim_id);
                self.end_attempt(at, AttemptEnd::Completed, Some((position, *result)));
                self.state = State::Completed {
                    claim_id,
                    fence: *fence,
                    result: *result,
                    result_pos: position,
                    at,
                    retracted_pos: None,
                };
            }
            Event::AttemptFailed { class, failure, .. } => {
                self.failures += 1;
                self.losses_in_row = 0;
                self.end_attempt(at, (*class).into(), Some((position, *failure)));
                self.state = State::Failed { at };
            }
            Event::Declined { agent, reason } => {
                let report = reason.map(|hash| (position, hash));
                self.end_attempt(at, AttemptEnd::Declined, report);
                self.declined_by.push(agent.clone());
                // Who declines without a claim changes nothing for the others: the handoff keeps
                // its place, and still waits for its start or its approval.
                if self.state.claim().is_some() {
                    self.wait(self.pending(sealed));
                }
            }
            Event::Released { .. } => {
                self.end_attempt(at, AttemptEnd::Released, None);
                self.wait(self.pending(sealed));
            }
            Event::LeaseLost { cause, .. } => {
                // A restore is the store's doing and a revocation the administrator's: neither
                // counts against the handoff.
                if matches!(cause, LossCause::Silence | LossCause::HardDeadline) {
                    self.losses += 1;
                    self.losses_in_row += 1;
                }
                self.end_attempt(at, (*cause).into(), None);
                self.wait(self.pending(sealed));
            }
            Event::RetryScheduled { due } => self.wait(State::Scheduled { due: *due }),
            Event::TaskHeld { .. } => self.hold(),
            Event::TaskResumed { until, .. } => {
                self.end_by(*until);
                self.resume(sealed);
            }
            Event::DeadLettered { reason, .. } => {
                self.state =
                    State::DeadLettered { reason: *reason, at, reviewer: None, review: None };
            }
            Event::Escalated { to, .. } => {
                if let Target::Agent(agent) = &self.facts.to
                    && !self.declined_by.contains(agent)
                {
                    self.declined_by.push(agent.clone());
                }
                let facts = Arc::make_mut(&mut self.facts);
                self.tried.push(std::mem::replace(&mut facts.to, to.clone()));
                self.failures = 0;
                self.losses_in_row = 0;
                self.counters.clear();
                self.wait(self.pending(sealed));
            }
            Event::Retracted { .. } => {
                if let State::Completed { retracted_pos, .. } = &mut self.state {
                    *retracted_pos = Some(position);
                }
            }
            // What must not go on waits to be approved; who has it already may finish.
            Event::Tainted { policy: TaintPolicy::Block, .. } => {
                if !self.state.is_terminal() && !self.needs_approval {
                    self.blocked = true;
                }
                if let State::Pending { .. } | State::Scheduled { .. } = self.state {
                    self.block();
                }
            }
            Event::TaintCleared { releases: true, .. } => {
                self.blocked = false;
                if let State::AwaitingApproval = self.state {
                    self.needs_approval = false;
                    self.wait(self.start_state(self.starts_at(), sealed));
                }
            }
            Event::ReviewTaken { by, until } => self.reviewed_by(Some((by.clone(), *until))),
            Event::ReviewReleased => self.reviewed_by(None),
            Event::Cancelled { reason } => {
                let reason = reason.map(|hash| (position, hash));
                self.end_attempt(at, AttemptEnd::Cancelled, reason);
                self.state = State::Cancelled { at };
            }
            Event::Aborted { reason } => {
                let reason = reason.map(|hash| (position, hash));
                self.end_attempt(at, AttemptEnd::Aborted, reason);
                self.state = State::Aborted { at };
            }
            Event::LateReport { claim_id, .. } => {
                if self.attempts.iter().any(|attempt| attempt.claim_id == *claim_id) {
                    let attempts = self.attempts.edit().iter_mut();
                    attempts.filter(|a| a.claim_id == *claim_id).for_each(|a| a.late = true);
                }
            }
            Event::Redriven { to, changed } => {
                self.reviewed(Review::Redriven { to: *to, changed: *changed })
            }
            Event::Discarded { .. } => self.reviewed(Review::Discarded { reason_pos: position }),
            Event::LetterClosed { because } => self.reviewed(Review::Closed { because: *because }),
            // Facts about the task, the store, or a handoff's own beginning.
            Event::TaskOpened(_)
            | Event::Tainted { policy: TaintPolicy::Flag, .. }
            | Event::TaintCleared { releases: false, .. }
            | Event::PassedTo { .. }
            | Event::Reserved { .. }
            | Event::Unreserved { .. }
            | Event::TaskCancelled { .. }
            | Event::TaskCompleted { .. }
            | Event::Spent(_)
            | Event::TransferOffered(_)
            | Event::CallOffered(_)
            | Event::Expired
            | Event::EpochRaised { .. }
            | Event::Acknowledged(_)
            | Event::RegistryChanged(_)
            | Event::DocumentWritten(_)
            | Event::DocumentMarked { .. }
            | Event::DocumentSuperseded { .. }
            | Event::DocumentDeleted { .. }
            | Event::Erased(_) => {}
        }
    }

    /// Waits for what comes next, unless it is on hold: then that has to wait, too.
    fn wait(&mut self, next: State) {
        self.state = match (next, self.waits_for_tasks()) {
            // Whoever is asked next, the tasks that it waits for come first.
            (State::Pending { .. }, Some(_)) => {
                State::Scheduled { due: self.not_before.unwrap_or(self.expires_at) }
            }
            (next, _) => next,
        };
        if self.blocked {
            self.block();
        }
        if self.on_hold.take().is_some() {
            self.hold();
        }
    }

    /// Nobody gets it before somebody has looked at what its task is built on.
    fn block(&mut self) {
        self.needs_approval = true;
        self.state = State::AwaitingApproval;
    }

    /// Keeps it back until somebody has decided on what is above it, or until its time is over. Who
    /// has it already may finish.
    pub(crate) fn hold(&mut self) {
        if self.on_hold.is_some() {
            return;
        }
        let due = match self.state {
            State::Scheduled { due } => Some(due),
            _ => None,
        };
        self.on_hold = Some(OnHold { due });
        if let State::Pending { .. } | State::Scheduled { .. } = self.state {
            self.state = State::Scheduled { due: self.expires_at };
        }
    }

    /// Ends no later than what it hangs from, if that ends earlier by now.
    fn end_by(&mut self, until: Option<Timestamp>) {
        let Some(until) = until.filter(|until| *until < self.expires_at) else { return };
        Arc::make_mut(&mut self.facts).expires_at = until;
        match &mut self.state {
            State::Claimed(claim) | State::InProgress(claim) => {
                claim.hard_until = claim.hard_until.min(until);
            }
            State::InputRequired(asking) => {
                asking.claim.hard_until = asking.claim.hard_until.min(until);
            }
            State::Answered(kept) => {
                kept.hard_until = kept.hard_until.min(until);
                kept.until = kept.until.min(until);
            }
            State::AwaitingApproval
            | State::Scheduled { .. }
            | State::Pending { .. }
            | State::Failed { .. }
            | State::Completed { .. }
            | State::Aborted { .. }
            | State::Cancelled { .. }
            | State::DeadLettered { .. } => {}
        }
    }

    fn resume(&mut self, sealed: &Sealed) {
        let Some(OnHold { due }) = self.on_hold.take() else { return };
        if let State::Scheduled { .. } = self.state {
            self.state = self.start_state(due, sealed);
        }
    }

    fn claimed(&mut self, claimed: &event::Claimed, at: Timestamp) {
        self.fence = claimed.fence;
        self.claims = claimed.attempt;
        self.delivered_at.get_or_insert(at);
        if self.attempts.len() == ATTEMPTS_KEPT_MAX {
            self.attempts.edit().remove(0);
        }
        self.attempts.push(Attempt {
            number: claimed.attempt,
            agent: claimed.agent.clone(),
            claim_id: claimed.claim_id,
            fence: claimed.fence,
            claimed_at: at,
            started_at: None,
            ended: None,
            late: false,
            told: None,
        });
        self.state = State::Claimed(Claim {
            agent: claimed.agent.clone(),
            claim_id: claimed.claim_id,
            fence: claimed.fence,
            lease_ms: claimed.lease_ms,
            lease_until: at.plus_ms(claimed.lease_ms),
            hard_until: claimed.hard_until,
            request_id: claimed.request_id.clone(),
        });
    }

    /// The attempt pauses: the answer brings a new claim.
    fn asked(&mut self, asked: &event::Asked, sealed: &Sealed) {
        let (at, position) = (sealed.record.at, sealed.position);
        let Some(mut claim) = self.state.claim().cloned() else { return };
        // Heartbeats are not in the log, so nothing that they moved may stay.
        claim.lease_until = at;
        self.end_attempt(at, AttemptEnd::Asked, Some((position, asked.question)));
        self.talk.edit().ask(Question {
            kind: asked.kind,
            asker: claim.agent.clone(),
            attempt: self.claims,
            asked_at: at,
            question: asked.question,
            question_pos: position,
            answer_by: asked.answer_by,
            has_default: asked.has_default,
            keep_ms: asked.keep_ms,
            by_id: asked.by_id,
            answer: None,
        });
        self.state = State::InputRequired(Asking { claim, answer_by: asked.answer_by });
    }

    fn answered(&mut self, answer: Answer, until: Timestamp, position: Position) {
        let State::InputRequired(asking) = &self.state else { return };
        let by_id = self.talk.questions().last().is_some_and(|question| question.by_id);
        let kept = Kept {
            agent: asking.claim.agent.clone(),
            until,
            hard_until: asking.claim.hard_until,
            since_pos: position,
            by_id,
        };
        self.talk.edit().answer(answer);
        self.state = State::Answered(kept);
    }

    fn attached(&mut self, attached: &event::Attached, sealed: &Sealed) {
        let Some(attempt) = self.attempts.last() else { return };
        let (by, number) = (attempt.agent.clone(), attempt.number);
        self.talk.edit().attach(Artifact {
            name: attached.name.clone(),
            kind: attached.kind.clone(),
            version: attached.version,
            by,
            attempt: number,
            fence: attached.fence,
            at: sealed.record.at,
            artifact: attached.artifact,
            artifact_pos: sealed.position,
            bytes: attached.bytes,
        });
    }

    /// The number of the next attempt. Asking and putting back end a claim and use up no attempt.
    #[must_use]
    pub fn next_attempt(&self) -> u32 {
        let ended = self.attempts.last().and_then(|attempt| attempt.ended.as_ref());
        match ended.map(|ended| ended.how) {
            Some(AttemptEnd::Asked | AttemptEnd::PutBack) => self.claims,
            Some(_) | None => self.claims + 1,
        }
    }

    /// What an attempt that asked comes to, it comes to in the end.
    fn end_attempt(&mut self, at: Timestamp, how: AttemptEnd, report: Option<(Position, Hash)>) {
        let open = |attempt: &Attempt| match &attempt.ended {
            None => true,
            Some(ended) => {
                ended.how == AttemptEnd::Asked
                    && matches!(self.state, State::InputRequired(_) | State::Answered(_))
            }
        };
        if self.attempts.last().is_some_and(open)
            && let Some(attempt) = self.attempts.last_mut()
        {
            attempt.ended = Some(Ended { at, how, report });
        }
    }

    fn reviewed(&mut self, decided: Review) {
        if let State::DeadLettered { review, .. } = &mut self.state {
            *review = Some(decided);
        }
    }

    fn reviewed_by(&mut self, now: Option<(AgentId, Timestamp)>) {
        if let State::DeadLettered { reviewer, .. } = &mut self.state {
            *reviewer = now;
        }
    }

    /// From when it may be claimed, as its sender said. Of work that waits for other tasks it says for how
    /// long, which is over once it has gone on.
    fn starts_at(&self) -> Option<Timestamp> {
        self.not_before
            .filter(|_| self.contract.after.is_none() || self.waits_for_tasks().is_some())
    }

    fn start_state(&self, start: Option<Timestamp>, sealed: &Sealed) -> State {
        // What waits for other tasks goes on by a decision about those, also when its time is over.
        if self.waits_for_tasks().is_some() {
            return State::Scheduled { due: start.unwrap_or(self.expires_at) };
        }
        match start {
            Some(due) if due > sealed.record.at => State::Scheduled { due },
            Some(_) | None => self.pending(sealed),
        }
    }

    /// From when it waits, it must be claimed in time.
    fn pending(&self, sealed: &Sealed) -> State {
        let (ready, at) = (sealed.position, sealed.record.at);
        State::Pending {
            ready,
            turn: sealed.record.turn.unwrap_or(ready),
            ack_by: self.terms.ack_ms.map(|ms| at.plus_ms(ms)),
        }
    }

    /// Gives the holder a full lease from `now`. Renewing keeps the fence: the holder is the same,
    /// so its earlier writes stay valid.
    pub fn renew(&mut self, now: Timestamp) {
        if let Some(claim) = self.state.claim_mut() {
            claim.lease_until = claim.lease_until.max(now.plus_ms(claim.lease_ms));
        }
    }

    /// When something is due to happen to this handoff by itself.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::AwaitingApproval => Some(self.expires_at),
            State::Pending { ack_by, .. } => {
                Some(ack_by.map_or(self.expires_at, |by| by.min(self.expires_at)))
            }
            State::Scheduled { due } => Some((*due).min(self.expires_at)),
            State::Claimed(claim) | State::InProgress(claim) => Some(claim.ends_at()),
            State::InputRequired(asking) => Some(asking.due_at()),
            State::Answered(kept) => Some(kept.until),
            State::Completed { .. }
            | State::Failed { .. }
            | State::Aborted { .. }
            | State::Cancelled { .. }
            | State::DeadLettered { .. } => None,
        }
    }

    /// How far the work has come, told apart: "delivered" is not "claimed".
    #[must_use]
    pub fn status(&self) -> Status {
        match &self.state {
            State::Claimed(_) => Status::Claimed,
            // Whoever asked goes on with the answer: the sender's work is in its hands.
            State::InProgress(_) | State::Answered(_) => Status::InProgress,
            State::InputRequired(_) => Status::InputRequired,
            State::AwaitingApproval
            | State::Scheduled { .. }
            | State::Pending { .. }
            | State::Failed { .. } => {
                if self.delivered_at.is_some() {
                    Status::Delivered
                } else {
                    Status::Stored
                }
            }
            State::Completed { .. } => Status::Done,
            State::Aborted { .. } => Status::Failed,
            State::Cancelled { .. } => Status::Cancelled,
            State::DeadLettered { reason: DeadReason::Rejected, .. } => Status::Rejected,
            State::DeadLettered { .. } => Status::DeadLettered,
        }
    }

    /// Where this handoff stands among those that wait for the same target: smaller comes first.
    #[must_use]
    pub fn rank(&self) -> Option<Rank> {
        match self.state {
            State::Pending { ready, turn, .. } => {
                Some(Rank { urgency_rank: PRIORITY_MAX - self.priority, turn, ready })
            }
            _ => None,
        }
    }
}

pub const PRIORITY_MAX: u8 = 9;
pub const PRIORITY_DEFAULT: u8 = 5;
