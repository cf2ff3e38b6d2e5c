// SPDX-License-Identifier: Apache-2.0
//! Which operations each permission opens. What rules say about targets is in `rules.rs`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tower::ServiceExt;

use crate::contract;
use crate::samples::Samples;
use crate::support::{
    Backend, Client, Draft, Held, Stage, everything, failure, in_time, may, new_key, text,
};

/// What is refused to who may not do it, whether it is told so or that nothing is there.
const REFUSALS: [&str; 7] = [
    "not_permitted",
    "handoff_not_found",
    "task_not_found",
    "agent_not_found",
    "token_not_found",
    "memory_not_found",
    "chain_not_found",
];

/// Which operations each permission opens, towards others.
const OPENED: [(&str, &[&str]); 11] = [
    ("", &[]),
    (
        "send",
        &[
            "task_open",
            "task_cancel",
            "task_complete",
            "task_lift",
            "assemble",
            "handoff_offer",
            "handoff_offer_batch",
            "handoff_cancel",
            "handoff_abort",
            "handoff_settle",
            "handoff_send",
            "handoff_retract",
            "question_answer",
            "channel_publish",
            "pipeline_start",
            "task_clear_taint",
        ],
    ),
    (
        "claim",
        &[
            "channel_subscribe",
            "channel_unsubscribe",
            "handoff_claim",
            "handoff_peek",
            "handoff_claim_one",
            "handoff_counter",
            "handoff_decline",
        ],
    ),
    (
        "complete",
        &[
            "handoff_start",
            "handoff_heartbeat",
            "handoff_progress",
            "handoff_complete",
            "handoff_complete_batch",
            "handoff_fail",
            "handoff_release",
            "handoff_reserve",
            "handoff_unreserve",
            "handoff_retract",
        ],
    ),
    (
        "read",
        &[
            "agent_show",
            "task_show",
            "task_events",
            "task_export",
            "handoff_show",
            "handoff_envelope",
            "handoff_prompt",
            "handoff_artifacts",
            "handoff_messages",
            "handoff_wait",
            "dead_letter_show",
            "event_stream",
            "change_stream",
            "stats_show",
            "memory_show",
            "context_show",
            "task_join",
            "channel_show",
            "channel_messages",
            "reservation_list",
            "health_targets",
            "alert_list",
            "alert_rules",
            "metrics_show",
            "overview_show",
        ],
    ),
    // To reroute takes a second one: to send to the new target.
    (
        "redrive",
        &[
            "dead_letter_redrive",
            "dead_letter_discard",
            "dead_letter_amend",
            "dead_letter_answer",
            "dead_letter_take",
            "dead_letter_decide_many",
        ],
    ),
    // Who may approve work for a target also answers for it and may say something to its holder.
    (
        "approve",
        &[
            "handoff_approve",
            "handoff_reject",
            "handoff_message",
            "question_answer",
            "task_clear_taint",
        ],
    ),
    // Who drains an agent is told how it then stands, and so may look first.
    (
        "operate",
        &[
            "agent_show",
            "agent_drain",
            "agent_resume",
            "agent_set_breaker",
            "target_pause",
            "target_resume",
            "alert_silence",
        ],
    ),
    (
        "administer",
        &[
            "agent_show",
            "agent_publish",
            "agent_drain",
            "agent_resume",
            "agent_deregister",
            "agent_set_rules",
            "agent_set_breaker",
            "target_pause",
            "target_resume",
            "alert_silence",
            "alert_test",
            "key_enroll",
            "key_rotate",
            "key_revoke",
            "token_issue",
            "token_revoke",
            "tenant_list",
            "tenant_set",
            "security_show",
            "audit_verify",
            "population_show",
            "audit_export",
            "memory_erase",
            "handoff_erase",
        ],
    ),
    (
        "write_memory",
        &[
            "chain_import",
            "memory_add",
            "memory_edit",
            "memory_delete",
            "memory_pin",
            "memory_unpin",
            "memory_supersede",
        ],
    ),
    ("write_shared_context", &["context_show", "context_write", "context_decide"]),
];

/// Served to everybody, or to everybody known about what is its own.
const ALWAYS: [&str; 18] = [
    "session_show",
    "session_open",
    "pipeline_list",
    "dead_letter_groups",
    "chain_list",
    "memory_list",
    "agent_list",
    "agent_search",
    "agent_catalogue",
    "task_list",
    "handoff_list",
    "handoff_ready",
    "question_list",
    "dead_letter_list",
    "token_list",
    "agent_join",
    "health",
    "ready",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_permission_opens_its_operations_and_no_others() {
    let stage = Stage::closed(Backend::Volatile).await;
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let coder = admin.enroll("coder", everything()).await;
    let mei = admin.enroll("mei", everything()).await;
    mei.declares(&["review"]).await;
    let cast = Cast { stage, admin, planner, coder, mei };
    let mut opened: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (method, template, id) in contract::table() {
        for permission in in_time(cast.openers(&method, &template, &id)).await {
            opened.entry(permission).or_default().insert(id.clone());
        }
    }
    for (permission, operations) in OPENED {
        let expected = operations.iter().chain(&ALWAYS).map(|id| (*id).to_owned());
        assert_eq!(opened[permission], expected.collect::<BTreeSet<_>>(), "{permission}");
    }
}

struct Cast {
    stage: Stage,
    admin: Client,
    planner: Client,
    coder: Client,
    mei: Client,
}

impl Cast {
    /// The permissions with which an agent that has nothing else is not refused an operation.
    async fn openers(&self, method: &str, template: &str, id: &str) -> Vec<&'static str> {
        let mut openers = Vec::new();
        let mut samples = None;
        for (permission, _) in OPENED {
            let asked = match &samples {
                Some(samples) => samples,
                None => samples.insert(self.samples_for(id).await),
            };
            let rules = if permission.is_empty() { may(&[]) } else { may(&[permission]) };
            self.admin.set_rules("mei", rules).await;
            let opens = self.opens(method, template, id, asked).await;
            self.admin.set_rules("mei", everything()).await;
            if opens {
                openers.push(permission);
                // What is asked about next is new: one request must not spoil the other.
                if method != "get" {
                    samples = None;
                }
            }
        }
        openers
    }

    /// Whether she is not refused.
    async fn opens(&self, method: &str, template: &str, id: &str, samples: &Samples) -> bool {
        let path = samples.path(template);
        let draft = match method {
            "get" => self.mei.getting(&path),
            "post" => self.mei.posting(&path, &alone(samples.body(template))),
            other => self.mei.shown(Draft::of(other, &path, &samples.body_of(other, template))),
        };
        if ["event_stream", "change_stream"].contains(&id) {
            // It has no end that could be waited for.
            let reply = self.stage.router.clone().oneshot(draft.request()).await.unwrap();
            return reply.status() != 403;
        }
        let mut body = self.stage.send(&draft).await.body;
        if body["results"].is_array() {
            body = body["results"][0]["error"].take();
        }
        !body["code"].as_str().is_some_and(|code| REFUSALS.contains(&code))
    }
}

/// A completion without what follows from it, which is more than one permission.
fn alone(mut body: Value) -> Value {
    let completion = match body.pointer("/completions/0") {
        Some(_) => &mut body["completions"][0],
        None => &mut body,
    };
    completion.as_object_mut().unwrap().remove("follow_ups");
    body
}

impl Cast {
    async fn samples_for(&self, operation: &str) -> Samples {
        let Self { admin, planner, coder, mei, .. } = self;
        let sender = match operation {
            // These are for who offered it.
            "task_cancel" | "task_complete" | "task_lift" | "task_clear_taint"
            | "handoff_cancel" | "handoff_abort" | "handoff_settle" => mei,
            _ => planner,
        };
        let handoff = match operation {
            "handoff_approve" | "handoff_reject" => {
                sender.offer("coder", json!({ "needs_approval": true })).await
            }
            "handoff_show" | "handoff_envelope" | "handoff_prompt" | "handoff_wait"
            | "handoff_artifacts" | "handoff_messages" | "handoff_cancel" | "handoff_abort"
            | "handoff_settle" => sender.offer("coder", json!({})).await,
            _ => sender.offer("mei", json!({})).await,
        };
        let held = match operation {
            "handoff_start"
            | "handoff_heartbeat"
            | "handoff_progress"
            | "handoff_complete"
            | "handoff_complete_batch"
            | "handoff_fail"
            | "handoff_release"
            | "handoff_reserve"
            | "handoff_unreserve"
            | "handoff_decline" => mei.claimed(&handoff).await,
            _ => {
                let claim_id = "claim_00000000000000000000000007".into();
                Held { handoff, claim_id, fence: 1 }
            }
        };
        let dead = planner.offer("coder", json!({})).await;
        let dying = coder.claimed(&dead).await;
        coder.act(&dying, "fail", failure("permanent")).await.done();
        let subject = sender.offer("coder", json!({})).await;
        let subject = sender.get(&format!("/v1/handoffs/{subject}")).await.done();
        let agent = "other".to_owned();
        let key = new_key();
        let path = "/v1/agents/other/keys";
        for old in admin.get("/v1/agents/other").await.body["keys"].as_array().into_iter().flatten()
        {
            let revoke = format!("{path}/{}/revoke", text(&old["key_id"]));
            admin.post(&revoke, json!({})).await.done();
        }
        if operation != "agent_publish" {
            admin.post(path, json!({ "key": key.public() })).await.done();
        }
        let (token, _) = admin.token("bearer", "coder", may(&[])).await;
        let (_, join) = admin.token("join", "other", may(&[])).await;
        let memory = json!({ "by": planner.name, "scope": { "project": "web" }, "text": "words" });
        let memory = planner.post("/v1/memories", memory).await.done();
        Samples {
            sender: mei.name.clone(),
            worker: mei.name.clone(),
            judge: mei.name.clone(),
            held,
            dead,
            task: text(&subject["task_id"]),
            agent,
            key: key.public().id().to_string(),
            token,
            join,
            tenant: "acme".into(),
            memory: text(&memory["memory_id"]),
        }
    }
}
