// SPDX-License-Identifier: Apache-2.0
//! `tasuki handoff`: everything that happens to one hop of a task.

mod assemble;
mod claim;
mod held;
mod look;
mod nearest;
mod offer;
mod review;
mod talk;
mod text;

use clap::{Args, Subcommand};
use serde::Serialize;
use tasuki_core::HandoffId;
use tasuki_protocol as wire;

pub(super) use look::wait;
pub(super) use text::{attempts_of, details, listed, pretty, target, waits};

use crate::client::{Client, Connect};
use crate::exit::Exit;
use crate::output::{Facts, Output};

#[derive(Args)]
pub(crate) struct Handoff {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Offer work to an agent, or to any agent with a capability
    Offer(Box<offer::Offer>),
    /// Put together what a receiver gets to read, within its token budget
    Assemble(Box<assemble::Assemble>),
    /// Claim the next work for an agent
    Claim(claim::Claim),
    /// Look at what waits for an agent without claiming it
    Peek(claim::Peek),
    /// Say that work on a claimed handoff has begun
    Start(held::Start),
    /// Extend the lease of a claim
    Heartbeat(held::Heartbeat),
    /// Report progress, which also extends the lease
    Progress(held::Progress),
    /// Complete a handoff with its result
    Complete(held::Complete),
    /// Report that an attempt failed
    Fail(held::Fail),
    /// Decline a handoff, claimed or not
    Decline(held::Decline),
    /// Give a claimed handoff back unfinished
    Release(held::Held),
    /// Ask a question and wait for the answer without holding the claim
    Ask(talk::Ask),
    /// Send a word to whoever holds the work, or list what was said
    Message(talk::Message),
    /// Attach a piece of work that is there already
    Attach(talk::Attach),
    /// List what was attached to a handoff
    Artifacts(talk::Artifacts),
    /// Give claimed work back until a time, without using up an attempt
    PutBack(talk::PutBack),
    /// Cancel a handoff that is not at its end
    Cancel(review::Decide),
    /// End a handoff and its task as failed
    Abort(review::Decide),
    /// Let a handoff go ahead that waits for approval
    Approve(review::Approve),
    /// Reject a handoff that waits for approval, with a reason
    Reject(review::Reject),
    /// Take files or other resources for the holder, as long as its claim holds
    Reserve(held::Reserve),
    /// Give resources up before the claim ends
    Unreserve(held::Reserve),
    /// Take back what a completed handoff produced; what is built on it is tainted
    Retract(review::Retract),
    /// Say on which other terms an agent would take a handoff
    Counter(review::Counter),
    /// Accept or refuse an agent's counter-offer
    Settle(review::Settle),
    /// Remove everything that a handoff carried, for good
    Erase(review::Erase),
    /// Show a handoff, its attempts and its result
    Show(look::Show),
    /// Show what a handoff carries, exactly as it was stored
    Envelope(look::Show),
    /// List handoffs, newest first
    List(look::List),
    /// Show what can be started now, and what holds back the rest
    Ready(look::Ready),
    /// Wait until handoffs are claimed or at their end
    Wait(look::Wait),
}

impl Handoff {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = &self.connect.client()?;
        match self.verb {
            Verb::Offer(offer) => offer.run(client, output).await,
            Verb::Assemble(assemble) => assemble.run(client, output).await,
            Verb::Claim(claim) => claim.run(client, output).await,
            Verb::Peek(peek) => peek.run(client, output).await,
            Verb::Start(start) => start.run(client, output).await,
            Verb::Heartbeat(heartbeat) => heartbeat.run(client, output).await,
            Verb::Ask(ask) => ask.run(client, output).await,
            Verb::Message(message) => message.run(client, output).await,
            Verb::Attach(attach) => attach.run(client, output).await,
            Verb::Artifacts(artifacts) => artifacts.run(client, output).await,
            Verb::PutBack(put_back) => put_back.run(client, output).await,
            Verb::Release(held) => held.release(client, output).await,
            Verb::Progress(progress) => progress.run(client, output).await,
            Verb::Complete(complete) => complete.run(client, output).await,
            Verb::Fail(fail) => fail.run(client, output).await,
            Verb::Decline(decline) => decline.run(client, output).await,
            Verb::Cancel(decide) => decide.run("cancel", client, output).await,
            Verb::Abort(decide) => decide.run("abort", client, output).await,
            Verb::Approve(approve) => approve.run("approve", client, output).await,
            Verb::Reject(reject) => reject.run(client, output).await,
            Verb::Reserve(reserve) => reserve.run("reserve", client, output).await,
            Verb::Unreserve(reserve) => reserve.run("unreserve", client, output).await,
            Verb::Retract(retract) => retract.run(client, output).await,
            Verb::Counter(counter) => counter.run(client, output).await,
            Verb::Settle(settle) => settle.run(client, output).await,
            Verb::Erase(erase) => erase.run(client, output).await,
            Verb::Show(show) => show.run(client, output).await,
            Verb::Envelope(show) => show.envelope(client, output).await,
            Verb::List(list) => list.run(client, output).await,
            Verb::Ready(ready) => ready.run(client, output).await,
            Verb::Wait(wait) => wait.run(client, output).await,
        }
    }
}

/// Posts something about one handoff and shows where it is then.
async fn act<T: Serialize>(
    client: &Client,
    output: Output,
    handoff: HandoffId,
    verb: &str,
    body: &T,
) -> anyhow::Result<Exit> {
    let reply = client.post(&format!("/v1/handoffs/{handoff}/{verb}"), body).await?;
    output.reply(&reply, moved)?;
    Ok(Exit::Done)
}

pub(super) fn moved(moved: wire::Moved) -> String {
    let state = if moved.state == moved.status {
        moved.state
    } else {
        format!("{} ({})", moved.state, moved.status)
    };
    Facts::default()
        .with("handoff", moved.handoff_id)
        .with("task", moved.task_id)
        .with("state", state)
        .text()
}
