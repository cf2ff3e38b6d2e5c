// SPDX-License-Identifier: Apache-2.0
//! Ways to break what hangs together above one hop.

use serde_json::{Value, json};

use super::{Row, answers, asks};
use crate::proxy::{Answered, Asked};

pub(super) const ALL: &[Row] = &[
    (
        "nothing waits for anything",
        asks(|asked| {
            if asked.method == "POST" && asked.path.ends_with("/v1/handoffs") {
                asked.change(|body| forget_member(body, "after"));
            }
        }),
        &[
            "delivery.joins-bring-results",
            "delivery.joins-name-what-is-missing",
            "delivery.taints-reach-what-waited",
            "delivery.clearing-releases",
            "delivery.quorums-are-not-lowered",
            "delivery.unknown-tasks-are-not-waited-for",
            "delivery.waiting-has-a-reason",
        ],
    ),
    (
        "a join gets nothing of what it waited for",
        answers(|asked, answered| {
            of_claims(asked, answered, |claim| forget_member(claim, "joined"))
        }),
        &["delivery.joins-bring-results", "delivery.joins-name-what-is-missing"],
    ),
    (
        "a join goes on as if whole",
        answers(|asked, answered| of_claims(asked, answered, |claim| forget_member(claim, "gaps"))),
        &["delivery.joins-name-what-is-missing"],
    ),
    (
        "gaps are forgotten when the work is done",
        answers(|_, answered| {
            if let Some(output) = answered.body.get_mut("output") {
                forget_member(output, "gaps");
            }
        }),
        &["delivery.gaps-are-in-the-result"],
    ),
    (
        "taints stay where they are",
        answers(|asked, answered| {
            if asked.method == "GET" && asked.path.contains("/v1/tasks/") {
                forget_member(&mut answered.body, "taints");
            }
        }),
        &["delivery.taints-reach-what-waited"],
    ),
    (
        "what was cleared still waits",
        answers(|asked, answered| {
            let waited = answered.body.pointer("/contract/after").is_some();
            if asked.method == "GET" && waited && answered.body["state"] == "pending" {
                answered.body["state"] = json!("awaiting_approval");
            }
        }),
        &["delivery.clearing-releases"],
    ),
    (
        "circles are taken",
        answers(|_, answered| {
            if answered.body["code"] == "deadlock" {
                answered.status = 201;
                answered.body = json!({ "status": "stored" });
            }
        }),
        &["delivery.circles-are-refused"],
    ),
    (
        "a pause holds nothing back",
        asks(|asked| {
            if asked.path.ends_with("/v1/targets/pause") {
                asked.path = asked.path.replace("/pause", "/resume");
            }
        }),
        &["delivery.paused-targets-give-nothing"],
    ),
];

fn forget_member(body: &mut Value, name: &str) {
    if let Some(members) = body.as_object_mut() {
        members.remove(name);
    }
}

fn of_claims(asked: &Asked, answered: &mut Answered, change: fn(&mut Value)) {
    if asked.method != "POST" || !asked.path.ends_with("/v1/claims") {
        return;
    }
    if let Some(claims) = answered.body["claims"].as_array_mut() {
        claims.iter_mut().for_each(change);
    }
}
