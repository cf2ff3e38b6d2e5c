// SPDX-License-Identifier: Apache-2.0
//! Which spans follow from which events. A task is a span, and of each hop the sending, the waiting,
//! each claim and how it ended: whoever walks the links from the last hop comes to the first.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::context::{Context, Mode, mixed, send_span, task_span};
use super::span::{Kind, Link, Mark, Span, Value};
use crate::envelope::{Control, Target};
use crate::event::{Claimed, DeadReason, Event, Offered, Sealed};
use crate::handoff::AttemptEnd;
use crate::ids::{AgentId, CorrelationId, HandoffId, Hash, TENANT_DEFAULT, TaskId, Timestamp};
use crate::meter::label_of;

/// How many tasks and handoffs that are recorded are followed; beyond that the oldest is given up.
const TASKS_MAX: usize = 10_000;
const HOPS_MAX: usize = 20_000;
/// How many marks one span has.
const MARKS_MAX: usize = 32;

/// A task that is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Task {
    trace: u128,
    parent: Option<u64>,
    links: Vec<Link>,
    opened_at: Timestamp,
    from: AgentId,
    to: Target,
    hops: u32,
    /// What it opened with may be cancelled, and the task with it.
    opened_by: Option<HandoffId>,
    correlation_id: Option<CorrelationId>,
    /// The sending before the next one, and the envelope that it sent.
    last: Option<(Link, Hash)>,
    /// The dead letter that it ended in, unless it went on since.
    letter: Option<HandoffId>,
}

/// A hop of such a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Hop {
    task: TaskId,
    trace: u128,
    creation: Link,
    from: AgentId,
    to: Target,
    awaited: bool,
    hop: u32,
    envelope: Hash,
    previous: Option<Hash>,
    correlation_id: Option<CorrelationId>,
    /// Since when it waits.
    since: Timestamp,
    claim: Option<Claim>,
    marks: Vec<Mark>,
    marks_dropped: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Claim {
    agent: AgentId,
    attempt: u32,
    fence: u64,
    at: Timestamp,
}

/// Follows the tasks that are recorded. It is told what is committed, in order, and tells spans.
#[derive(Debug, Serialize, Deserialize)]
pub struct Tracer {
    #[serde(skip)]
    mode: Mode,
    /// Nothing that was offered earlier is recorded.
    since: Timestamp,
    tasks: BTreeMap<TaskId, Task>,
    hops: BTreeMap<HandoffId, Hop>,
    /// How many tasks and hops were given up.
    #[serde(skip)]
    pub given_up: u64,
}

/// What of a hop a span is about.
#[derive(Clone, Copy)]
enum Part {
    Assemble = 1,
    Queue = 2,
    Receive = 3,
    Process = 4,
    Settle = 5,
}

impl Tracer {
    #[must_use]
    pub fn new(mode: Mode, since: Timestamp) -> Self {
        let (tasks, hops) = (BTreeMap::new(), BTreeMap::new());
        Self { mode, since, tasks, hops, given_up: 0 }
    }

    /// What it was saved as, to go on from there.
    #[must_use]
    pub fn saved(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    #[must_use]
    pub fn restored(mode: Mode, saved: &str) -> Option<Self> {
        let saved: Self = serde_json::from_str(saved).ok()?;
        Some(Self { mode, ..saved })
    }

    /// Takes what was committed next.
    pub fn note(&mut self, sealed: &Sealed, told: &mut Vec<Span>) {
        let record = &sealed.record;
        if let Some(id) = record.handoff_id {
            if let Some((offered, control)) = record.event.offered() {
                self.offered(id, offered, control, sealed, told);
                return;
            }
            if let Some(mut hop) = self.hops.remove(&id)
                && moved(id, &mut hop, sealed, told)
            {
                self.hops.insert(id, hop);
            }
        }
        if let Some(how) = self.task_ends(sealed)
            && let Some(task) = self.tasks.remove(&record.task_id)
        {
            told.push(task.span(record.task_id, record.at, how));
        }
    }

    fn offered(
        &mut self,
        id: HandoffId,
        offered: &Offered,
        control: Control,
        sealed: &Sealed,
        told: &mut Vec<Span>,
    ) {
        let (task_id, at) = (sealed.record.task_id, sealed.record.at);
        let context = offered.contract.trace.filter(|_| at >= self.since);
        let known = self.tasks.contains_key(&task_id);
        let Some(context) = context.filter(|context| known || context.is_sampled()) else { return };
        if !known {
            let task = self.begun(id, offered, context, at);
            self.tasks.insert(task_id, task);
            if self.tasks.len() > TASKS_MAX {
                self.tasks.pop_first();
                self.given_up += 1;
            }
        }
        let Some(task) = self.tasks.get_mut(&task_id) else { return };
        let trace = match self.mode {
            Mode::Task => task.trace,
            Mode::Links => context.trace,
        };
        let creation = Link { trace: context.trace, span: context.span };
        let before = task.last.replace((Link { trace, span: send_span(id) }, offered.envelope));
        task.hops += 1;
        task.letter = None;
        let hop = Hop {
            task: task_id,
            trace,
            creation,
            from: offered.from.clone(),
            to: offered.to.clone(),
            awaited: control == Control::Awaited,
            hop: offered.hop,
            envelope: offered.envelope,
            previous: before.as_ref().map(|(_, envelope)| *envelope),
            correlation_id: task.correlation_id.clone(),
            since: at,
            claim: None,
            marks: Vec::new(),
            marks_dropped: 0,
        };
        let above = Link { trace: task.trace, span: task_span(task_id) };
        let sent = hop.sent(id, above, before.map(|(link, _)| link), at);
        if let Some(fill) = offered.contract.fill {
            let mut put = hop.span(id, Part::Assemble, 0, "assemble", Kind::Internal, (at, at));
            let per_mille = fill.completeness_per_mille as f64;
            put.attributes.extend([
                ("handoff.completeness", Value::Number(per_mille / 1000.0)),
                ("handoff.tokens.used", whole(fill.token_count)),
                ("handoff.tokens.budget", whole(fill.budget)),
            ]);
            told.push(put);
        }
        told.push(sent);
        self.hops.insert(id, hop);
        if self.hops.len() > HOPS_MAX {
            self.hops.pop_first();
            self.given_up += 1;
        }
    }

    /// A task of which nothing is recorded yet.
    fn begun(&self, id: HandoffId, offered: &Offered, context: Context, at: Timestamp) -> Task {
        let creation = Link { trace: context.trace, span: context.span };
        let own = context.span == send_span(id);
        let opened = offered.opens.as_ref();
        let hangs = opened.and_then(|opened| opened.hangs.as_ref());
        let above = hangs.and_then(|hangs| {
            let held = hangs.under.and_then(|under| Some((under, self.hops.get(&under)?)));
            let under = held.and_then(|(under, hop)| hop.working_on(under));
            let task = hangs.above.first();
            under.or_else(|| {
                let task = task.filter(|task| self.tasks.contains_key(task))?;
                Some(Link { trace: self.tasks[task].trace, span: task_span(*task) })
            })
        });
        // Where the sender said where it comes from, the task goes on from there.
        let parent = match own {
            true => above.filter(|above| above.trace == context.trace),
            false => Some(creation),
        };
        let links = above.filter(|above| parent != Some(*above)).into_iter().collect();
        let opens = offered.opens.is_some();
        let again = offered.redrive_of.as_ref().is_some_and(|redrive| redrive.opened_task);
        Task {
            trace: context.trace,
            parent: parent.map(|parent| parent.span),
            links,
            opened_at: at,
            from: offered.from.clone(),
            to: offered.to.clone(),
            hops: 0,
            opened_by: (opens || again).then_some(id),
            correlation_id: opened.and_then(|opened| opened.correlation_id.clone()),
            last: None,
            letter: None,
        }
    }

    /// How a task ends by an event, if it does.
    fn task_ends(&mut self, sealed: &Sealed) -> Option<Option<&'static str>> {
        let record = &sealed.record;
        let task = self.tasks.get_mut(&record.task_id)?;
        match &record.event {
            Event::Completed { next: None, .. } | Event::TaskCompleted { .. } => Some(None),
            Event::TaskCancelled { .. } => Some(Some("cancelled")),
            Event::Cancelled { .. } if task.opened_by == record.handoff_id => {
                Some(Some("cancelled"))
            }
            Event::Aborted { .. } => Some(Some("aborted")),
            Event::Discarded { .. } if task.letter == record.handoff_id => Some(Some("discarded")),
            Event::DeadLettered { .. } => {
                task.letter = record.handoff_id;
                None
            }
            _ => None,
        }
    }
}

impl Task {
    fn span(self, id: TaskId, at: Timestamp, error: Option<&'static str>) -> Span {
        let mut attributes = vec![
            ("messaging.system", text("tasuki")),
            ("messaging.message.conversation_id", text(id)),
            ("handoff.source", text(&self.from)),
            ("handoff.target", text(label_of(&self.to))),
            ("handoff.hops", whole(self.hops.into())),
        ];
        attributes.extend(tenant(&self.to));
        attributes.extend(error.map(|error| ("error.type", text(error))));
        attributes.extend(self.correlation_id.map(|id| ("handoff.correlation_id", text(id))));
        Span {
            trace: self.trace,
            id: task_span(id),
            parent: self.parent,
            name: format!("task {}", self.to.name()),
            kind: Kind::Internal,
            start: self.opened_at,
            end: at,
            attributes,
            links: self.links,
            marks: Vec::new(),
            marks_dropped: 0,
            error,
        }
    }
}

impl Hop {
    fn sending(&self, id: HandoffId) -> Link {
        Link { trace: self.trace, span: send_span(id) }
    }

    /// The span of whoever works on it.
    fn working_on(&self, id: HandoffId) -> Option<Link> {
        let claim = self.claim.as_ref()?;
        Some(Link { trace: self.trace, span: derived(id, Part::Process, claim.fence) })
    }

    /// Its sending, which its sender began, if it said so, and the broker otherwise.
    fn sent(&self, id: HandoffId, above: Link, before: Option<Link>, at: Timestamp) -> Span {
        let own = self.creation == self.sending(id);
        let kind = if own { Kind::Producer } else { Kind::Client };
        let mut span = self.bare(id, "send", kind, (at, at));
        span.id = send_span(id);
        // In a trace of its own it has nothing above it, and the links lead on.
        let is_here = |link: Link| link.trace == self.trace && link.span != span.id;
        span.parent = match is_here(self.creation) {
            true => Some(self.creation.span),
            false => Some(above).filter(|above| is_here(*above)).map(|above| above.span),
        };
        let others = [Some(above), before, Some(self.creation)];
        for other in others.into_iter().flatten() {
            let is_parent = other.trace == self.trace && Some(other.span) == span.parent;
            let is_self = other == self.sending(id);
            // Its task is found by the trace, where that is the task's.
            let is_task = other == above && above.trace == self.trace;
            if !is_parent && !is_self && !is_task && !span.links.contains(&other) {
                span.links.push(other);
            }
        }
        span.attributes.push(("gen_ai.agent.name", text(&self.from)));
        span.attributes.push(("messaging.operation.type", text("send")));
        span
    }

    /// A part of it that hangs below its sending.
    fn span(
        &self,
        id: HandoffId,
        part: Part,
        number: u64,
        name: &str,
        kind: Kind,
        when: (Timestamp, Timestamp),
    ) -> Span {
        let mut span = self.bare(id, name, kind, when);
        span.id = derived(id, part, number);
        span.parent = Some(send_span(id));
        span
    }

    fn bare(
        &self,
        id: HandoffId,
        name: &str,
        kind: Kind,
        (start, end): (Timestamp, Timestamp),
    ) -> Span {
        let control = if self.awaited { "awaited" } else { "passed" };
        let mut attributes = vec![
            ("messaging.system", text("tasuki")),
            ("messaging.operation.name", text(name)),
            ("messaging.destination.name", text(label_of(&self.to))),
            ("messaging.message.id", text(id)),
            ("messaging.message.conversation_id", text(self.task)),
            ("handoff.source", text(&self.from)),
            ("handoff.target", text(label_of(&self.to))),
            ("handoff.control", text(control)),
            ("handoff.hop", whole(self.hop.into())),
            ("handoff.envelope.sha256", text(self.envelope)),
        ];
        attributes.extend(self.previous.map(|hash| ("handoff.previous.sha256", text(hash))));
        attributes
            .extend(self.correlation_id.as_ref().map(|id| ("handoff.correlation_id", text(id))));
        attributes.extend(tenant(&self.to));
        Span {
            trace: self.trace,
            id: 0,
            parent: None,
            name: format!("{name} {}", self.to.name()),
            kind,
            start,
            end,
            attributes,
            links: Vec::new(),
            marks: Vec::new(),
            marks_dropped: 0,
            error: None,
        }
    }

    fn mark(&mut self, at: Timestamp, name: &str) {
        if self.marks.len() < MARKS_MAX {
            self.marks.push(Mark { at, name: name.to_owned() });
        } else {
            self.marks_dropped += 1;
        }
    }

    /// Gives a span what was noted since the last one.
    fn with_marks(&mut self, mut span: Span) -> Span {
        span.marks = std::mem::take(&mut self.marks);
        span.marks_dropped = std::mem::take(&mut self.marks_dropped);
        span
    }

    fn claimed(&mut self, id: HandoffId, claimed: &Claimed, at: Timestamp, told: &mut Vec<Span>) {
        let fence = claimed.fence.0;
        let waited = (self.since, at);
        let queue = self.span(id, Part::Queue, fence, "queue", Kind::Internal, waited);
        told.push(self.with_marks(queue));
        let claim = Claim { agent: claimed.agent.clone(), attempt: claimed.attempt, fence, at };
        let mut receive = self.span(id, Part::Receive, fence, "receive", Kind::Client, (at, at));
        receive.attributes.push(("messaging.operation.type", text("receive")));
        receive.attributes.extend(claim.attributes());
        receive.links.push(self.sending(id));
        told.push(receive);
        self.claim = Some(claim);
    }

    /// What its holder did, below what made it.
    fn processed(
        &mut self,
        id: HandoffId,
        claim: &Claim,
        at: Timestamp,
        error: Option<&'static str>,
    ) -> Span {
        let worked = (claim.at, at);
        let kind = Kind::Consumer;
        let mut span = self.span(id, Part::Process, claim.fence, "process", kind, worked);
        let sending = self.sending(id);
        span.links.push(sending);
        if self.creation != sending {
            match self.creation.trace == self.trace {
                true => span.parent = Some(self.creation.span),
                false => span.links.push(self.creation),
            }
        }
        span.attributes.push(("messaging.operation.type", text("process")));
        span.attributes.extend(claim.attributes());
        span.fails(error);
        self.with_marks(span)
    }

    fn settled(
        &self,
        id: HandoffId,
        claim: Option<&Claim>,
        name: &'static str,
        at: Timestamp,
        error: Option<&'static str>,
    ) -> Span {
        // What ended without a claim ended once.
        let number = claim.map_or(u64::MAX, |claim| claim.fence);
        let mut span = self.span(id, Part::Settle, number, name, Kind::Client, (at, at));
        span.attributes.push(("messaging.operation.type", text("settle")));
        span.attributes.extend(claim.into_iter().flat_map(Claim::attributes));
        span.links.push(self.sending(id));
        span.fails(error);
        span
    }
}

impl Claim {
    fn attributes(&self) -> [(&'static str, Value); 2] {
        let attempt = ("handoff.attempt", whole(self.attempt.into()));
        [("gen_ai.agent.name", text(&self.agent)), attempt]
    }
}

impl Span {
    fn fails(&mut self, error: Option<&'static str>) {
        self.error = error;
        self.attributes.extend(error.map(|error| ("error.type", text(error))));
    }
}

/// Moves a hop along an event. Returns whether it is followed on.
fn moved(id: HandoffId, hop: &mut Hop, sealed: &Sealed, told: &mut Vec<Span>) -> bool {
    let at = sealed.record.at;
    let event = &sealed.record.event;
    let facts = event.facts();
    if let Event::Claimed(claimed) = event {
        hop.claimed(id, claimed, at, told);
        return true;
    }
    if let Event::Escalated { to, .. } = event {
        hop.to = to.clone();
    }
    if let Some(how) = facts.ends_attempt {
        let claim = hop.claim.take();
        let error = fault(how);
        if let Some(claim) = &claim {
            told.push(hop.processed(id, claim, at, error));
            hop.since = at;
        }
        if let Some(name) = settling(how) {
            told.push(hop.settled(id, claim.as_ref(), name, at, error));
        }
    }
    if let Event::DeadLettered { reason, .. } = event {
        let reason: DeadReason = *reason;
        if hop.since < at {
            let waited = (hop.since, at);
            let mut queue = hop.span(id, Part::Queue, u64::MAX, "queue", Kind::Internal, waited);
            queue.fails(Some(reason.as_str()));
            told.push(hop.with_marks(queue));
        }
        told.push(hop.settled(id, None, "dead_letter", at, Some(reason.as_str())));
    }
    if facts.ends_handoff {
        return false;
    }
    if facts.ends_attempt.is_none() || settling_is_brokers(event) {
        hop.mark(at, facts.kind);
    }
    true
}

/// What nobody settled is told where the work waits again.
fn settling_is_brokers(event: &Event) -> bool {
    matches!(event, Event::LeaseLost { .. })
}

/// The word by which an attempt was settled, if anybody did.
fn settling(how: AttemptEnd) -> Option<&'static str> {
    match how {
        AttemptEnd::Completed => Some("ack"),
        AttemptEnd::FailedRetryable | AttemptEnd::FailedPermanent | AttemptEnd::FailedUnknown => {
            Some("fail")
        }
        AttemptEnd::Declined => Some("decline"),
        AttemptEnd::Released => Some("release"),
        AttemptEnd::Asked => Some("ask"),
        AttemptEnd::PutBack => Some("put_back"),
        AttemptEnd::Cancelled => Some("cancel"),
        AttemptEnd::Aborted => Some("abort"),
        AttemptEnd::LostSilence
        | AttemptEnd::LostHardDeadline
        | AttemptEnd::LostRestored
        | AttemptEnd::LostRevoked => None,
    }
}

fn fault(how: AttemptEnd) -> Option<&'static str> {
    match how {
        AttemptEnd::Completed
        | AttemptEnd::Declined
        | AttemptEnd::Released
        | AttemptEnd::Asked
        | AttemptEnd::PutBack => None,
        AttemptEnd::FailedRetryable
        | AttemptEnd::FailedPermanent
        | AttemptEnd::FailedUnknown
        | AttemptEnd::LostSilence
        | AttemptEnd::LostHardDeadline
        | AttemptEnd::LostRestored
        | AttemptEnd::LostRevoked
        | AttemptEnd::Cancelled
        | AttemptEnd::Aborted => Some(how.as_str()),
    }
}

/// The id of a span, from what it is about.
fn derived(id: HandoffId, part: Part, number: u64) -> u64 {
    let which = send_span(id) ^ ((part as u64) << 56);
    mixed(which.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))).max(1)
}

fn text(value: impl std::fmt::Display) -> Value {
    Value::Text(value.to_string())
}

fn whole(value: u64) -> Value {
    Value::Whole(i64::try_from(value).unwrap_or(i64::MAX))
}

fn tenant(to: &Target) -> Option<(&'static str, Value)> {
    Some(to.tenant()).filter(|it| *it != TENANT_DEFAULT).map(|it| ("handoff.tenant", text(it)))
}
