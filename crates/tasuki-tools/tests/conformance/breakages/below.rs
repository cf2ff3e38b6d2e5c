// SPDX-License-Identifier: Apache-2.0
//! Ways to break what a task owes to those around it, and what is decided about it from outside.

use serde_json::{Value, json};

use super::{Row, answers, asks};
use crate::proxy::{Answered, Asked, Breakage};

pub(super) const ALL: &[Row] = &[
    (
        "what is below a cancelled task goes on",
        asks(|asked| of_calls(asked, |body| body["on_parent_end"] = json!("let_go"))),
        &[
            "delivery.cancel-reaches-below",
            "delivery.circles-are-refused",
            "delivery.discarding-cancels-below",
        ],
    ),
    (
        "nothing is let go",
        asks(|asked| of_calls(asked, |body| forget(body, "on_parent_end"))),
        &["delivery.let-go-goes-on"],
    ),
    (
        "nobody hears what a dead letter keeps back",
        answers(|_, answered| forget(&mut answered.body, "on_hold")),
        &["delivery.letters-hold-what-is-below"],
    ),
    (
        "calls have all the time that they ask for",
        answers(|asked, answered| {
            if asked.method == "GET" && answered.body["control"] == "awaited" {
                answered.body["expires_at"] = json!("2999-01-01T00:00:00.000Z");
            }
        }),
        &["delivery.nothing-ends-later"],
    ),
    (
        "what is used is not counted",
        asks(|asked| asked.change(|body| forget(body, "usage"))),
        &["delivery.budgets-are-spent-below"],
    ),
    (
        "whatever is named is waited for",
        answers(|asked, answered| {
            let waits = !asked.body()["after"].is_null();
            if waits && [404, 422].contains(&answered.status) {
                answered.status = 201;
                answered.body = json!({ "status": "stored" });
            }
        }),
        &["delivery.quorums-are-not-lowered", "delivery.unknown-tasks-are-not-waited-for"],
    ),
    (
        "tasks below are tasks of their own",
        asks(|asked| {
            if asked.is("POST", "/v1/tasks") {
                asked.change(|body| {
                    if body.get("parent_task_id").is_some() {
                        forget(body, "parent_task_id");
                        body["intent"] = json!("Do it.");
                    }
                });
            }
        }),
        &["delivery.tasks-below-are-bound"],
    ),
    (
        "a refused retraction taints all the same",
        Breakage { asked: |_| {}, answered: taint_all_the_same },
        &["delivery.refused-retraction-taints-nothing"],
    ),
    (
        "anybody approves",
        answers(|asked, answered| {
            if asked.is("POST", "/v1/handoffs/*/approve") && answered.status == 403 {
                answered.status = 200;
                answered.body = json!({ "state": "pending" });
            }
        }),
        &["delivery.only-named-approvers"],
    ),
    (
        "nobody says why it rejects",
        asks(|asked| {
            if asked.is("POST", "/v1/handoffs/*/reject") {
                asked.change(|body| body["reason"] = json!("no"));
            }
        }),
        &["delivery.rejections-have-reasons"],
    ),
    (
        "what is open below does not matter",
        asks(|asked| {
            if asked.is("POST", "/v1/tasks/*/complete") {
                asked.change(|body| body["below"] = json!("let_go"));
            }
        }),
        &["delivery.owners-complete"],
    ),
    (
        "letters wait although their tasks went on",
        answers(|_, answered| {
            if let Some(letter) = answered.body.get_mut("dead_letter") {
                forget(letter, "closed");
            }
        }),
        &["delivery.letters-are-closed"],
    ),
    (
        "correlation ids are forgotten",
        answers(|_, answered| forget(&mut answered.body, "correlation_id")),
        &["delivery.correlation-comes-back"],
    ),
    (
        "work waits and does not say for what",
        answers(|_, answered| forget(&mut answered.body, "waits_for")),
        &["delivery.waiting-has-a-reason"],
    ),
];

fn forget(body: &mut Value, name: &str) {
    if let Some(members) = body.as_object_mut() {
        members.remove(name);
    }
}

fn of_calls(asked: &mut Asked, change: impl FnOnce(&mut Value)) {
    if asked.is("POST", "/v1/handoffs") && asked.body()["control"] == "awaited" {
        asked.change(change);
    }
}

/// Taints what belongs to whoever was refused.
fn taint_all_the_same(asked: &Asked, answered: &mut Answered) {
    let of_one = |agent: &Value| agent.as_str()?.strip_prefix("one-").map(str::to_owned);
    let mut known = asked.known.lock().unwrap();
    if asked.is("POST", "/v1/handoffs/*/retract") && answered.status == 409 {
        known.extend(of_one(&asked.body()["by"]).map(|run| (run, true.into())));
    } else if asked.is("GET", "/v1/tasks/*") {
        let run = of_one(&answered.body["owner"]);
        if run.is_some_and(|run| known.contains_key(&run)) {
            answered.body["taints"] = json!([{ "source": "handoff_00000000000000000000000001" }]);
        }
    }
}
