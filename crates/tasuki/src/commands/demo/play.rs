// SPDX-License-Identifier: Apache-2.0
//! The play, act by act, up to the feedback.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;

use super::agent::{Agent, Held, constraints_of, line, merged};
use super::broker::{Broker, Home};
use super::promise::{Promise, Promises};
use crate::client::Client;
use crate::output::{Output, print, printable, progress, span};

/// The lease of the reviewer that is killed.
const LEASE_MS: u64 = 1500;
/// A heartbeat comes this often.
const BEAT: Duration = Duration::from_millis(250);
/// How long a busy machine may take to store the first offer.
const STORED_WITHIN: Duration = Duration::from_secs(10);
/// How long the sender is watched while nobody claims.
const WATCH: Duration = Duration::from_millis(300);

pub(super) struct Play {
    output: Output,
    began: Instant,
    pace: Duration,
    pub(super) promises: Promises,
    client: Arc<Client>,
    pub(super) task: Option<String>,
    /// What binds, as the first receiver got it.
    pub(super) bound: Vec<(String, bool)>,
    /// Whether the last receiver got the same.
    pub(super) all_bound: bool,
}

impl Play {
    pub(super) fn new(output: Output, pace: Duration, promises: Promises, client: Client) -> Self {
        let client = Arc::new(client);
        Self {
            output,
            began: Instant::now(),
            pace,
            promises,
            client,
            task: None,
            bound: Vec::new(),
            all_bound: false,
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn agent(&self, name: &'static str) -> Agent {
        Agent::new(name, &self.client)
    }

    /// Tells what happens, while it happens.
    pub(super) async fn say(&self, who: &str, text: &str) -> anyhow::Result<()> {
        if self.output.json {
            return Ok(());
        }
        let at = self.began.elapsed().as_secs_f64();
        print(&format!("{at:5.1} s  {who:<10}  {}", printable(text)))?;
        tokio::time::sleep(self.pace).await;
        Ok(())
    }

    pub(super) fn act(&self, text: &str) -> anyhow::Result<()> {
        if self.output.json { Ok(()) } else { print(&format!("\n{text}")) }
    }

    /// Notes whether a promise was kept, and says so.
    pub(super) async fn note(
        &mut self,
        which: Promise,
        kept: bool,
        saw: impl Into<String>,
    ) -> anyhow::Result<()> {
        let saw = saw.into();
        let says = self.promises.note(which, kept, saw.clone());
        let verdict = if kept { "kept" } else { "BROKEN" };
        self.say(&format!("  {verdict}"), &format!("{says} ({saw})")).await
    }

    pub(super) async fn run(&mut self, chaos: Option<(&mut Broker, &Home)>) -> anyhow::Result<()> {
        let coding = self.hand_over().await?;
        self.soften(&coding).await?;
        let reviewing = self.lose_a_reviewer(&coding).await?;
        let mending = self.review(&coding, reviewing).await?;
        if let Some((broker, home)) = chaos {
            self.act("The broker is killed")?;
            self.kill_the_broker(broker, home, &mending).await?;
        }
        let answered = self.fail_for_good(&mending).await?;
        self.finish(&answered).await
    }

    /// The lead hands the user's wish to the coder, and waits until it is accepted.
    async fn hand_over(&mut self) -> anyhow::Result<Held> {
        self.act("A handoff is acknowledged")?;
        let (lead, coder) = (self.agent("lead"), self.agent("coder"));
        let wish = line!("messages/1-lead-to-coder.sent")?;
        let more = json!({ "until": "claimed", "coordinator": { "agent": "lead" } });
        let wish = merged(wish, &more);
        self.say("lead", &format!("hands over: {}", wish["intent"].as_str().unwrap_or(""))).await?;
        let sender = lead.clone();
        // Not watched: the demo waits for it.
        let sending = tokio::spawn(async move { sender.post("/v1/handoffs/send", &wish).await });
        let until = Instant::now() + STORED_WITHIN;
        while lead.get("/v1/tasks").await?["tasks"][0].is_null() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Until it is claimed, the sender waits and owns the task.
        tokio::time::sleep(WATCH).await;
        let tasks = lead.get("/v1/tasks").await?;
        let owner = tasks["tasks"][0]["owner"].as_str().unwrap_or("nobody");
        let waits = owner == "lead" && !sending.is_finished();
        self.note(Promise::OwnerUntilClaimed, waits, format!("the owner is {owner}")).await?;

        let held = coder.claim(&json!({})).await?;
        let sent = sending.await.context("the sender is gone")??;
        let task = sent["task_id"].as_str().context("the task has no id")?.to_owned();
        let owner = self.owner(&task).await?;
        let acknowledged =
            sent["reached"] == true && sent["handoff_id"] == held.handoff && owner == "coder";
        self.task = Some(task);
        self.bound = constraints_of(&held.envelope);
        self.note(Promise::Acknowledged, acknowledged, format!("the owner is {owner}")).await?;
        coder.act(&held, "start", &json!({})).await?;
        Ok(held)
    }

    async fn owner(&self, task: &str) -> anyhow::Result<String> {
        let task = self.agent("lead").get(&format!("/v1/tasks/{task}")).await?;
        Ok(task["owner"].as_str().unwrap_or_default().to_owned())
    }

    /// The coder wants to pass on less than it was told.
    async fn soften(&mut self, coding: &Held) -> anyhow::Result<()> {
        self.act("A softened \"do not\" is refused")?;
        let coder = self.agent("coder");
        let tries = [
            (Promise::SoftenedRefused, line!("malformed/constraint-softened")?),
            (Promise::WeakenedRefused, line!("malformed/constraint-made-soft")?),
        ];
        for (promise, wrong) in tries {
            let hop = &wrong["hop"];
            let text = hop["constraints"][0]["text"].as_str().unwrap_or_default();
            let hard = if hop["constraints"][0]["hard"] == false { ", as a mere wish" } else { "" };
            self.say("coder", &format!("passes on \"{text}\"{hard}")).await?;
            let result = json!({ "payload": { "type": "code_change" }, "follow_ups": [hop] });
            let code = coder.is_refused(coding, "complete", &result).await?;
            let still = coder.get(&format!("/v1/handoffs/{}", coding.handoff)).await?;
            let kept = wrong["expect"]["code"] == code && still["state"] == "in_progress";
            self.note(promise, kept, code).await?;
        }
        Ok(())
    }

    /// A reviewer is killed while it works, another one takes over, and the first one comes back.
    async fn lose_a_reviewer(&mut self, coding: &Held) -> anyhow::Result<Held> {
        self.act("A reviewer is killed mid-work")?;
        let coder = self.agent("coder");
        let (first, second) = (self.agent("reviewer"), self.agent("reviewer-2"));
        let terms = json!({ "lease_ms": LEASE_MS, "attempts": 3, "backoff_ms": 0 });
        let hop = merged(
            line!("messages/2-coder-to-reviewer.sent")?,
            &json!({ "to": { "capability": "review" }, "terms": terms }),
        );
        self.say("coder", hop["summary"].as_str().unwrap_or_default()).await?;
        let result = json!({
            "action": "needs_review",
            "payload": { "type": "code_change", "branch": "users-by-id" },
            "follow_ups": [hop],
        });
        coder.act(coding, "complete", &result).await?;
        let able = json!({ "capabilities": ["review"] });
        let held = first.claim(&able).await?;
        first.act(&held, "start", &json!({})).await?;
        let path = format!("/v1/handoffs/{}", held.handoff);
        let working = first.keep_alive(&held, BEAT);
        self.say("reviewer", &format!("works, with a lease of {}", span(LEASE_MS))).await?;
        self.watch("the reviewer works", Duration::from_millis(LEASE_MS * 3 / 2)).await;
        let during = first.get(&path).await?;
        let holds = during["holder"]["agent"] == "reviewer" && during["losses"] == 0;
        let holder = during["holder"]["agent"].as_str().unwrap_or("nobody");
        let saw = format!("{holder} has it after {}", span(LEASE_MS * 3 / 2));
        self.note(Promise::HeartbeatsHold, holds, saw).await?;

        working.abort();
        let killed = Instant::now();
        self.say("reviewer", "is killed: no heartbeat comes any more").await?;
        let bar = progress("the lease runs out", None);
        bar.enable_steady_tick(Duration::from_millis(100));
        let calm = merged(able, &json!({ "lease_ms": 30_000 }));
        let taken = second.claim(&calm).await?;
        bar.finish_and_clear();
        let after = span(u64::try_from(killed.elapsed().as_millis()).unwrap_or(u64::MAX));
        let recovered =
            taken.handoff == held.handoff && taken.attempt == 2 && taken.fence > held.fence;
        let saw = format!("reviewer-2 got it {after} after the kill");
        self.note(Promise::LeaseRecovered, recovered, saw).await?;

        self.say("reviewer", "comes back and wants to complete what it had begun").await?;
        let late = json!({ "payload": { "type": "review", "verdict": "approved" } });
        let code = first.is_refused(&held, "complete", &late).await?;
        let now = first.get(&path).await?;
        let refused = code == "stale_claim"
            && now["attempts"][0]["late"] == true
            && now["holder"]["agent"] == "reviewer-2";
        self.note(Promise::LateRefused, refused, code).await?;
        Ok(taken)
    }

    /// The reviewer's model is busy, then it reviews, and its findings come back to the coder.
    async fn review(&mut self, coding: &Held, held: Held) -> anyhow::Result<Held> {
        self.act("A failure is retried, and feedback comes back")?;
        let (coder, reviewer) = (self.agent("coder"), self.agent("reviewer-2"));
        let busy = line!("errors/retryable")?;
        let said = busy["message"].as_str().unwrap_or_default();
        self.say("reviewer-2", &format!("fails, retryable: {said}")).await?;
        let moved = reviewer.act(&held, "fail", &busy).await?;
        let able = json!({ "capabilities": ["review"], "lease_ms": 30_000 });
        let again = reviewer.claim(&able).await?;
        let shown = reviewer.get(&format!("/v1/handoffs/{}", again.handoff)).await?;
        let retried = moved["state"] == "scheduled"
            && again.handoff == held.handoff
            && again.attempt == 3
            && shown["failures"] == 1;
        self.note(Promise::Retried, retried, format!("attempt {}", again.attempt)).await?;

        let hop = line!("messages/3-reviewer-to-coder.sent")?;
        self.say("reviewer-2", hop["summary"].as_str().unwrap_or_default()).await?;
        let result = json!({
            "action": "changes_requested",
            "payload": { "type": "review", "verdict": "changes_requested" },
            "follow_ups": [hop.clone()],
        });
        reviewer.act(&again, "complete", &result).await?;
        let mending = coder.claim(&json!({})).await?;
        let got = &mending.envelope;
        let came = got["action"] == "changes_requested"
            && got["payload"]["findings"] == hop["payload"]["findings"]
            && got["intent"] == coding.envelope["intent"]
            && constraints_of(got) == self.bound;
        let findings = got["payload"]["findings"].as_array().map_or(0, Vec::len);
        let saw = format!("{findings} findings, {} constraints", constraints_of(got).len());
        self.note(Promise::Feedback, came, saw).await?;
        Ok(mending)
    }

    /// Lets time pass, visibly.
    async fn watch(&self, what: &'static str, time: Duration) {
        let bar = progress(what, None);
        bar.enable_steady_tick(Duration::from_millis(100));
        tokio::time::sleep(time).await;
        bar.finish_and_clear();
    }
}
