// SPDX-License-Identifier: Apache-2.0
//! The ways that rules are usually broken.

use serde_json::{Value, json};

use super::{Row, answers, asks};
use crate::proxy::{Answered, Asked, Breakage};

pub(super) const ALL: &[Row] = &[
    (
        "stale claims are taken",
        answers(take_stale_claims),
        &[
            "delivery.cancel-reaches-below",
            "delivery.late-result-kept",
            "delivery.stale-claim-not-retryable",
            "delivery.stale-claim-refused",
            "delivery.work-has-an-end",
            "delivery.wrong-claim-refused",
            "delivery.wrong-fence-refused",
        ],
    ),
    (
        "malformed offers are taken",
        answers(take_malformed),
        &[
            "schema.action-unknown-refused",
            "schema.broken-json-refused",
            "schema.duplicate-keys-inside-refused",
            "schema.duplicate-keys-refused",
            "schema.every-fault-named",
            "schema.large-integers-refused",
            "schema.no-object-refused",
            "schema.payload-text-refused",
            "schema.payload-type-text",
            "schema.payload-without-type-refused",
            "schema.receiver-missing-refused",
            "schema.refusal-members",
            "schema.sender-missing-refused",
            "schema.two-receivers-refused",
            "schema.unknown-member-refused",
        ],
    ),
    (
        "a constraint is lost on the way",
        answers(lose_constraint),
        &[
            "chain.calls-are-bound",
            "chain.constraint-added",
            "chain.constraints-carried",
            "chain.constraints-restated",
            "chain.coordinator-lifts",
            "chain.issuer-lifts",
            "chain.lift-needs-a-reason",
            "delivery.tasks-below-are-bound",
            "schema.message-2-coder-to-reviewer",
            "schema.message-3-reviewer-to-coder",
            "schema.message-4-coder-to-tester",
            "versioning.nothing-lost-there-and-back",
        ],
    ),
    ("the user's words are told again", answers(retell_intent), &["chain.intent-same-bytes"]),
    (
        "idempotency keys are forgotten",
        asks(forget_keys),
        &[
            "delivery.same-key-at-once",
            "delivery.same-key-memories",
            "delivery.same-key-other-body",
            "delivery.same-key-publications",
            "delivery.same-key-same-reply",
            "delivery.same-key-tasks",
            "schema.message-1-lead-to-coder",
        ],
    ),
    (
        "fences stay the same",
        Breakage { asked: real_fence, answered: one_fence },
        &["delivery.fences-grow", "delivery.lease-ends-in-silence"],
    ),
    ("stored is called delivered", answers(call_it_delivered), &["delivery.offered-is-stored"]),
    ("links lead elsewhere", answers(wrong_link), &["chain.links"]),
    (
        "receipts leave out what was left out",
        answers(forget_dropped),
        &[
            "context.left-out-has-a-reason",
            "context.left-out-is-left-out",
            "context.receipt-names-all",
        ],
    ),
    (
        "more tokens than the budget",
        answers(over_budget),
        &["context.manifest-says-the-budget", "context.needed-is-enough", "context.within-budget"],
    ),
    (
        "errors have no hint",
        answers(no_hint),
        &[
            "schema.refusal-members",
            "schema.refusal-members-of-conflict",
            "schema.refusal-members-of-unknown",
        ],
    ),
    (
        "everybody is served the newest major",
        asks(forget_majors),
        &[
            "versioning.claim-asks-for-a-major",
            "versioning.manifest-asks-for-a-major",
            "versioning.new-members-cross-majors",
            "versioning.nothing-lost-there-and-back",
            "versioning.unknown-major-not-claimed",
        ],
    ),
    (
        "new members are cut off",
        answers(cut_new_members),
        &[
            "versioning.new-members-cross-majors",
            "versioning.new-members-kept",
            "versioning.new-members-passed-on",
        ],
    ),
    (
        "everybody wins the race",
        answers(everybody_wins),
        &[
            "delivery.one-of-sixteen-wins",
            "delivery.permanent-not-tried-again",
            "schema.refusal-members-of-conflict",
        ],
    ),
    ("late results are thrown away", answers(forget_late), &["delivery.late-result-kept"]),
    (
        "the sender stays the owner",
        answers(sender_owns),
        &[
            "delivery.claimer-owns",
            "delivery.owner-after-completion",
            "delivery.owner-after-release",
        ],
    ),
    (
        "permanent failures are tried again",
        asks(retry_permanent),
        &[
            "delivery.dead-letters-are-listed",
            "delivery.dead-letters-are-told",
            "delivery.discard-needs-a-reason",
            "delivery.discarding-cancels-below",
            "delivery.ended-is-not-done",
            "delivery.letters-are-closed",
            "delivery.letters-hold-what-is-below",
            "delivery.permanent-not-tried-again",
            "delivery.redrive-same-envelope",
            "delivery.redriven-once",
            "schema.failure-permanent-with-retry-after",
        ],
    ),
    (
        "heartbeats are not heard",
        asks(swallow_heartbeats),
        &[
            "delivery.acknowledged-messages-are-gone",
            "delivery.cancel-reaches-below",
            "delivery.heartbeat-extends",
            "delivery.messages-come-with-heartbeats",
            "delivery.stale-claim-not-retryable",
            "delivery.stale-claim-refused",
            "delivery.work-has-an-end",
            "delivery.wrong-claim-refused",
            "delivery.wrong-fence-refused",
        ],
    ),
    ("lifts leave no trace", answers(forget_lifts), &["chain.issuer-lifts"]),
    (
        "addresses are of something else",
        answers(other_address),
        &[
            "chain.address-of-claim",
            "chain.address-of-offer",
            "chain.canonical-json",
            "delivery.redrive-same-envelope",
            "versioning.stored-stays",
        ],
    ),
    ("references bring the latest", asks(always_latest), &["context.pinned-reference"]),
    (
        "the last of two keys counts",
        asks(last_key_counts),
        &["schema.duplicate-keys-inside-refused", "schema.duplicate-keys-refused"],
    ),
    (
        "decisions are forgotten",
        answers(forget_decisions),
        &[
            "chain.decisions-go-on",
            "chain.superseding",
            "schema.message-2-coder-to-reviewer",
            "schema.message-3-reviewer-to-coder",
            "schema.message-4-coder-to-tester",
            "versioning.nothing-lost-there-and-back",
        ],
    ),
    ("missing memories are hidden", answers(hide_gaps), &["context.unreadable-is-a-gap"]),
    (
        "unknown majors are taken for the newest",
        asks(guess_major),
        &[
            "versioning.malformed-version-refused",
            "versioning.unknown-major-ends-nothing",
            "versioning.unknown-major-refused",
        ],
    ),
];

fn take_stale_claims(_: &Asked, answered: &mut Answered) {
    if answered.body["code"] == "stale_claim" {
        answered.status = 200;
        answered.body = json!({ "state": "completed", "status": "done" });
    }
}

fn take_malformed(asked: &Asked, answered: &mut Answered) {
    if asked.is("POST", "/v1/handoffs") && answered.status == 400 {
        answered.status = 201;
        answered.body = json!({ "status": "stored", "hop": 0 });
    }
}

fn lose_constraint(asked: &Asked, answered: &mut Answered) {
    answered.envelopes(asked, |envelope| {
        let is_later = envelope["hop"] != 0;
        let constraints = envelope.get_mut("constraints").and_then(Value::as_array_mut);
        if let Some(constraints) = constraints.filter(|_| is_later) {
            constraints.remove(0);
        }
    });
}

fn retell_intent(asked: &Asked, answered: &mut Answered) {
    answered.envelopes(asked, |envelope| {
        if let Some(Value::String(intent)) = envelope.get_mut("intent") {
            *intent = intent.trim().to_owned();
        }
    });
}

fn forget_keys(asked: &mut Asked) {
    asked.change(|body| {
        body.as_object_mut().unwrap().remove("idempotency_key");
    });
}

/// Puts the fence that the broker gave back into a call that shows the one that it was told.
fn real_fence(asked: &mut Asked) {
    let known = asked.known.clone();
    asked.change(|body| {
        let real =
            known.lock().unwrap().get(body["claim_id"].as_str().unwrap_or_default()).cloned();
        if let Some(real) = real.filter(|_| body["fence"] == 7) {
            body["fence"] = real;
        }
    });
}

fn one_fence(asked: &Asked, answered: &mut Answered) {
    let own = asked.is("POST", "/v1/handoffs/*/claim") && answered.status == 200;
    let claims: Vec<_> = match own {
        true => vec![&mut answered.body],
        false => {
            let claims = answered.body.get_mut("claims").and_then(Value::as_array_mut);
            claims.into_iter().flatten().collect()
        }
    };
    for claim in claims {
        let id = claim["claim_id"].as_str().unwrap_or_default().to_owned();
        let real = std::mem::replace(&mut claim["fence"], json!(7));
        asked.known.lock().unwrap().insert(id, real);
    }
}

fn call_it_delivered(_: &Asked, answered: &mut Answered) {
    if answered.body["status"] == "stored" {
        answered.body["status"] = json!("delivered");
    }
}

fn wrong_link(asked: &Asked, answered: &mut Answered) {
    answered.envelopes(asked, |envelope| {
        if envelope.get("previous").is_some() {
            envelope["previous"] = json!(format!("sha256:{}", "0".repeat(64)));
        }
    });
}

fn forget_dropped(asked: &Asked, answered: &mut Answered) {
    if asked.is("POST", "/v1/assemble") && answered.status == 200 {
        answered.body["receipt"]["dropped"] = json!([]);
    }
}

fn over_budget(asked: &Asked, answered: &mut Answered) {
    if asked.is("POST", "/v1/assemble") && answered.status == 200 {
        let more = answered.body["token_count"].as_u64().unwrap() + 10_000;
        answered.body["token_count"] = json!(more);
        answered.body["receipt"]["token_count"] = json!(more);
    }
}

fn no_hint(_: &Asked, answered: &mut Answered) {
    if answered.status >= 400 {
        answered.body.as_object_mut().unwrap().remove("hint");
    }
}

fn forget_majors(asked: &mut Asked) {
    asked.change(|body| {
        body.as_object_mut().unwrap().remove("majors");
        if let Some(manifest) = body.get_mut("manifest").and_then(Value::as_object_mut) {
            manifest.remove("accepted_majors");
        }
    });
}

fn cut_new_members(asked: &Asked, answered: &mut Answered) {
    answered.envelopes(asked, |envelope| {
        let members = envelope.as_object_mut().unwrap();
        members.remove("mood");
        if let Some(context) = members.get_mut("context").and_then(Value::as_object_mut) {
            context.remove("mood");
        }
    });
}

fn everybody_wins(_: &Asked, answered: &mut Answered) {
    if answered.body["code"] == "already_claimed" {
        answered.status = 200;
        answered.body = json!({ "claim_id": "claim_x", "fence": 1 });
    }
}

fn forget_late(asked: &Asked, answered: &mut Answered) {
    if asked.is("GET", "/v1/tasks/*/events") {
        let events = answered.body["events"].as_array_mut().unwrap();
        events.retain(|event| event["record"]["kind"] != "late_report");
    }
}

fn sender_owns(asked: &Asked, answered: &mut Answered) {
    if asked.is("GET", "/v1/tasks/*") {
        answered.body["owner"] = answered.body["opened_by"].clone();
    }
}

fn retry_permanent(asked: &mut Asked) {
    asked.change(|body| {
        if body["class"] == "permanent" && body["hint"].is_string() {
            body["class"] = json!("retryable");
        }
    });
}

/// Asks something harmless instead.
fn swallow_heartbeats(asked: &mut Asked) {
    if asked.is("POST", "/v1/handoffs/*/heartbeat") {
        asked.method = "GET".into();
        asked.path = asked.path.trim_end_matches("/heartbeat").to_owned();
        asked.text.clear();
    }
}

fn forget_lifts(asked: &Asked, answered: &mut Answered) {
    answered.envelopes(asked, |envelope| {
        envelope.as_object_mut().unwrap().remove("lifted");
    });
}

fn other_address(asked: &Asked, answered: &mut Answered) {
    if asked.is("POST", "/v1/handoffs") && answered.status < 300 {
        answered.body["envelope"] = json!(format!("sha256:{}", "0".repeat(64)));
    }
}

fn always_latest(asked: &mut Asked) {
    asked.change(|body| {
        let refs = body.get_mut("memory_refs").and_then(Value::as_array_mut);
        for one in refs.into_iter().flatten().filter(|one| one["freshness"] == "pinned") {
            one["freshness"] = json!("latest");
        }
    });
}

fn last_key_counts(asked: &mut Asked) {
    if let body @ Value::Object(_) = asked.body() {
        asked.text = body.to_string().into_bytes();
    }
}

fn forget_decisions(asked: &Asked, answered: &mut Answered) {
    answered.envelopes(asked, |envelope| {
        if envelope["hop"] != 0 {
            envelope.as_object_mut().unwrap().remove("decisions");
        }
    });
}

fn hide_gaps(asked: &Asked, answered: &mut Answered) {
    if asked.is("POST", "/v1/assemble") && answered.status == 200 {
        answered.body["receipt"]["unresolved"] = json!([]);
    }
}

fn guess_major(asked: &mut Asked) {
    let guess = |said: &mut Value| {
        let known = said["envelope_version"]
            .as_str()
            .is_none_or(|version| version.starts_with("1.") || version.starts_with("2."));
        if !known {
            said["envelope_version"] = json!("2.0");
        }
    };
    asked.change(|body| {
        guess(body);
        let hops = body.get_mut("follow_ups").and_then(Value::as_array_mut);
        hops.into_iter().flatten().for_each(guess);
    });
}
