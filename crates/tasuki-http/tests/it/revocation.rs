// SPDX-License-Identifier: Apache-2.0
//! Whoever is no longer known is refused at once, loses what it held, and hears nothing more.

use std::time::Duration;

use serde_json::{Value, json};
use tower::ServiceExt;

use crate::events::Follower;
use crate::support::{Client, Held, SECOND, Stage, failure, in_time, may, new_key, on_both_stores};

on_both_stores! { closed:
    a_revoked_key_is_refused_at_once_and_what_its_agent_held_waits_again
    an_agent_with_another_key_keeps_what_it_holds
    an_agent_that_was_taken_out_is_refused_until_it_is_let_in_again
    a_revoked_agent_that_waits_for_work_gets_none
    a_stream_ends_with_the_key_that_opened_it
    what_a_stolen_key_made_ends_with_it
}

struct Cast {
    admin: Client,
    planner: Client,
    coder: Client,
    tester: Client,
}

async fn cast(stage: &Stage) -> Cast {
    let admin = stage.administrator().await;
    let worker = || may(&["claim", "complete"]);
    Cast {
        planner: admin.enroll("planner", may(&["send", "read"])).await,
        coder: admin.enroll("coder", worker()).await,
        tester: admin.enroll("tester", worker()).await,
        admin,
    }
}

impl Cast {
    async fn revoke(&self, who: &Client) {
        let path = format!("/v1/agents/{}/keys/{}/revoke", who.name, who.key_id());
        self.admin.post(&path, json!({})).await.done();
    }
}

async fn claim_review(who: &Client, handoff: &str) -> Held {
    who.declares(&["review"]).await;
    let body = json!({ "agent": who.name, "capabilities": ["review"] });
    Held::of(&who.post(&format!("/v1/handoffs/{handoff}/claim"), body).await.done())
}

fn every_act() -> [(&'static str, Value); 7] {
    [
        ("start", json!({})),
        ("heartbeat", json!({})),
        ("progress", json!({ "percent": 1 })),
        ("complete", json!({ "payload": { "type": "done" } })),
        ("fail", failure("permanent")),
        ("decline", json!({ "agent": "coder" })),
        ("release", json!({})),
    ]
}

async fn a_revoked_key_is_refused_at_once_and_what_its_agent_held_waits_again(stage: Stage) {
    let cast = cast(&stage).await;
    let (coder, planner) = (&cast.coder, &cast.planner);
    let claimed = planner.offer("*review", json!({})).await;
    let started = planner.offer("*review", json!({})).await;
    let other = planner.offer("*review", json!({})).await;
    let old = claim_review(coder, &claimed).await;
    let working = claim_review(coder, &started).await;
    coder.act(&working, "start", json!({})).await.done();
    let kept = claim_review(&cast.tester, &other).await;

    cast.revoke(coder).await;
    let head = stage.store.head();
    for (act, more) in every_act() {
        coder.act(&old, act, more).await.refused(401, "signature_wrong");
    }
    assert_eq!(stage.store.head(), head);
    for id in [&claimed, &started] {
        assert_eq!(planner.state_of(id).await, "pending");
    }
    assert_eq!(planner.state_of(&other).await, "claimed");
    let shown = planner.get(&format!("/v1/handoffs/{claimed}")).await.done();
    assert_eq!(shown["attempts"][0]["ended"], "lost_revoked");

    let successor = claim_review(&cast.tester, &claimed).await;
    assert!(successor.fence > old.fence);
    // The agent comes back with another key, and with what it had.
    let again = cast.admin.enroll("coder", may(&["claim", "complete"])).await;
    for (act, more) in every_act() {
        again.act(&old, act, more).await.refused(409, "stale_claim");
    }
    for held in [&successor, &kept] {
        cast.tester.completed(held).await;
    }
}

async fn an_agent_with_another_key_keeps_what_it_holds(stage: Stage) {
    let cast = cast(&stage).await;
    let second = cast.coder.with_key("coder", new_key());
    let body = json!({ "key": second.key().public() });
    cast.admin.post("/v1/agents/coder/keys", body).await.done();
    let held = cast.coder.claimed(&cast.planner.offer("coder", json!({})).await).await;
    cast.revoke(&cast.coder).await;
    cast.coder.act(&held, "start", json!({})).await.refused(401, "signature_wrong");
    second.completed(&held).await;
}

async fn an_agent_that_was_taken_out_is_refused_until_it_is_let_in_again(stage: Stage) {
    let cast = cast(&stage).await;
    let id = cast.planner.offer("coder", json!({})).await;
    let held = cast.coder.claimed(&id).await;
    let (_, token) = cast.admin.token("bearer", "coder", may(&["complete"])).await;
    let bearer = cast.coder.with_token("coder", &token);
    bearer.act(&held, "heartbeat", json!({})).await.done();
    cast.admin.post("/v1/agents/coder/deregister", json!({})).await.done();
    cast.coder.act(&held, "heartbeat", json!({})).await.refused(401, "signature_wrong");
    bearer.act(&held, "heartbeat", json!({})).await.refused(401, "token_invalid");
    assert_eq!(cast.planner.state_of(&id).await, "pending");
    cast.admin.post("/v1/agents/coder/resume", json!({})).await.done();
    cast.coder.act(&held, "heartbeat", json!({})).await.refused(409, "stale_claim");
    let held = cast.coder.claimed(&id).await;
    cast.coder.completed(&held).await;
}

async fn a_revoked_agent_that_waits_for_work_gets_none(stage: Stage) {
    let cast = cast(&stage).await;
    let before = stage.store.stats().commands;
    let waiting = {
        let coder = cast.coder.clone();
        let wish = json!({ "agent": "coder", "wait_ms": 60 * SECOND });
        tokio::spawn(async move { coder.post("/v1/claims", wish).await })
    };
    // It looks twice before it waits.
    in_time(async {
        while stage.store.stats().commands < before + 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    cast.revoke(&cast.coder).await;
    let id = cast.planner.offer("coder", json!({})).await;
    // It may go on waiting for nothing, so there is no event to wait for here.
    if let Ok(reply) = tokio::time::timeout(Duration::from_millis(500), waiting).await {
        let reply = reply.unwrap();
        assert_eq!(reply.body["claims"].as_array().map_or(0, Vec::len), 0, "{}", reply.body);
    }
    assert_eq!(cast.planner.state_of(&id).await, "pending");
}

async fn a_stream_ends_with_the_key_that_opened_it(stage: Stage) {
    let cast = cast(&stage).await;
    let reader = cast.admin.enroll("reader", may(&["read"])).await;
    let request = reader.getting("/v1/events").request();
    let response = stage.router.clone().oneshot(request).await.unwrap();
    let mut follower = Follower::of(response.into_body().into_data_stream());
    cast.planner.offer("coder", json!({})).await;
    assert!(follower.next().await.is_some());
    cast.revoke(&reader).await;
    cast.planner.offer("coder", json!({})).await;
    let heard = follower.next().await;
    assert!(heard.is_none(), "{heard:?}");
}

async fn what_a_stolen_key_made_ends_with_it(stage: Stage) {
    let cast = cast(&stage).await;
    let (_, token) = cast.coder.token("bearer", "coder", may(&["claim", "complete"])).await;
    let thief = cast.coder.with_token("coder", &token);
    cast.revoke(&cast.coder).await;
    thief.get("/v1/agents/coder").await.refused(401, "token_invalid");
}
