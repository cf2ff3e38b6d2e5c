// SPDX-License-Identifier: Apache-2.0
//! `tasuki envelope`: what exactly was passed, and what changed from one hop to the next.

use clap::{Args, Subcommand};
use tasuki_core::assembly::Tokenizer;
use tasuki_core::envelope::diff::{Change, Diff, diff};
use tasuki_core::envelope::{Envelope, chain};
use tasuki_core::{Body, HandoffId, TaskId};
use tasuki_protocol as wire;

use crate::client::{Client, Connect};
use crate::exit::Exit;
use crate::output::{Facts, Output, print, table};

#[derive(Args)]
pub(crate) struct EnvelopeArgs {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show the envelope of a handoff, exactly as it was stored
    Show(Named),
    /// Show what changed between the envelopes of two handoffs, by their parts
    Diff(Two),
}

#[derive(Args)]
struct Named {
    /// The handoff's id
    handoff: HandoffId,
}

#[derive(Args)]
struct Two {
    /// The handoff with the earlier envelope
    old: HandoffId,
    /// The handoff with the later one
    new: HandoffId,
    /// In whose tokens sizes are counted: a tokenizer or a model
    #[arg(long, value_name = "NAME", default_value = "o200k_base")]
    tokenizer: String,
}

impl EnvelopeArgs {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = &self.connect.client()?;
        match self.verb {
            Verb::Show(named) => {
                let (envelope, body) = fetch(client, named.handoff).await?;
                if output.json {
                    print(body.text())?;
                } else {
                    print(&serde_json::to_string_pretty(&envelope)?)?;
                }
            }
            Verb::Diff(two) => {
                let (old, _) = fetch(client, two.old).await?;
                let (new, _) = fetch(client, two.new).await?;
                let tokenizer = Tokenizer::named(&two.tokenizer);
                output.found(&diff(&old, &new, tokenizer), differences)?;
            }
        }
        Ok(Exit::Done)
    }
}

async fn fetch(client: &Client, handoff: HandoffId) -> anyhow::Result<(Envelope, Body)> {
    let text = client.get(&format!("/v1/handoffs/{handoff}/envelope"), &[]).await?;
    let envelope = serde_json::from_str(&text)?;
    let body = Body::stored(text).ok_or_else(|| anyhow::anyhow!("the envelope is no JSON"))?;
    Ok((envelope, body))
}

/// The envelopes of a task, from the first hop to the last. What was redriven is there once.
pub(super) async fn chain_of(
    client: &Client,
    task: TaskId,
) -> anyhow::Result<Vec<(Envelope, Body)>> {
    let reply = client.get(&format!("/v1/tasks/{task}"), &[]).await?;
    let shown: wire::TaskWithParts = serde_json::from_str(&reply)?;
    let mut chain: Vec<(Envelope, Body)> = Vec::new();
    for handoff in &shown.handoffs {
        let found = fetch(client, handoff.handoff_id).await?;
        if !chain.iter().any(|(_, body)| body.hash == found.1.hash) {
            chain.push(found);
        }
    }
    chain.sort_by_key(|(envelope, _)| envelope.hop);
    Ok(chain)
}

fn differences(diff: &Diff) -> String {
    let mut facts = Facts::default()
        .with("hops", format!("{} to {}", diff.from_hop, diff.to_hop))
        .with("linked", if diff.linked { "yes" } else { "no" })
        .with("intent", if diff.same_intent { "the same" } else { "another" })
        .with("payload", if diff.same_payload { "the same" } else { "another" });
    let changes = [
        ("constraints", &diff.constraints),
        ("lifted", &diff.lifted),
        ("decisions", &diff.decisions),
        ("open decisions", &diff.open_decisions),
        ("gaps", &diff.gaps),
        ("memory refs", &diff.memory_refs),
        ("history", &diff.history),
    ];
    for (name, change) in changes {
        facts = facts.maybe(name, (!change.is_empty()).then(|| told(change)));
    }
    let context: Vec<_> = diff
        .context
        .iter()
        .map(|moved| format!("{}: {:?} to {:?}", moved.id, moved.from, moved.to).to_lowercase())
        .collect();
    let facts = facts
        .maybe("context", (!context.is_empty()).then(|| context.join("; ")))
        .maybe("also", (!diff.other.is_empty()).then(|| diff.other.join(", ")));
    let row = |part: &str, from: u64, to: u64| {
        let sign = if to < from { '-' } else { '+' };
        [part.to_owned(), from.to_string(), to.to_string(), format!("{sign}{}", to.abs_diff(from))]
    };
    let all = row("all of it", diff.tokens_from, diff.tokens_to);
    let rows = diff.tokens.iter().map(|one| row(&one.part, one.from, one.to)).chain([all]);
    format!("{}\n{}", facts.text(), table(["tokens of", "before", "after", "change"], rows))
}

fn told(change: &Change) -> String {
    let added = change.added.iter().map(|text| format!("+ {text}"));
    let removed = change.removed.iter().map(|text| format!("- {text}"));
    added.chain(removed).collect::<Vec<_>>().join("\n")
}

/// Shows what each hop of a task kept.
pub(super) async fn show_chain(
    client: &Client,
    output: Output,
    task: TaskId,
) -> anyhow::Result<Exit> {
    let reports = chain::report(&chain_of(client, task).await?);
    let whole = reports.iter().all(chain::HopReport::is_whole);
    output.found(&reports, |reports| {
        let rows = reports.iter().map(|report| {
            let kept = match report.facts {
                0 => "-".to_owned(),
                facts => format!("{} of {facts}", report.facts_kept),
            };
            [
                report.hop.to_string(),
                report.from_agent.clone(),
                if report.is_whole() { "whole" } else { "BROKEN" }.to_owned(),
                report.constraints.to_string(),
                report.gaps.to_string(),
                kept,
                report.bytes.to_string(),
            ]
        });
        let mut text =
            table(["hop", "from", "chain", "constraints", "gaps", "facts kept", "bytes"], rows);
        for report in reports {
            for lost in report.lost_constraints.iter().chain(&report.altered_constraints) {
                text += &format!("hop {} does not carry: {lost}\n", report.hop);
            }
        }
        text
    })?;
    Ok(if whole { Exit::Done } else { Exit::Refused })
}

/// Says which hop of a task lost a fact.
pub(super) async fn bisect(
    client: &Client,
    output: Output,
    task: TaskId,
    fact: &str,
) -> anyhow::Result<Exit> {
    let chain = chain_of(client, task).await?;
    let found = chain::bisect(&chain, fact);
    let from = |hop: u32| {
        let hop = chain.iter().find(|(envelope, _)| envelope.hop == hop);
        hop.map_or_else(String::new, |(envelope, _)| envelope.from_agent.to_string())
    };
    let text = match (found.appears, found.lost) {
        (None, _) => format!("no envelope of this task has {fact:?}"),
        (Some(first), None) => {
            format!("{fact:?} is there from hop {first} (by {}) to the last", from(first))
        }
        (Some(first), Some(lost)) => format!(
            "{fact:?} is there from hop {first} (by {}) and lost at hop {lost} (by {})",
            from(first),
            from(lost)
        ),
    };
    output.found(&found, |_| text)?;
    Ok(if found.appears.is_some() { Exit::Done } else { Exit::Nothing })
}
