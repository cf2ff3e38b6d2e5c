// SPDX-License-Identifier: Apache-2.0
//! Something is told otherwise than it is.

use serde_json::{Value, json};

use super::{Row, answers, asks};
use crate::proxy::{Answered, Asked, Breakage};

pub(super) const ALL: &[Row] = &[
    (
        "actions are all requests",
        answers(|asked, answered| put(asked, answered, "action", "request", |_| true)),
        &[
            "delivery.dead-letters-are-told",
            "schema.actions-known",
            "schema.message-2-coder-to-reviewer",
            "schema.message-3-reviewer-to-coder",
            "versioning.old-form-taken",
        ],
    ),
    (
        "the first has a predecessor",
        answers(|asked, answered| put(asked, answered, "previous", "sha256:0", is_first)),
        &[
            "chain.address-of-claim",
            "chain.address-of-offer",
            "chain.canonical-json",
            "chain.first-has-no-predecessor",
            "chain.links",
            "delivery.dead-letters-are-told",
            "schema.envelope-members",
            "schema.message-1-lead-to-coder",
            "versioning.stored-stays",
        ],
    ),
    (
        "versions have one number",
        answers(|asked, answered| put(asked, answered, "envelope_version", "2", |_| true)),
        &[
            "chain.address-of-claim",
            "chain.address-of-offer",
            "chain.canonical-json",
            "chain.links",
            "delivery.dead-letters-are-told",
            "schema.message-1-lead-to-coder",
            "schema.message-2-coder-to-reviewer",
            "schema.message-3-reviewer-to-coder",
            "schema.message-4-coder-to-tester",
            "versioning.claim-asks-for-a-major",
            "versioning.manifest-asks-for-a-major",
            "versioning.nothing-lost-there-and-back",
            "versioning.old-form-taken",
            "versioning.stored-stays",
            "versioning.version-has-two-numbers",
        ],
    ),
    (
        "calls have other words",
        answers(|asked, answered| {
            put(asked, answered, "intent", "Help.", |it| it["control"] == "awaited")
        }),
        &["chain.intent-in-calls"],
    ),
    (
        "what is shown is not what was sent",
        answers(|asked, answered| {
            if asked.is("GET", "/v1/handoffs/*/envelope") {
                answered.body["metadata"] = json!({ "seen": true });
            }
        }),
        &[
            "chain.address-of-offer",
            "chain.canonical-json",
            "chain.envelopes-do-not-change",
            "chain.links",
            "versioning.stored-stays",
        ],
    ),
    (
        "constraints are known by other ids",
        answers(|asked, answered| {
            let has =
                |one: &Value| one["text"].as_str().is_some_and(|text| text.ends_with("style."));
            each(asked, answered, "constraints", |one| {
                if has(one) {
                    one["id"] = json!("sha256:0");
                }
            });
        }),
        &["chain.constraint-ids"],
    ),
    (
        "history is told by the last",
        answers(|asked, answered| {
            each(asked, answered, "history", |one| one["agent"] = json!("last"))
        }),
        &[
            "chain.history-grows",
            "schema.message-2-coder-to-reviewer",
            "schema.message-3-reviewer-to-coder",
            "schema.message-4-coder-to-tester",
            "versioning.stored-stays",
        ],
    ),
    (
        "trust is given back",
        answers(|asked, answered| {
            answered.envelopes(asked, |envelope| {
                if let Some(trust) = envelope.pointer_mut("/payload/parts/0/trust") {
                    *trust = json!("agent");
                }
            });
        }),
        &["chain.trust-may-fall"],
    ),
    (
        "claim ids are shown",
        answers(|asked, answered| {
            if asked.is("GET", "/v1/handoffs/*") && answered.body.get("holder").is_some() {
                answered.body["holder"]["claim_id"] = json!("claim_x");
            }
        }),
        &["delivery.claim-id-kept-secret"],
    ),
    (
        "claims of a handoff have one id",
        Breakage { asked: real_claim, answered: one_claim },
        &["delivery.claim-ids-differ"],
    ),
    (
        "nobody owns anything",
        answers(|asked, answered| {
            if asked.is("GET", "/v1/tasks/*") && answered.status == 200 {
                answered.body["owner"] = json!("nobody");
            }
        }),
        &[
            "delivery.claimer-owns",
            "delivery.opener-owns-first",
            "delivery.owner-after-completion",
            "delivery.owner-after-failure",
            "delivery.owner-after-lost-lease",
            "delivery.owner-after-release",
            "delivery.seen-is-delivered",
        ],
    ),
    (
        "waits end as done",
        answers(|asked, answered| {
            if asked.is("POST", "/v1/wait") {
                answered.body["done"] = json!(true);
            }
        }),
        &["delivery.waiting-promises-nothing"],
    ),
    (
        "work has begun when it is claimed",
        answers(|_, answered| status(answered, "claimed", "in_progress")),
        &["delivery.claimed-is-not-begun", "delivery.waiting-promises-nothing"],
    ),
    (
        "what was seen was not delivered",
        answers(|_, answered| status(answered, "delivered", "stored")),
        &["delivery.seen-is-delivered"],
    ),
    (
        "a failure is done",
        answers(|asked, answered| {
            if asked.is("POST", "/v1/handoffs/*/fail") && answered.status == 200 {
                answered.body["status"] = json!("done");
            }
        }),
        &["delivery.ended-is-not-done", "delivery.failed-is-not-done"],
    ),
    (
        "every end is done",
        answers(|_, answered| {
            status(answered, "cancelled", "done");
            status(answered, "dead_lettered", "done");
        }),
        &["delivery.ended-is-not-done"],
    ),
    (
        "the log has another order",
        answers(|asked, answered| {
            let events = answered.body.get_mut("events").and_then(Value::as_array_mut);
            if asked.is("GET", "/v1/tasks/*/events") {
                events.into_iter().for_each(|events| events.reverse());
            }
        }),
        &["delivery.ending-and-beginning-is-one-step"],
    ),
    (
        "receipts count otherwise",
        answers(|asked, answered| {
            if asked.is("POST", "/v1/assemble") && answered.status == 200 {
                answered.body["receipt"]["token_count"] = json!(1);
            }
        }),
        &["context.receipt-counts-the-same"],
    ),
    (
        "every assembly is another one",
        answers(|asked, answered| {
            let mut known = asked.known.lock().unwrap();
            let count = known.entry("assemblies".into()).or_insert(json!(0));
            *count = json!(count.as_u64().unwrap() + 1);
            if let Some(Value::String(prompt)) = answered.body.get_mut("prompt") {
                *prompt += &format!("({count})");
            }
        }),
        &["context.order-does-not-matter", "context.same-request-same-result"],
    ),
    (
        "references bring the first",
        asks(|asked| {
            asked.change(|body| {
                let refs = body.get_mut("memory_refs").and_then(Value::as_array_mut);
                for one in refs.into_iter().flatten().filter(|one| one["freshness"] == "latest") {
                    one["freshness"] = json!("pinned");
                }
            });
        }),
        &["context.latest-reference"],
    ),
    (
        "a repeated completion is refused",
        answers(|asked, answered| {
            if asked.is("POST", "/v1/handoffs/*/complete") && answered.status == 200 {
                let mut known = asked.known.lock().unwrap();
                if known.insert(asked.path.clone(), json!(true)).is_some() {
                    answered.status = 409;
                }
            }
        }),
        &["delivery.completion-repeatable"],
    ),
];

fn is_first(envelope: &Value) -> bool {
    envelope["hop"] == 0
}

/// Puts something else into envelopes.
fn put(
    asked: &Asked,
    answered: &mut Answered,
    name: &str,
    value: &str,
    where_: fn(&Value) -> bool,
) {
    answered.envelopes(asked, |envelope| {
        if where_(envelope) {
            envelope[name] = json!(value);
        }
    });
}

/// Changes each item of a part of envelopes.
fn each(asked: &Asked, answered: &mut Answered, name: &str, change: impl Fn(&mut Value)) {
    answered.envelopes(asked, |envelope| {
        let items = envelope.get_mut(name).and_then(Value::as_array_mut);
        items.into_iter().flatten().for_each(&change);
    });
}

fn status(answered: &mut Answered, from: &str, to: &str) {
    if answered.body["status"] == from {
        answered.body["status"] = json!(to);
    }
}

/// Puts the broker's own id back where a call shows the one that it was told.
fn real_claim(asked: &mut Asked) {
    let known = asked.known.clone();
    asked.change(|body| {
        let told = body["claim_id"].as_str().unwrap_or_default();
        if let Some(real) = known.lock().unwrap().get(told) {
            body["claim_id"] = real.clone();
        }
    });
}

fn one_claim(asked: &Asked, answered: &mut Answered) {
    if asked.is("POST", "/v1/handoffs/*/claim") && answered.status == 200 {
        let told = format!("claim of {}", answered.body["handoff_id"]);
        let real = std::mem::replace(&mut answered.body["claim_id"], json!(told));
        asked.known.lock().unwrap().insert(told, real);
    }
}
