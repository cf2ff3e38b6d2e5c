// SPDX-License-Identifier: Apache-2.0
//! The end of the play: a failure for good, an answer, and the result.

use serde_json::{Value, json};

use super::agent::{Held, constraints_of, line};
use super::play::Play;
use super::promise::Promise;

impl Play {
    /// The tester misses a file. Somebody has to decide, and does.
    pub(super) async fn fail_for_good(&mut self, mending: &Held) -> anyhow::Result<Held> {
        self.act("A permanent failure becomes a dead letter, and is answered")?;
        let (lead, coder, tester) = (self.agent("lead"), self.agent("coder"), self.agent("tester"));
        let question = mending.envelope["open_decisions"][0]["id"].clone();
        let mut hop = line!("messages/4-coder-to-tester.sent")?;
        hop["decisions"][0]["resolves"] = question;
        self.say("coder", hop["summary"].as_str().unwrap_or_default()).await?;
        let payload = json!({ "type": "code_change", "branch": "users-by-id" });
        coder.act(mending, "complete", &json!({ "payload": payload, "follow_ups": [hop] })).await?;
        let held = tester.claim(&json!({})).await?;
        let missing = line!("errors/permanent")?;
        let said = missing["message"].as_str().unwrap_or_default();
        self.say("tester", &format!("fails, permanently: {said}")).await?;
        let moved = tester.act(&held, "fail", &missing).await?;
        let path = format!("/v1/dead-letters/{}", held.handoff);
        let letter = lead.get(&path).await?;
        let hint = &letter["reports"][0]["report"]["hint"];
        let dead = moved["state"] == "dead_lettered" && *hint == missing["hint"];
        let saw = format!("hint: {}", hint.as_str().unwrap_or("none"));
        self.note(Promise::DeadLetter, dead, saw).await?;

        let told = lead.claim(&json!({})).await?;
        let hears = told.envelope["action"] == "failed";
        let action = told.envelope["action"].as_str().unwrap_or("?");
        let saw = format!("lead got a message with the action {action}");
        self.note(Promise::CoordinatorTold, hears, saw).await?;
        let decision = "tests/data/users.json is on the branch now.";
        self.say("lead", &format!("answers: {decision}")).await?;
        let answer = json!({ "key": "test_data", "decision": decision, "why": hint });
        let body = json!({ "by": "lead", "decision": answer });
        let again = lead.post(&format!("{path}/answer"), &body).await?;
        let payload = json!({ "type": "decision", "decision": "answered" });
        lead.act(&told, "complete", &json!({ "payload": payload })).await?;
        let held = tester.claim(&json!({})).await?;
        let decisions = held.envelope["decisions"].to_string();
        let answered = again["handoff_id"] == held.handoff && decisions.contains(decision);
        self.note(Promise::Answered, answered, "the tester reads the decision").await?;
        Ok(held)
    }

    pub(super) async fn finish(&mut self, held: &Held) -> anyhow::Result<()> {
        self.act("The task is completed")?;
        self.all_bound = !self.bound.is_empty() && constraints_of(&held.envelope) == self.bound;
        let tester = self.agent("tester");
        let report = line!("messages/6-tester-to-lead.sent")?;
        let half = json!({ "payload": { "type": "test_report", "passed": report["passed"] } });
        self.say("tester", "reports how many tests passed, but not how many failed").await?;
        let code = tester.is_refused(held, "complete", &half).await?;
        let still = tester.get(&format!("/v1/handoffs/{}", held.handoff)).await?;
        let refused = code == "invalid_payload" && still["state"] == "claimed";
        self.note(Promise::MisfitRefused, refused, code).await?;
        let wanted = held.envelope["expected_output"]["criteria"].as_array();
        let met = wanted.into_iter().flatten().map(
            |criterion| json!({ "criterion": criterion, "met": true, "evidence": report["suite"] }),
        );
        let met: Vec<Value> = met.collect();
        self.say("tester", "reports all of it").await?;
        tester.act(held, "complete", &json!({ "payload": report, "criteria": met })).await?;
        let shown = tester.get(&format!("/v1/handoffs/{}", held.handoff)).await?;
        let task = self.task.as_deref().unwrap_or_default();
        let task = tester.get(&format!("/v1/tasks/{task}")).await?;
        let done = task["state"] == "completed"
            && task["owner"] == "tester"
            && shown["output"]["payload"] == report;
        let state = task["state"].as_str().unwrap_or("?");
        self.note(Promise::Completed, done, format!("the task is {state}")).await?;
        let verdict = tester.get("/v1/audit/verify").await?;
        let saw = format!("{} events", verdict["events"]);
        self.note(Promise::LogIntact, verdict["intact"] == true, saw).await
    }
}
