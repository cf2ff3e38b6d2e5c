// SPDX-License-Identifier: Apache-2.0
//! The wall around a handoff: nothing is said about it before the claim was checked.

use serde_json::{Value, json};

use crate::support::{Client, Held, Reply, Stage, failure, may, on_durable_stores, towards};

on_durable_stores! { closed:
    an_invented_claim_shows_nothing_of_what_binds_a_holder
    an_invented_claim_does_not_tell_real_handoffs_from_invented_ones
    a_capability_is_claimed_by_those_who_declare_it_and_may
}

const WORK: &[&str] = &["send", "claim", "complete"];
const SECRET: &str = "The acquisition of Initech must not be mentioned.";

struct Scene {
    stranger: Client,
    other_tenant: Client,
    coder: Client,
    handoff: String,
}

async fn scene(stage: &Stage) -> Scene {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(WORK)).await;
    let coder = admin.enroll("coder", may(WORK)).await;
    let schema = json!({ "type": "object", "required": ["merger"] });
    let handoff = planner
        .offer(
            "coder",
            json!({
                "constraints": [SECRET], "read_back": true,
                "expected_output": { "schema": schema },
            }),
        )
        .await;
    Scene {
        stranger: admin.enroll("stranger", may(WORK)).await,
        other_tenant: admin.enroll("acme/stranger", may(WORK)).await,
        coder,
        handoff,
    }
}

/// A claim that nobody was given.
fn invented(handoff: &str) -> Held {
    let claim_id = "claim_01m7gv2ryye8za1ax4v4yrwjvg".to_owned();
    Held { handoff: handoff.to_owned(), claim_id, fence: (1 << 32) | 1 }
}

fn acts() -> [(&'static str, Value); 8] {
    [
        ("start", json!({ "read_back": { "constraints": [] } })),
        ("start", json!({})),
        ("heartbeat", json!({})),
        ("progress", json!({ "percent": 1 })),
        ("complete", json!({ "payload": { "type": "done" } })),
        (
            "complete",
            json!({ "payload": { "type": "done" }, "follow_ups": [
            { "to": { "agent": "coder" }, "payload": { "type": "next" } }
        ] }),
        ),
        ("fail", failure("permanent")),
        ("release", json!({})),
    ]
}

async fn an_invented_claim_shows_nothing_of_what_binds_a_holder(stage: Stage) {
    let scene = scene(&stage).await;
    let real = scene.coder.claimed(&scene.handoff).await;
    for who in [&scene.stranger, &scene.other_tenant] {
        for (act, more) in acts() {
            let reply = who.act(&invented(&scene.handoff), act, more).await;
            reply.refused(404, "handoff_not_found");
        }
    }
    // The holder itself is told what it left out.
    let half = json!({ "read_back": { "constraints": [] } });
    let told = scene.coder.act(&real, "start", half.clone()).await;
    assert!(told.body.to_string().contains(SECRET), "{}", told.body);
    told.refused(422, "invalid_envelope");
    // And not with a claim that is not its own any more.
    scene.coder.act(&real, "release", json!({})).await.done();
    let late = scene.coder.act(&real, "start", half).await;
    assert!(!late.body.to_string().contains("Initech"), "{}", late.body);
    late.refused(409, "stale_claim");
}

async fn an_invented_claim_does_not_tell_real_handoffs_from_invented_ones(stage: Stage) {
    let scene = scene(&stage).await;
    let none = "handoff_01m7gv2ryye8za1ax4v4yrwjvg";
    for who in [&scene.stranger, &scene.other_tenant] {
        for (act, more) in acts() {
            let real = who.act(&invented(&scene.handoff), act, more.clone()).await;
            let not = who.act(&invented(none), act, more).await;
            let said = |reply: &Reply| {
                let mut body = reply.body.clone();
                body.as_object_mut().unwrap().remove("request_id");
                (reply.status, body.to_string().replace(&scene.handoff, none))
            };
            assert_eq!(said(&real), said(&not), "{act}");
        }
    }
}

async fn a_capability_is_claimed_by_those_who_declare_it_and_may(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(WORK)).await;
    let thief = admin.enroll("thief", may(WORK)).await;
    let coder = admin.enroll("coder", towards(&["claim"], &["coder"])).await;
    let work = planner.offer("*review", json!({})).await;
    let one = format!("/v1/handoffs/{work}/claim");
    let counter = format!("/v1/handoffs/{work}/counter");
    let head = stage.store.head();
    let wish = json!({ "agent": "thief", "capabilities": ["review"] });
    let other = json!({
        "agent": "thief", "capabilities": ["review"], "terms": { "work_ms": 90_000 },
        "reason": "because",
    });
    for (path, wish) in
        [("/v1/claims", &wish), ("/v1/claims/peek", &wish), (&one, &wish), (&counter, &other)]
    {
        thief.post(path, wish.clone()).await.refused(403, "capability_not_declared");
    }
    // Another capability in the manifest is not this one, and saying so is not being allowed to.
    thief.declares(&["testing"]).await;
    thief.post("/v1/claims", wish.clone()).await.refused(403, "capability_not_declared");
    coder.declares(&["review"]).await;
    let mine = json!({ "agent": "coder", "capabilities": ["review"] });
    coder.post("/v1/claims", mine).await.refused(403, "not_permitted");
    let silent = coder.post("/v1/claims", json!({ "agent": "coder" })).await.done();
    assert_eq!(silent["claims"], json!([]), "what it may not claim does not come by its manifest");
    let log = stage.log_after(head).await;
    let refused =
        |record: &&Value| record["change"] == "access_denied" && record["agent"] == "thief";
    let told = log.iter().find(refused).expect("the log says who was refused");
    assert_eq!(told["code"], "capability_not_declared");
    thief.declares(&["review"]).await;
    let claims = thief.post("/v1/claims", wish).await.done();
    assert_eq!(claims["claims"][0]["handoff_id"], work);
}
