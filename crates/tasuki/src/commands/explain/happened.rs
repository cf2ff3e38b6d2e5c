// SPDX-License-Identifier: Apache-2.0
//! What happened, in words.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use tasuki_core::event::{Closed, DeadReason, LossCause, Offered};
use tasuki_core::join::CameTo;
use tasuki_core::{Actor, AgentId, Event, Fence, HandoffId, Record, TaskId, Timestamp};

use crate::client::Client;
use crate::commands::handoff::target;
use crate::output::{printable, span};

#[derive(Serialize)]
pub(super) struct Happening {
    at: Timestamp,
    /// Milliseconds since the first of the list.
    after_ms: u64,
    kind: String,
    by: Actor,
    #[serde(skip_serializing_if = "Option::is_none")]
    handoff_id: Option<HandoffId>,
    says: String,
}

/// The events of a task, or those of them that one handoff is about.
pub(super) async fn timeline(
    client: &Client,
    task: TaskId,
    only: Option<HandoffId>,
) -> anyhow::Result<Vec<Happening>> {
    let reply = client.get(&format!("/v1/tasks/{task}/events"), &[]).await?;
    let mut reply: Value = serde_json::from_str(&reply)?;
    let Some(Value::Array(events)) = reply.get_mut("events").map(Value::take) else {
        anyhow::bail!("the broker's answer has no events");
    };
    let mut holders = Holders::default();
    let mut found: Vec<Happening> = Vec::new();
    for mut event in events {
        let kind = event["record"]["kind"].as_str().unwrap_or_default().to_owned();
        let record: Record = serde_json::from_value(event["record"].take())?;
        if let Event::Claimed(claimed) = &record.event {
            holders.0.insert(claimed.fence, claimed.agent.clone());
        }
        let about = record.handoff_id.is_none_or(|id| only.is_none_or(|only| only == id));
        if !about {
            continue;
        }
        let first = found.first().map_or(record.at, |first| first.at);
        found.push(Happening {
            at: record.at,
            after_ms: record.at.ms_after(first),
            kind,
            says: words(&record, &event["body"], &holders),
            handoff_id: record.handoff_id,
            by: record.actor,
        });
    }
    Ok(found)
}

/// Who held which claim.
#[derive(Default)]
struct Holders(BTreeMap<Fence, AgentId>);

impl Holders {
    fn of(&self, fence: Fence) -> String {
        self.0.get(&fence).map_or_else(|| format!("fence {fence}"), ToString::to_string)
    }
}

fn words(record: &Record, body: &Value, holders: &Holders) -> String {
    let by = match &record.actor {
        Actor::Agent(agent) => agent.to_string(),
        Actor::Broker => "the broker".to_owned(),
    };
    // What was erased, or needs no text, is not there.
    let because = body["text"].as_str().map(|text| format!(": {text}")).unwrap_or_default();
    match &record.event {
        Event::TaskOpened(opened) => format!("{} opened the task", opened.owner),
        Event::TaskCancelled { .. } => format!("{by} cancelled the task{because}"),
        Event::TaskHeld { letter } => {
            format!("it is on hold until somebody has decided on {letter} above it")
        }
        Event::TaskResumed { .. } => "it goes on: what is above it was decided on".to_owned(),
        Event::Spent(spent) => {
            format!("{} tokens were used for {}", spent.used.tokens, spent.by)
        }
        Event::TransferOffered(offered) => offer(offered, "handed the task to"),
        Event::CallOffered(offered) => offer(offered, "asked for work from"),
        Event::Countered(it) => format!("{} would take it on other terms{because}", it.agent),
        Event::CounterAccepted { agent, .. } => format!("{by} took the terms of {agent}"),
        Event::CounterRefused { agent } => format!("{by} refused the terms of {agent}"),
        Event::Approved => format!("{by} approved it"),
        Event::Delivered { agent } => format!("{agent} looked at it without claiming"),
        Event::Readied => "its time came, it can be claimed".to_owned(),
        Event::WaitOver => {
            "the time is over in which it waits, it goes on with what there is".to_owned()
        }
        Event::Joined { members } => {
            let done = members.iter().filter(|it| it.came_to == CameTo::Completed).count();
            format!("it goes on with {done} of {} results that it waited for", members.len())
        }
        Event::PassedTo { task } => format!("its result was given to {task}, which waited for it"),
        Event::Claimed(claimed) => format!(
            "{} claimed it and owns the task (attempt {}, lease {})",
            claimed.agent,
            claimed.attempt,
            span(claimed.lease_ms)
        ),
        Event::Started => format!("{by} began to work"),
        Event::Acknowledged(it) => format!("{by} signed that it {} it", it.act),
        Event::Progressed { percent, .. } => {
            let percent = percent.map(|percent| format!(", {percent} %")).unwrap_or_default();
            format!("{by} reported progress{percent}{because}")
        }
        Event::Asked(asked) => {
            format!("{by} asked ({}), and waits for the answer{because}", asked.kind)
        }
        Event::Answered { .. } => format!("{by} answered: {}", body["answer"]),
        Event::AnswerDefaulted { .. } => "nobody answered in time, the default holds".to_owned(),
        Event::KeepEnded => "whoever asked did not come back, anybody may claim it".to_owned(),
        Event::MessageSent { number, .. } => {
            format!("{by} sent message {number} to its holder{because}")
        }
        Event::MessagesAcknowledged { up_to, .. } => {
            format!("{by} took note of the messages up to {up_to}")
        }
        Event::Attached(it) => {
            format!("{by} attached {} ({}, version {})", it.name, it.kind, it.version)
        }
        Event::PutBack { until, .. } => {
            format!("{by} put it back for {}{because}", span(until.ms_after(record.at)))
        }
        Event::Completed { next, .. } => match next {
            Some(next) => format!("{by} completed it, and the task goes on as {next}"),
            None => format!("{by} completed it, and the task with it"),
        },
        Event::AttemptFailed { class, .. } => {
            let part = |name: &str| body[name].as_str().unwrap_or("?").to_owned();
            format!("{by} failed ({class}, {}): {}", part("type"), part("message"))
        }
        Event::Declined { agent, .. } => format!("{agent} declined it{because}"),
        Event::Released { fence } => format!("{} gave it back unfinished", holders.of(*fence)),
        Event::LeaseLost { fence, cause } => lost(&holders.of(*fence), *cause),
        Event::RetryScheduled { due } => {
            format!("it will be tried again after {}", span(due.ms_after(record.at)))
        }
        Event::Expired => "its deadline passed".to_owned(),
        Event::DeadLettered { reason, .. } => {
            format!("it became a dead letter: {}", why_dead(*reason))
        }
        Event::Escalated { to, reason, .. } => {
            format!("{} is asked instead: {}", target(to), why_dead(*reason))
        }
        Event::Retracted { .. } => format!("{by} took the result back{because}"),
        Event::Tainted { source, .. } => format!("it is built on {source}, which no longer holds"),
        Event::TaintCleared { source, .. } => {
            format!("{by} lets it go on although {source} no longer holds{because}")
        }
        Event::Cancelled { .. } => format!("{by} cancelled it{because}"),
        Event::Aborted { .. } => format!("{by} ended it as failed{because}"),
        Event::LateReport { fence, .. } => {
            format!("a late report of {} was refused, and kept in the log", holders.of(*fence))
        }
        Event::Redriven { to, .. } => format!("{by} sent it on its way again as {to}"),
        Event::ReviewTaken { by, .. } => format!("{by} took it to decide on it"),
        Event::LetterClosed { because } => match because {
            Closed::TaskOfferedAnew => {
                "the dead letter is closed: the task was offered anew".into()
            }
            Closed::TaskCancelled => "the dead letter is closed: the task was cancelled".into(),
            Closed::TaskCompleted => "the dead letter is closed: the task was completed".into(),
        },
        Event::TaskCompleted { result: Some(_) } => format!("{by} completed the task"),
        Event::TaskCompleted { result: None } => {
            "everybody who was told came to an end, and the task with them".into()
        }
        Event::ReviewReleased => format!("{by} left the decision to others again"),
        Event::Reserved { resources, .. } => format!("{by} reserved {}", resources.len()),
        Event::Unreserved { resources } => format!("{by} freed {}", resources.len()),
        Event::Discarded { .. } => format!("{by} put the dead letter away{because}"),
        Event::Erased(_) => format!("{by} erased what it carried{because}"),
        Event::ConstraintLifted { constraint, .. } => {
            format!("{by} lifted the constraint {constraint}{because}")
        }
        Event::TrimFetched { agent, memory } => {
            format!("{agent} fetched {memory}, of which it had got less")
        }
        Event::ClaimTold { .. } => "what the claim was told was read for the first time".to_owned(),
        Event::EpochRaised { .. }
        | Event::RegistryChanged(_)
        | Event::DocumentWritten(_)
        | Event::DocumentMarked { .. }
        | Event::DocumentSuperseded { .. }
        | Event::DocumentDeleted { .. } => "something of the store itself changed".to_owned(),
    }
}

fn offer(offered: &Offered, verb: &str) -> String {
    let Offered { from, to, hop, .. } = offered;
    let instead = match (&offered.redrive_of, offered.amends) {
        (Some(dead), _) => format!(", again after {}", dead.handoff_id),
        (None, Some(dead)) => format!(", with a new envelope in place of {dead}"),
        (None, None) => String::new(),
    };
    format!("{from} {verb} {} (hop {hop}{instead})", target(to))
}

fn lost(holder: &str, cause: LossCause) -> String {
    match cause {
        LossCause::Silence => format!("{holder} sent no heartbeat, its lease ran out"),
        LossCause::HardDeadline => format!("{holder} took longer than it may, its claim ended"),
        LossCause::Restored => format!("the store was restored, the claim of {holder} ended"),
        LossCause::Revoked => format!("{holder} is no longer known, its claim ended"),
    }
}

pub(super) fn why_dead(reason: DeadReason) -> &'static str {
    match reason {
        DeadReason::AttemptsExhausted => "every attempt failed",
        DeadReason::PermanentFailure => "its receiver says that no attempt can succeed",
        DeadReason::Poison => "those who claimed it kept vanishing",
        DeadReason::Declined => "everybody it was for declined",
        DeadReason::Expired => "its deadline passed",
        DeadReason::Rejected => "an approver said no",
        DeadReason::Unacknowledged => "nobody claimed it in time",
        DeadReason::HopLimit => "the chain has as many hops as it may have",
        DeadReason::Deadlock => "agents waited for each other in a circle",
        DeadReason::BudgetExhausted => "the task has nothing left to spend",
        DeadReason::Cycle => "the same work came to the same target before",
    }
}

pub(super) fn text(happened: &[Happening]) -> String {
    let width = happened.iter().map(|one| span(one.after_ms).len()).max().unwrap_or(0) + 1;
    let first = happened.first().map(|one| format!("from {}\n", one.at)).unwrap_or_default();
    let lines = happened.iter().map(|one| {
        // What an agent wrote cannot look like another entry: no line of it begins where they do.
        let says = printable(&one.says).replace('\n', &format!("\n{:>width$}  | ", ""));
        format!("{:>width$}  {says}\n", format!("+{}", span(one.after_ms)))
    });
    first + &lines.collect::<String>()
}
