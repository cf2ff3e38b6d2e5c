// SPDX-License-Identifier: Apache-2.0
//! What had to be refused is taken, or the other way round.

use serde_json::{Value, json};

use super::{Row, answers, asks};
use crate::proxy::{Answered, Asked};

pub(super) const ALL: &[Row] = &[
    (
        "malformed failures are taken",
        answers(|asked, answered| {
            taken(asked.is("POST", "/v1/handoffs/*/fail"), "invalid_request", answered)
        }),
        &[
            "schema.failure-attempts-no-number",
            "schema.failure-attempts-zero",
            "schema.failure-cause-no-text",
            "schema.failure-causes-no-list",
            "schema.failure-class-in-capitals",
            "schema.failure-class-missing",
            "schema.failure-class-unknown",
            "schema.failure-details-no-object",
            "schema.failure-hint-no-text",
            "schema.failure-member-unknown",
            "schema.failure-message-missing",
            "schema.failure-message-no-text",
            "schema.failure-permanent-with-retry-after",
            "schema.failure-permanent-without-hint",
            "schema.failure-retry-after-as-text",
            "schema.failure-retry-after-negative",
            "schema.failure-type-empty",
            "schema.failure-type-missing",
            "schema.failure-unknown-with-retry-after",
        ],
    ),
    (
        "malformed hops are taken",
        answers(|asked, answered| {
            taken(asked.is("POST", "/v1/handoffs/*/complete"), "invalid_request", answered)
        }),
        &[
            "chain.fixture-intent-replaced",
            "schema.fixture-action-unknown",
            "schema.fixture-member-unknown",
            "schema.fixture-payload-as-text",
            "schema.fixture-payload-without-type",
            "schema.fixture-receiver-missing",
            "schema.result-typed",
        ],
    ),
    (
        "constraints may be dropped",
        answers(|_, answered| taken(true, "constraint_dropped", answered)),
        &[
            "chain.calls-are-bound",
            "chain.constraint-dropped-refused",
            "chain.fixture-constraint-dropped",
            "chain.fixture-constraint-softened",
        ],
    ),
    (
        "constraints may be altered",
        answers(|_, answered| taken(true, "constraint_altered", answered)),
        &[
            "chain.constraint-kind-altered-refused",
            "chain.constraint-text-altered-refused",
            "chain.fixture-constraint-made-soft",
        ],
    ),
    (
        "everybody may lift",
        answers(|_, answered| taken(true, "constraint_not_yours", answered)),
        &["chain.strangers-do-not-lift"],
    ),
    (
        "trust may rise",
        answers(|_, answered| taken(true, "trust_raised", answered)),
        &["chain.data-is-not-obeyed", "chain.trust-does-not-rise"],
    ),
    (
        "settled keys are decided again",
        answers(|_, answered| taken(true, "decision_settled", answered)),
        &["chain.settled-key-refused"],
    ),
    (
        "everybody is meant",
        answers(|_, answered| taken(true, "not_target", answered)),
        &["delivery.only-the-target-claims"],
    ),
    (
        "what waits can be claimed early",
        answers(|_, answered| taken(true, "wrong_state", answered)),
        &[
            "delivery.joins-bring-results",
            "delivery.letters-hold-what-is-below",
            "delivery.put-back-waits",
            "delivery.refused-retraction-taints-nothing",
            "delivery.retry-waits-as-told",
            "delivery.scheduled-waits",
        ],
    ),
    (
        "deadlines are not read",
        asks(|asked| {
            asked.change(|body| {
                without(body, "deadline");
                let hops = body.get_mut("follow_ups").and_then(Value::as_array_mut);
                hops.into_iter().flatten().for_each(|hop| without(hop, "deadline"));
            });
        }),
        &["delivery.bad-follow-up-ends-nothing", "delivery.passed-deadline-refused"],
    ),
    (
        "everybody gets the work from the queue",
        answers(|asked, answered| {
            if asked.is("POST", "/v1/claims") && answered.body["claims"] == json!([]) {
                answered.body["claims"] = json!([{ "handoff_id": "handoff_x", "fence": 1 }]);
            }
        }),
        &[
            "delivery.asking-keeps-the-work",
            "delivery.declined-by-one-of-many",
            "delivery.heartbeat-extends",
            "delivery.one-of-sixteen-from-the-queue",
            "delivery.paused-targets-give-nothing",
            "delivery.scheduled-waits",
        ],
    ),
    (
        "edits overwrite each other",
        asks(|asked| asked.change(|body| without(body, "revision"))),
        &["context.lost-update-refused", "context.shared-context-revisions"],
    ),
    (
        "newer minors are refused",
        asks(|asked| version(asked, "2.99", "3.0")),
        &[
            "versioning.new-members-cross-majors",
            "versioning.new-members-kept",
            "versioning.new-members-passed-on",
            "versioning.newer-minor-taken",
        ],
    ),
    (
        "the old form is refused",
        asks(|asked| version(asked, "1.0", "3.0")),
        &["versioning.nothing-lost-there-and-back", "versioning.old-form-taken"],
    ),
];

/// What was refused with this code is taken, and nothing is done.
fn taken(here: bool, code: &str, answered: &mut Answered) {
    if here && answered.body["code"] == code {
        answered.status = 200;
        answered.body = json!({ "state": "completed", "status": "done" });
    }
}

fn without(said: &mut Value, name: &str) {
    if let Some(members) = said.as_object_mut() {
        members.remove(name);
    }
}

fn version(asked: &mut Asked, from: &str, to: &str) {
    let change = |said: &mut Value| {
        if said["envelope_version"] == from {
            said["envelope_version"] = json!(to);
        }
    };
    asked.change(|body| {
        change(body);
        let hops = body.get_mut("follow_ups").and_then(Value::as_array_mut);
        hops.into_iter().flatten().for_each(change);
    });
}
