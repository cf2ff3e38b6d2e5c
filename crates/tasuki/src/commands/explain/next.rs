// SPDX-License-Identifier: Apache-2.0
//! What to do next, as commands to paste.

use serde::Serialize;
use serde_json::Value;
use tasuki_core::event::DeadReason;
use tasuki_core::{Envelope, HandoffId, Target};
use tasuki_protocol as wire;

use super::happened::why_dead;
use crate::client::Client;
use crate::commands::handoff::waits;
use crate::output::printable;

#[derive(Serialize)]
pub(super) struct Step {
    says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

/// Steps in the making: each is a sentence, and the words of a command.
struct Steps<'c>(&'c Client, Vec<Step>);

impl Steps<'_> {
    fn say(&mut self, says: impl Into<String>) {
        self.1.push(Step { says: says.into(), command: None });
    }

    fn step(&mut self, says: impl Into<String>, words: &str) {
        self.1.push(Step { says: says.into(), command: Some(self.0.command(words)) });
    }
}

/// What it waits for. An answer that cannot be had is no reason to say nothing else.
async fn blockers(client: &Client, id: HandoffId) -> Vec<wire::WaitsFor> {
    #[derive(serde::Deserialize)]
    struct Waiting {
        #[serde(default)]
        waits_for: Vec<wire::WaitsFor>,
    }
    let reply = client.get(&format!("/v1/handoffs/{id}"), &[]).await.ok();
    let waiting = reply.and_then(|reply| serde_json::from_str::<Waiting>(&reply).ok());
    waiting.map(|waiting| waiting.waits_for).unwrap_or_default()
}

pub(super) async fn steps(
    client: &Client,
    shown: &wire::TaskWithParts,
    handoff: Option<&wire::Handoff>,
    envelope: Option<&Envelope>,
) -> Vec<Step> {
    let task = &shown.task;
    let mut steps = Steps(client, Vec::new());
    let Some(handoff) = handoff else {
        match task.state.as_str() {
            "open" if shown.children.is_empty() => offer(&mut steps, task),
            "open" => {
                let words = format!("task join {} --wait 60s", task.task_id);
                steps.step("See what the others answer:", &words);
            }
            state => steps.say(format!("Nothing: the task is {state}.")),
        }
        return steps.1;
    };
    let id = handoff.handoff_id;
    for waits_for in blockers(client, id).await {
        steps.say(format!("It waits for {}.", waits(&waits_for)));
    }
    match handoff.state.as_str() {
        "awaiting_approval" => {
            let by = decider(task);
            // Nobody approves what is its own.
            let by = if by == handoff.from_agent.to_string() { "AGENT".to_owned() } else { by };
            steps.step("Let it go ahead:", &format!("handoff approve {id} --by {by}"));
            steps.step("Or say no:", &format!("handoff reject {id} --by {by} --reason '…'"));
        }
        "pending" => {
            let words = match &handoff.to {
                Target::Agent(agent) => format!("handoff claim --agent {agent} --id {id}"),
                Target::Capability(it) => {
                    format!("handoff claim --agent AGENT --capability {it} --id {id}")
                }
            };
            steps.step("Its receiver claims it:", &words);
            steps.step("Or wait until it has:", &format!("handoff wait {id} --until claimed"));
        }
        "input_required" => {
            steps.step("Read what it asks:", &format!("question list --task {}", task.task_id));
            let by = decider(task);
            steps.step("Answer it:", &format!("question answer {id} --by {by} --text '…'"));
        }
        "answered" => {
            let asker = handoff.kept_for.as_ref().map_or("AGENT".into(), |it| it.agent.to_string());
            let words = format!("handoff claim --agent {asker} --id {id}");
            steps.step("Whoever asked claims it again:", &words);
        }
        "scheduled" | "claimed" | "in_progress" => {
            steps.step("Nothing but wait:", &format!("handoff wait {id}"));
        }
        "dead_lettered" => dead(&mut steps, task, handoff, envelope).await,
        "completed" => after(&mut steps, shown, handoff),
        state => steps.say(format!("Nothing: it is {state}.")),
    }
    for taint in &task.taints {
        let by = decider(task);
        steps.step(
            format!("It is built on {}, which no longer holds. If it may go on:", taint.source),
            &format!(
                "task clear-taint {} --by {by} --source {} --reason '…'",
                task.task_id, taint.source
            ),
        );
    }
    steps.1
}

fn decider(task: &wire::Task) -> String {
    task.coordinator.as_ref().unwrap_or(&task.opened_by).to_string()
}

fn offer(steps: &mut Steps<'_>, task: &wire::Task) {
    let words = format!(
        r#"handoff offer --from {} --task {} --to AGENT --payload '{{"type":"…"}}'"#,
        task.owner, task.task_id
    );
    steps.step(format!("{} has the task; it can hand it on:", task.owner), &words);
}

fn after(steps: &mut Steps<'_>, shown: &wire::TaskWithParts, handoff: &wire::Handoff) {
    let task = &shown.task;
    match (task.live_handoff, task.state.as_str()) {
        (Some(live), _) => steps.step("The task goes on:", &format!("explain {live}")),
        (None, "open") => offer(steps, task),
        (None, "dead_lettered") => {
            steps.step("The task stopped later on:", &format!("explain {}", task.task_id));
        }
        (None, state) => {
            steps.say(format!("Nothing: the task is {state}."));
            let words = format!("handoff show {}", handoff.handoff_id);
            steps.step("The result is here:", &words);
        }
    }
}

async fn dead(
    steps: &mut Steps<'_>,
    task: &wire::Task,
    handoff: &wire::Handoff,
    envelope: Option<&Envelope>,
) {
    let id = handoff.handoff_id;
    let Some(letter) = &handoff.dead_letter else { return };
    if let Some(to) = letter.redriven_to {
        return steps.step("It was sent on its way again:", &format!("explain {to}"));
    }
    if letter.discarded {
        return steps.say("Nothing: it was put away.");
    }
    let reason: Option<DeadReason> = letter.reason.parse().ok();
    let why = reason.map_or(letter.reason.as_str(), |reason| why_dead(reason));
    steps.say(format!("It stopped because {why}."));
    if let Some(report) = last_report(steps.0, handoff).await {
        let said = |name: &str| report[name].as_str().map(str::to_owned);
        if let Some(message) = said("message") {
            steps.say(format!("Its last report: {message}"));
        }
        if let Some(hint) = said("hint") {
            steps.say(format!("What might mend it: {hint}"));
        }
    }
    let by = decider(task);
    let redrive = format!("dead-letter redrive {id} --by {by}");
    let reroute = format!("dead-letter reroute {id} --by {by} --to AGENT");
    let amend = format!("dead-letter amend {id} --by {by} --ask '…'");
    let answer = format!("dead-letter answer {id} --by {by} --decision '…'");
    let discard = format!("dead-letter discard {id} --by {by} --reason '…'");
    let question = envelope.and_then(|it| it.parts.open_decisions.first());
    match (reason, question) {
        (Some(DeadReason::PermanentFailure), Some(question)) => {
            steps.step(format!("Answer what is open ({}):", question.question), &answer);
            steps.step("Or, once it is mended, send it again:", &redrive);
        }
        (Some(DeadReason::PermanentFailure), None) => {
            steps.step("Once it is mended, send it again:", &redrive);
            steps.step("Or let it go on with a decision of yours:", &answer);
        }
        (
            Some(
                DeadReason::Rejected
                | DeadReason::HopLimit
                | DeadReason::Cycle
                | DeadReason::BudgetExhausted
                | DeadReason::Deadlock,
            ),
            _,
        ) => {
            steps.step("Ask for something else:", &amend);
            steps.step("Or put it away:", &discard);
        }
        (Some(DeadReason::Declined | DeadReason::Unacknowledged | DeadReason::Poison), _) => {
            steps.step("Send it to somebody else:", &reroute);
            steps.step("Or to the same once more:", &redrive);
        }
        (Some(DeadReason::AttemptsExhausted | DeadReason::Expired) | None, _) => {
            steps.step("Send it again:", &redrive);
            steps.step("Or put it away:", &discard);
        }
    }
}

/// What the last attempt reported. Who may not see dead letters is told the rest all the same.
async fn last_report(client: &Client, handoff: &wire::Handoff) -> Option<Value> {
    let path = format!("/v1/dead-letters/{}", handoff.handoff_id);
    let reply = client.get(&path, &[]).await.ok()?;
    let mut letter: Value = serde_json::from_str(&reply).ok()?;
    let reports = letter["reports"].as_array_mut()?;
    reports.pop().map(|mut report| report["report"].take())
}

pub(super) fn text(steps: &[Step]) -> String {
    let lines = steps.iter().map(|step| {
        let says = printable(&step.says);
        match &step.command {
            Some(command) => format!("{says}\n  {}\n", printable(command)),
            None => format!("{says}\n"),
        }
    });
    lines.collect()
}
