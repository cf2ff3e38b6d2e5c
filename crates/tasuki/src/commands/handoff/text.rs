// SPDX-License-Identifier: Apache-2.0
//! Handoffs as people read them.

use serde::Deserialize;
use serde_json::Value;
use tasuki_core::Target;
use tasuki_protocol as wire;

use crate::client::Client;
use crate::output::{Facts, printable, span, table};

/// A handoff with its result. `wire::HandoffWithResult` is for writing: what is flattened cannot be
/// read back as it was.
#[derive(Deserialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    pub(super) handoff: wire::Handoff,
    output: Option<Value>,
    #[serde(default)]
    waits_for: Vec<wire::WaitsFor>,
}

impl Shown {
    pub(super) fn text(&self, client: &Client) -> String {
        let output = self.output.as_ref();
        let result = output.map(|output| output["payload"].to_string());
        let listed = |name: &str, each: fn(&Value) -> String| {
            let entries = output?[name].as_array().filter(|entries| !entries.is_empty())?;
            Some(entries.iter().map(each).collect::<Vec<_>>().join("\n"))
        };
        let words = |entry: &Value| entry.as_str().unwrap_or_default().to_owned();
        let criterion = |entry: &Value| {
            let met = if entry["met"] == true { "met" } else { "not met" };
            format!("{met}: {}", entry["criterion"].as_str().unwrap_or_default())
        };
        // Who has it, or should take it, is told above.
        let holds_back = |one: &&wire::WaitsFor| match one {
            wire::WaitsFor::Approval { .. }
            | wire::WaitsFor::Task { .. }
            | wire::WaitsFor::Time { .. }
            | wire::WaitsFor::Paused { .. }
            | wire::WaitsFor::Letter { .. }
            | wire::WaitsFor::Turn { .. }
            | wire::WaitsFor::Breaker { .. } => true,
            wire::WaitsFor::Claim { .. }
            | wire::WaitsFor::Holder { .. }
            | wire::WaitsFor::Decision { .. } => false,
        };
        let held: Vec<_> = self.waits_for.iter().filter(holds_back).map(waits).collect();
        let facts = details(&self.handoff)
            .maybe("waits for", (!held.is_empty()).then(|| held.join("\n")))
            .maybe("result", result)
            .maybe("verified", listed("verified", words))
            .maybe("declared", listed("declared", criterion))
            .maybe("gaps", listed("gaps", words));
        let id = self.handoff.handoff_id;
        let next = match self.handoff.state.as_str() {
            "dead_lettered" => Some(format!("dead-letter show {id}")),
            "completed" | "failed" | "cancelled" => None,
            "awaiting_approval" => Some(format!("handoff approve {id} --by AGENT")),
            "input_required" => Some(format!("question answer {id} --by AGENT --text TEXT")),
            _ => Some(format!("handoff wait {id}")),
        };
        let facts = facts.maybe("next", next.map(|words| client.command(&words)));
        format!("{}{}", facts.text(), attempts_of(&self.handoff))
    }
}

pub(in crate::commands) fn listed(handoffs: &[wire::Handoff]) -> String {
    let rows = handoffs.iter().map(|handoff| {
        [
            handoff.handoff_id.to_string(),
            handoff.state.clone(),
            handoff.from_agent.to_string(),
            target(&handoff.to),
            handoff.priority.to_string(),
            handoff.attempts.len().to_string(),
            handoff.offered_at.to_string(),
        ]
    });
    table(["handoff", "state", "from", "to", "priority", "attempts", "offered"], rows)
}

pub(in crate::commands) fn target(target: &Target) -> String {
    match target {
        Target::Agent(agent) => format!("agent {agent}"),
        Target::Capability(capability) => format!("capability {capability}"),
    }
}

pub(in crate::commands) fn details(handoff: &wire::Handoff) -> Facts {
    let holder = handoff.holder.as_ref().map(|holder| {
        format!(
            "{} (fence {}; {} of the lease left)",
            holder.agent,
            holder.fence,
            span(holder.lease_left_ms)
        )
    });
    let dead = handoff.dead_letter.as_ref().map(|dead| match dead.redriven_to {
        Some(to) => format!("{}, sent again as {to}", dead.reason),
        None if dead.discarded => format!("{}, discarded", dead.reason),
        None => dead.reason.clone(),
    });
    let asks = handoff.question.as_ref().map(|it| {
        format!("{} ({}; {} left to answer)", it.asked_by, it.kind, span(it.answer_left_ms))
    });
    let kept = handoff.kept_for.as_ref().map(|it| format!("{} ({})", it.agent, span(it.left_ms)));
    let pieces: Vec<_> = handoff.artifacts.iter().map(ToString::to_string).collect();
    let counts = (handoff.failures + handoff.losses > 0)
        .then(|| format!("{} failed, {} lost the lease", handoff.failures, handoff.losses));
    let declined: Vec<_> = handoff.declined_by.iter().map(ToString::to_string).collect();
    let lifted: Vec<_> =
        handoff.lifted.iter().map(|one| format!("{} (by {})", one.constraint, one.by)).collect();
    let missed: Vec<_> = handoff.trim_regret.iter().map(ToString::to_string).collect();
    let missed = format!("{} fetched after all: {}", missed.len(), missed.join(", "));
    Facts::default()
        .with("handoff", handoff.handoff_id)
        .with("task", handoff.task_id)
        .with("state", &handoff.state)
        .with("status", &handoff.status)
        .with("from", &handoff.from_agent)
        .with("to", target(&handoff.to))
        .maybe("holder", holder)
        .maybe("asks", asks)
        .maybe("kept for", kept)
        .maybe("artifacts", (!pieces.is_empty()).then(|| pieces.join(", ")))
        .with("hop", handoff.hop)
        .with("priority", handoff.priority)
        .maybe("ordering key", handoff.ordering_key.as_ref())
        .with("offered", handoff.offered_at)
        .maybe("due", handoff.due_at)
        .with("expires", handoff.expires_at)
        .maybe("ended", handoff.ended_at)
        .maybe("retracted", handoff.retracted.then_some("what is built on its result is tainted"))
        .maybe("attempts", counts)
        .maybe("declined by", (!declined.is_empty()).then(|| declined.join(", ")))
        .maybe("lifted since", (!lifted.is_empty()).then(|| lifted.join("\n")))
        .maybe("trimmed", (!handoff.trim_regret.is_empty()).then_some(missed))
        .maybe("dead letter", dead)
        .maybe("sends again", handoff.redrive_of)
}

pub(in crate::commands) fn attempts_of(handoff: &wire::Handoff) -> String {
    if handoff.attempts.is_empty() {
        return String::new();
    }
    let rows = handoff.attempts.iter().map(|attempt| {
        let late = if attempt.late { " (a late report was refused)" } else { "" };
        let ended = attempt.ended.as_deref().unwrap_or("under way");
        [
            attempt.number.to_string(),
            attempt.agent.to_string(),
            attempt.claimed_at.to_string(),
            format!("{ended}{late}"),
        ]
    });
    format!("\n{}", table(["attempt", "agent", "claimed", "ended"], rows))
}

pub(in crate::commands) fn pretty(value: &Value) -> String {
    printable(&serde_json::to_string_pretty(value).unwrap_or_default())
}

/// What work waits for, in words.
pub(in crate::commands) fn waits(one: &wire::WaitsFor) -> String {
    match one {
        wire::WaitsFor::Approval { approvers, taints } => {
            let names: Vec<_> = approvers.iter().map(ToString::to_string).collect();
            let who = if names.is_empty() { "somebody".into() } else { names.join(" or ") };
            match taints.first() {
                Some(source) => format!("{who} to approve it, because {source} no longer holds"),
                None => format!("{who} to approve it"),
            }
        }
        wire::WaitsFor::Task { task_id, state, need } => {
            format!("{task_id}, which is {state} ({need} must have a result)")
        }
        wire::WaitsFor::Time { until } => format!("{until}"),
        wire::WaitsFor::Breaker { target: to, breaker, until } => {
            let until = until.map_or_else(String::new, |until| format!(" until {until}"));
            format!("{}, whose breaker is {breaker}{until}", target(to))
        }
        wire::WaitsFor::Paused { target: to, until } => {
            let until = until.map_or_else(String::new, |until| format!(" until {until}"));
            format!("{}, which is paused{until}", target(to))
        }
        wire::WaitsFor::Letter { handoff_id } => {
            format!("a decision on dead letter {handoff_id} above it")
        }
        wire::WaitsFor::Turn { first } => {
            format!("{first}, which was offered before it with the same ordering key")
        }
        wire::WaitsFor::Claim { target: to, listening } => {
            let there = if *listening { "" } else { "; nobody is there yet" };
            format!("{} to claim it{there}", target(to))
        }
        wire::WaitsFor::Holder { agent } => format!("{agent} to finish"),
        wire::WaitsFor::Decision { reason } => format!("a decision: {reason}"),
    }
}
