// SPDX-License-Identifier: Apache-2.0
//! What is broken without a noise: everything is answered, and something is not so.

use serde_json::{Value, json};

use super::{Row, answers, asks};
use crate::proxy::{Answered, Asked};

pub(super) const ALL: &[Row] = &[
    (
        "hints are empty",
        answers(|_, answered| {
            if answered.status >= 400 {
                answered.body["hint"] = json!("");
            }
        }),
        &[
            "schema.refusal-members",
            "schema.refusal-members-of-conflict",
            "schema.refusal-members-of-unknown",
        ],
    ),
    (
        "dates are words",
        answers(|asked, answered| {
            answered.envelopes(asked, |envelope| envelope["created_at"] = json!("yesterday"));
        }),
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
        "no dead letter is listed",
        answers(|asked, answered| {
            if asked.is("GET", "/v1/dead-letters") {
                answered.body["handoffs"] = json!([]);
            }
        }),
        &["delivery.dead-letters-are-listed"],
    ),
    (
        "keys of publications are forgotten",
        asks(|asked| {
            if asked.is("POST", "/v1/channels/*/publish") {
                asked.change(without_key);
            }
        }),
        &["delivery.same-key-publications"],
    ),
    (
        "keys in batches are forgotten",
        asks(|asked| {
            asked.change(|body| {
                let offers = body.get_mut("offers").and_then(Value::as_array_mut);
                offers.into_iter().flatten().for_each(without_key);
            });
        }),
        &["delivery.same-key-batch"],
    ),
    (
        "what is passed in short is not named",
        answers(|asked, answered| drop(short(asked, answered))),
        &["context.short-is-named"],
    ),
    (
        "what is passed in short is called kept",
        answers(|asked, answered| {
            let short = short(asked, answered);
            if let Some(Value::Array(kept)) = answered.body.pointer_mut("/receipt/kept") {
                kept.extend(short);
            }
        }),
        &["context.short-is-named"],
    ),
];

fn without_key(said: &mut Value) {
    if let Some(members) = said.as_object_mut() {
        members.remove("idempotency_key");
    }
}

/// Takes what was passed in short out of the receipt.
fn short(asked: &Asked, answered: &mut Answered) -> Vec<Value> {
    match answered.body.pointer_mut("/receipt/demoted") {
        Some(Value::Array(short)) if asked.is("POST", "/v1/assemble") => std::mem::take(short),
        _ => Vec::new(),
    }
}

/// A request that asks for something to be done, but for the one with which a run begins.
fn does_something(asked: &Asked) -> bool {
    let by = asked.body()["agent"].as_str().unwrap_or_default().to_owned();
    asked.method != "GET" && !by.starts_with("nobody-")
}

fn refused(asked: &Asked, answered: &mut Answered, status: u16, code: &str) {
    if does_something(asked) {
        answered.status = status;
        answered.body = json!({
            "code": code, "message": "No.", "hint": "Ask somebody else.", "retryable": false,
            "details": { "faults": [] },
        });
    }
}

/// Ways to say no to everything. Who does so keeps no rule, whatever must be refused.
pub(crate) const NO_TO_EVERYTHING: &[crate::proxy::Breakage] = &[
    answers(|asked, answered| refused(asked, answered, 403, "not_permitted")),
    answers(|asked, answered| refused(asked, answered, 400, "invalid_request")),
];
