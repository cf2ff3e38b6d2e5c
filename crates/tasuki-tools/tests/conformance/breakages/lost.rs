// SPDX-License-Identifier: Apache-2.0
//! Something is lost, or does not come.

use serde_json::{Value, json};

use super::{Row, answers, asks};
use crate::proxy::{Answered, Asked};

pub(super) const ALL: &[Row] = &[
    (
        "envelopes have no date",
        answers(|asked, answered| part(asked, answered, "created_at", |_| true)),
        &[
            "chain.address-of-claim",
            "chain.address-of-offer",
            "chain.canonical-json",
            "chain.links",
            "delivery.dead-letters-are-told",
            "schema.envelope-members",
            "schema.message-1-lead-to-coder",
            "schema.message-2-coder-to-reviewer",
            "schema.message-3-reviewer-to-coder",
            "schema.message-4-coder-to-tester",
            "versioning.stored-stays",
        ],
    ),
    (
        "results vanish",
        answers(|asked, answered| {
            if asked.is("GET", "/v1/handoffs/*") {
                without(&mut answered.body, "output");
            }
        }),
        &[
            "delivery.done-has-its-result",
            "delivery.gaps-are-in-the-result",
            "schema.message-6-tester-to-lead",
        ],
    ),
    (
        "terms are not read",
        asks(|asked| asked.change(|body| without(body, "terms"))),
        &[
            "delivery.attempts-run-out",
            "delivery.late-result-kept",
            "delivery.lease-ends-in-silence",
            "delivery.owner-after-lost-lease",
            "delivery.poison-is-put-aside",
            "delivery.work-has-an-end",
        ],
    ),
    (
        "reading begins anew each time",
        asks(|asked| {
            if asked.is("GET", "/v1/channels/*/messages") {
                asked.path = asked.path.replace("after=", "limit=1000&was=");
                asked.path = asked.path.split("&was=").next().unwrap_or_default().to_owned();
            }
        }),
        &["delivery.reading-goes-on-where-it-ended"],
    ),
    (
        "nothing expires",
        asks(|asked| asked.change(|body| without(body, "expires_in_ms"))),
        &["delivery.expired-is-a-dead-letter"],
    ),
    (
        "start times are not read",
        asks(|asked| asked.change(|body| without(body, "start_in_ms"))),
        &["delivery.scheduled-waits"],
    ),
    (
        "who declines is not heard",
        asks(|asked| {
            if asked.is("POST", "/v1/handoffs/*/decline") {
                asked.method = "GET".into();
                asked.path = asked.path.trim_end_matches("/decline").to_owned();
                asked.text.clear();
            }
        }),
        &[
            "delivery.declined-by-one-of-many",
            "delivery.declined-is-a-dead-letter",
            "delivery.wrong-claim-refused",
            "delivery.wrong-fence-refused",
        ],
    ),
    (
        "the log forgets reasons",
        answers(|asked, answered| {
            let events = answered.body.get_mut("events").and_then(Value::as_array_mut);
            if asked.is("GET", "/v1/tasks/*/events") {
                events.into_iter().flatten().for_each(|event| without(&mut event["body"], "text"));
            }
        }),
        &["chain.issuer-lifts", "delivery.cancel-is-in-the-log", "delivery.discard-needs-a-reason"],
    ),
    (
        "listings are empty",
        answers(|asked, answered| {
            if asked.is("GET", "/v1/handoffs") {
                answered.body["handoffs"] = json!([]);
            }
        }),
        &[
            "chain.circle-ends",
            "chain.hop-limit",
            "delivery.acknowledged-is-readable",
            "delivery.completion-repeatable",
            "delivery.same-key-batch",
            "delivery.same-key-other-body",
            "delivery.same-key-publications",
            "delivery.same-key-same-reply",
        ],
    ),
    (
        "questions are dropped",
        answers(|asked, answered| part(asked, answered, "open_decisions", is_later)),
        &[
            "chain.questions-go-on",
            "delivery.dead-letters-are-told",
            "schema.message-2-coder-to-reviewer",
            "schema.message-3-reviewer-to-coder",
            "schema.message-4-coder-to-tester",
            "schema.message-6-tester-to-lead",
        ],
    ),
    (
        "gaps end at the next hop",
        answers(|asked, answered| part(asked, answered, "gaps", is_later)),
        &["context.gap-is-carried", "context.gaps-go-on"],
    ),
    (
        "ways are forgotten",
        answers(|asked, answered| part(asked, answered, "path", |_| true)),
        &[
            "chain.links",
            "chain.path-is-written",
            "schema.message-2-coder-to-reviewer",
            "schema.message-3-reviewer-to-coder",
            "schema.message-4-coder-to-tester",
        ],
    ),
    (
        "dead letters are hidden",
        answers(|asked, answered| {
            if asked.is("GET", "/v1/tasks/*") && answered.body["state"] == "dead_lettered" {
                answered.body["state"] = json!("open");
            }
        }),
        &["chain.circle-ends", "chain.hop-limit", "delivery.attempts-run-out"],
    ),
    (
        "nobody hears what is needed",
        answers(|_, answered| {
            if answered.body["code"] == "budget_too_small" {
                without(&mut answered.body["details"], "needed");
            }
        }),
        &["context.budget-too-small", "context.needed-is-enough", "context.what-must-travel"],
    ),
    (
        "prohibitions are left out",
        answers(|_, answered| {
            if let Some(Value::String(prompt)) = answered.body.get_mut("prompt") {
                *prompt = prompt.replace("Never change stored invoices.", "");
            }
        }),
        &["context.prompt-within-budget", "context.what-must-travel"],
    ),
    (
        "more room is used otherwise",
        answers(|asked, answered| {
            if asked.is("POST", "/v1/assemble") && asked.body()["max_tokens"] == 5000 {
                answered.body["receipt"]["kept"].as_array_mut().unwrap().remove(0);
            }
        }),
        &["context.more-room-keeps-all"],
    ),
    (
        "what was assembled is not sent",
        asks(|asked| {
            if asked.is("POST", "/v1/handoffs") {
                asked.change(|body| without(body, "context"));
            }
        }),
        &["context.assembled-is-what-is-sent", "versioning.old-form-taken"],
    ),
    (
        "old revisions are gone",
        answers(|asked, answered| {
            if asked.path.starts_with("/v1/memories/") && asked.path.contains("revision=1") {
                answered.status = 404;
                answered.body = json!({ "code": "memory_not_found" });
            }
        }),
        &["context.edits-are-revisions"],
    ),
    (
        "retries never come",
        asks(|asked| {
            asked.change(|body| {
                if body["class"] == "retryable" && body["retry_after_ms"] == 20 {
                    body["retry_after_ms"] = json!(600_000);
                }
            });
        }),
        &["delivery.retryable-tried-again"],
    ),
    (
        "start times never come",
        asks(|asked| {
            asked.change(|body| {
                if body["start_in_ms"] == 300 {
                    body["start_in_ms"] = json!(600_000);
                }
            });
        }),
        &["delivery.scheduled-comes"],
    ),
];

fn without(said: &mut Value, name: &str) {
    if let Some(members) = said.as_object_mut() {
        members.remove(name);
    }
}

fn is_later(envelope: &Value) -> bool {
    envelope["hop"] != 0
}

/// Takes a part away from envelopes.
fn part(asked: &Asked, answered: &mut Answered, name: &str, from: fn(&Value) -> bool) {
    answered.envelopes(asked, |envelope| {
        if from(envelope) {
            without(envelope, name);
        }
    });
}
