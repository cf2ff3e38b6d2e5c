// SPDX-License-Identifier: Apache-2.0
//! Ways to break what is said while work goes on.

use serde_json::{Value, json};

use super::{Row, answers, asks};
use crate::proxy::{Answered, Asked};

pub(super) const ALL: &[Row] = &[
    ("whoever asks loses its work", answers(lose_questions), &["delivery.asking-keeps-the-work"]),
    (
        "anybody answers anything",
        answers(take_any_answer),
        &[
            "delivery.answers-fit-the-question",
            "delivery.first-answer-stands",
            "delivery.nobody-answers-itself",
        ],
    ),
    (
        "answers do not arrive",
        answers(|asked, answered| {
            if is_claim(asked) {
                forget(answered, "questions");
            }
        }),
        &["delivery.answer-comes-with-the-claim", "delivery.default-answers"],
    ),
    (
        "anybody goes on with the answer",
        answers(take_what_is_kept),
        &["delivery.answer-kept-for-the-asker"],
    ),
    (
        "messages are kept back",
        answers(|asked, answered| {
            if asked.path.ends_with("/heartbeat") {
                forget(answered, "messages");
            }
        }),
        &["delivery.messages-come-with-heartbeats"],
    ),
    (
        "acknowledgments are not heard",
        asks(|asked| {
            if asked.path.ends_with("/heartbeat") {
                asked.change(|body| forget_member(body, "acknowledge"));
            }
        }),
        &["delivery.acknowledged-messages-are-gone"],
    ),
    (
        "every attempt begins from nothing",
        answers(|asked, answered| {
            if is_claim(asked) {
                forget(answered, "earlier_attempts");
            }
        }),
        &["delivery.earlier-attempts-are-told"],
    ),
    (
        "pieces of work are lost with their holder",
        answers(|asked, answered| {
            if asked.method == "GET" && asked.path.contains("/artifacts") {
                answered.body = json!({ "artifacts": [] });
            }
        }),
        &["delivery.artifacts-outlive-the-claim"],
    ),
    (
        "work that is put back is given out at once",
        asks(|asked| {
            if asked.path.ends_with("/put-back") {
                asked.path = asked.path.replace("/put-back", "/release");
                asked.change(|body| forget_member(body, "for_ms"));
            }
        }),
        &["delivery.put-back-waits"],
    ),
];

fn is_claim(asked: &Asked) -> bool {
    asked.method == "POST" && asked.path.ends_with("/claim")
}

fn forget_member(body: &mut Value, name: &str) {
    if let Some(members) = body.as_object_mut() {
        members.remove(name);
    }
}

fn forget(answered: &mut Answered, name: &str) {
    forget_member(&mut answered.body, name);
}

fn lose_questions(asked: &Asked, answered: &mut Answered) {
    if asked.method == "GET" && answered.body["state"] == "input_required" {
        answered.body["state"] = json!("pending");
        answered.body["losses"] = json!(1);
    }
}

fn take_any_answer(asked: &Asked, answered: &mut Answered) {
    if asked.path.ends_with("/answer") && answered.status >= 400 {
        answered.status = 200;
        answered.body = json!({ "state": "answered", "status": "in_progress" });
    }
}

fn take_what_is_kept(_: &Asked, answered: &mut Answered) {
    if answered.body["code"] == "kept_for_asker" {
        answered.status = 200;
        answered.body = json!({ "claim_id": "claim_00000000000000000000000001", "fence": 1 });
    }
}
