// SPDX-License-Identifier: Apache-2.0
//! How somebody comes to be known: by a join token or by the word of an administrator; and how it
//! ceases to be: by a new key in the place of the old one, or by having none left.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::{
    Backend, Client, Reply, SECOND, Served, Stage, everything, in_time, join, may, merged, new_key,
    on_both_stores, possession, send, text, towards,
};

on_both_stores! { closed:
    a_join_token_enrolls_one_key_and_no_other
    of_many_that_join_at_once_with_one_token_one_does
    a_join_token_that_ran_out_or_was_revoked_is_refused
    a_join_token_is_good_for_the_agent_that_it_names
    a_key_is_enrolled_only_by_who_can_sign_with_it
    an_administrator_enrolls_keys_and_nobody_else_does
    a_key_belongs_to_one_agent_for_ever
    an_agent_has_two_keys_at_most_however_it_gets_them
    a_replaced_key_counts_until_its_grace_ends
    only_a_key_of_ones_own_is_replaced
}

/// Somebody who wants to be the coder.
fn stranger(admin: &Client) -> Client {
    admin.with_key("coder", new_key())
}

async fn a_join_token_enrolls_one_key_and_no_other(stage: Stage) {
    let admin = stage.administrator().await;
    let rules = towards(&["claim", "complete"], &["coder", "review"]);
    let (id, token) = admin.token("join", "coder", rules.clone()).await;
    let coder = stranger(&admin);
    coder.get("/v1/agents/coder").await.refused(401, "signature_wrong");
    let joined = join(&coder, &token, json!({})).await.done();
    assert_eq!(joined["agent_id"], "coder");
    assert_eq!(joined["keys"][0]["key_id"], coder.key_id());
    let shown = coder.get("/v1/agents/coder").await.done();
    assert_eq!(shown["rules"][0]["targets"], rules[0]["targets"]);

    let head = stage.store.head();
    let late = stranger(&admin);
    for who in [&late, &coder] {
        join(who, &token, json!({})).await.refused(403, "token_refused");
    }
    late.get("/v1/agents/coder").await.refused(401, "signature_wrong");
    assert_eq!(stage.store.head(), head);
    let tokens = admin.get("/v1/tokens").await.done();
    let spent = tokens["tokens"].as_array().unwrap().iter().find(|t| t["token_id"] == *id).unwrap();
    assert!(spent["ended_at"].is_string());
}

async fn of_many_that_join_at_once_with_one_token_one_does(stage: Stage) {
    let admin = stage.administrator().await;
    let (_, token) = admin.token("join", "coder", may(&[])).await;
    let strangers: Vec<_> = (0..8).map(|_| stranger(&admin)).collect();
    let replies = join_all(strangers.iter().map(|who| join(who, &token, json!({})))).await;
    let joined = replies.iter().filter(|reply| reply.status == 201).count();
    assert_eq!(joined, 1);
    for (who, reply) in strangers.iter().zip(replies) {
        let shown = who.get("/v1/agents/coder").await;
        if reply.status == 201 {
            assert_eq!(shown.done()["keys"].as_array().unwrap().len(), 1);
        } else {
            reply.refused(403, "token_refused");
            shown.refused(401, "signature_wrong");
        }
    }
}

async fn a_join_token_that_ran_out_or_was_revoked_is_refused(stage: Stage) {
    let admin = stage.administrator().await;
    let body = json!({
        "purpose": "join", "agent_id": "coder", "rules": everything(), "expires_in_ms": 5 * SECOND,
    });
    let expiring = text(&admin.post("/v1/tokens", body).await.done()["text"]);
    let (id, revoked) = admin.token("join", "coder", everything()).await;
    admin.post(&format!("/v1/tokens/{id}/revoke"), json!({})).await.done();
    let coder = stranger(&admin);
    join(&coder, &revoked, json!({})).await.refused(403, "token_refused");
    stage.pass(5 * SECOND).await;
    join(&coder, &expiring, json!({})).await.refused(403, "token_refused");
    admin.get("/v1/agents/coder").await.refused(404, "agent_not_found");
}

async fn a_join_token_is_good_for_the_agent_that_it_names(stage: Stage) {
    let admin = stage.administrator().await;
    let (_, token) = admin.token("join", "coder", everything()).await;
    let (_, of_acme) = admin.token("join", "acme/coder", everything()).await;
    let (_, bearer) = admin.token("bearer", "admin", everything()).await;
    let head = stage.store.head();
    let refused = async |who: &Client, token: &str| {
        join(who, token, json!({})).await.refused(403, "token_refused");
    };
    for name in ["tester", "admin", "acme/coder", "umbra/coder"] {
        refused(&admin.with_key(name, new_key()), &token).await;
    }
    refused(&admin.with_key("umbra/coder", new_key()), &of_acme).await;
    refused(&admin.with_key("admin", new_key()), &bearer).await;
    let mut wrong = token.clone();
    let last = wrong.pop().unwrap();
    wrong.push(if last == '0' { '1' } else { '0' });
    let coder = stranger(&admin);
    for token in [&*wrong, "", "tsk_", "x", &token[..token.len() - 1], &token.replace('_', "-")] {
        refused(&coder, token).await;
    }
    // The secret of one token behind the id of another.
    let mixed = format!("{}{}", &of_acme[..of_acme.len() - 64], &token[token.len() - 64..]);
    refused(&admin.with_key("acme/coder", new_key()), &mixed).await;
    assert_eq!(stage.store.head(), head);
    // Who joins a tenant need not know its name.
    let inside = admin.with_key("acme/coder", new_key());
    let joined = join(&inside, &of_acme, json!({ "agent_id": "coder" })).await.done();
    assert_eq!(joined["agent_id"], "acme/coder");
    inside.get("/v1/agents/coder").await.done();
}

async fn a_key_is_enrolled_only_by_who_can_sign_with_it(stage: Stage) {
    let admin = stage.administrator().await;
    let (_, token) = admin.token("join", "coder", everything()).await;
    let coder = stranger(&admin);
    let (key, other) = (coder.key(), new_key());
    let head = stage.store.head();
    for proof in [
        possession(&other, "coder"),
        possession(key, "tester"),
        key.sign(b"").to_string(),
        key.sign(key.public().as_bytes()).to_string(),
        "A".repeat(86),
    ] {
        let reply = join(&coder, &token, json!({ "proof": proof })).await;
        assert_eq!(reply.refused(400, "invalid_request")["details"]["field"], "proof");
    }
    join(&coder, &token, json!({ "proof": null })).await.refused(400, "invalid_request");
    // A key of somebody else, with a proof by one's own.
    let stolen = join(&coder, &token, json!({ "key": other.public() })).await;
    stolen.refused(400, "invalid_request");
    assert_eq!(stage.store.head(), head);
    // None of that spent the token.
    join(&coder, &token, json!({})).await.done();
}

async fn an_administrator_enrolls_keys_and_nobody_else_does(stage: Stage) {
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", may(&["send", "claim", "complete", "read"])).await;
    let shown = coder.get("/v1/agents/coder").await.done();
    assert_eq!(shown["keys"][0]["key_id"], coder.key_id());
    assert_eq!((&shown["standing"], &shown["version"]), (&json!("active"), &json!(0)));
    let head = stage.store.head();
    for agent in ["coder", "tester", "admin"] {
        let body = json!({ "key": new_key().public(), "rules": everything() });
        let reply = coder.post(&format!("/v1/agents/{agent}/keys"), body).await;
        reply.refused(403, "not_permitted");
        let reply = coder
            .post(&format!("/v1/agents/{agent}/rules"), json!({ "rules": everything() }))
            .await;
        reply.refused(403, "not_permitted");
    }
    stage.unmoved_since(head).await;
    assert_eq!(coder.get("/v1/agents/coder").await.done()["rules"], shown["rules"]);
}

async fn a_key_belongs_to_one_agent_for_ever(stage: Stage) {
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", may(&[])).await;
    let path = format!("/v1/agents/coder/keys/{}/revoke", coder.key_id());
    let taken = json!({ "key": coder.key().public() });
    for _ in 0..2 {
        for agent in ["coder", "tester"] {
            let reply = admin.post(&format!("/v1/agents/{agent}/keys"), taken.clone()).await;
            reply.refused(409, "key_taken");
        }
        let (_, token) = admin.token("join", "coder", everything()).await;
        join(&coder, &token, json!({})).await.refused(409, "key_taken");
        // Not even when it counts no longer.
        admin.post(&path, json!({})).await.done();
    }
    coder.get("/v1/agents/coder").await.refused(401, "signature_wrong");
}

async fn an_agent_has_two_keys_at_most_however_it_gets_them(stage: Stage) {
    let admin = stage.administrator().await;
    let one = admin.enroll("coder", may(&[])).await;
    let two = stranger(&admin);
    rotate(&one, &two, json!({})).await.done();
    let three = stranger(&admin);
    let (_, token) = admin.token("join", "coder", may(&[])).await;
    let enroll = json!({ "key": three.key().public() });
    admin.post("/v1/agents/coder/keys", enroll).await.refused(409, "too_many_keys");
    join(&three, &token, json!({})).await.refused(409, "too_many_keys");
    rotate(&two, &three, json!({})).await.refused(409, "too_many_keys");
    stage.pass(10 * SECOND).await;
    rotate(&two, &three, json!({})).await.done();
}

async fn rotate(who: &Client, new: &Client, change: Value) -> Reply {
    let body = json!({
        "old": who.key_id(), "key": new.key().public(),
        "proof": possession(new.key(), &new.name), "grace_ms": 10 * SECOND,
    });
    who.post("/v1/agents/coder/keys/rotate", merged(body, change)).await
}

async fn a_replaced_key_counts_until_its_grace_ends(stage: Stage) {
    let admin = stage.administrator().await;
    let old = admin.enroll("coder", may(&["claim", "complete"])).await;
    let planner = admin.enroll("planner", may(&["send"])).await;
    let held = old.claimed(&planner.offer("coder", json!({})).await).await;
    let new = stranger(&admin);
    rotate(&old, &new, json!({})).await.done();
    for who in [&old, &new] {
        who.act(&held, "heartbeat", json!({})).await.done();
    }
    // One that is on its way out has no second successor.
    rotate(&old, &stranger(&admin), json!({})).await.refused(404, "key_not_found");
    stage.pass(10 * SECOND - 1).await;
    old.get("/v1/agents/coder").await.done();
    stage.pass(1).await;
    old.get("/v1/agents/coder").await.refused(401, "signature_wrong");
    // The agent is the same, so it holds what it held.
    new.completed(&held).await;
}

async fn only_a_key_of_ones_own_is_replaced(stage: Stage) {
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", may(&["send"])).await;
    let tester = admin.enroll("tester", may(&["send"])).await;
    let new = stranger(&admin);
    let head = stage.store.head();
    rotate(&tester, &new, json!({ "old": coder.key_id() })).await.refused(403, "not_permitted");
    let not_his = rotate(&coder, &new, json!({ "old": tester.key_id() })).await;
    not_his.refused(404, "key_not_found");
    let proof = possession(coder.key(), "coder");
    rotate(&coder, &new, json!({ "proof": proof })).await.refused(400, "invalid_request");
    let long = json!({ "grace_ms": 8 * 24 * 3600 * SECOND });
    rotate(&coder, &new, long).await.refused(400, "invalid_request");
    let taken = json!({ "key": tester.key().public(), "proof": possession(tester.key(), "coder") });
    rotate(&coder, &new, taken).await.refused(409, "key_taken");
    stage.unmoved_since(head).await;
    new.get("/v1/agents/coder").await.refused(401, "signature_wrong");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_known_is_known_after_a_restart() {
    let stage = Stage::closed(Backend::Sqlite).await;
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(&["send"])).await;
    let gone = admin.enroll("coder", may(&["claim"])).await;
    let (id, ended) = admin.token("bearer", "planner", everything()).await;
    let (_, token) = admin.token("bearer", "planner", may(&["send"])).await;
    admin.post(&format!("/v1/tokens/{id}/revoke"), json!({})).await.done();
    let revoke = format!("/v1/agents/coder/keys/{}/revoke", gone.key_id());
    admin.post(&revoke, json!({})).await.done();
    let handoff = planner.offer("coder", json!({})).await;

    stage.engine.close().await;
    stage.clock.advance_ms(SECOND);
    let stage = stage.reopened().await;
    assert_eq!(stage.engine.first_administrator().await.unwrap(), None);
    admin.on(&stage).get("/v1/agents/planner").await.done();
    let planner = planner.on(&stage);
    assert_eq!(planner.state_of(&handoff).await, "pending");
    planner.with_token("planner", &token).offer("coder", json!({})).await;
    let ended = planner.with_token("planner", &ended);
    ended.get("/v1/agents/planner").await.refused(401, "token_invalid");
    gone.on(&stage).get("/v1/agents/coder").await.refused(401, "signature_wrong");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_request_counts_over_a_socket() {
    let stage = Stage::closed(Backend::Volatile).await;
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(&["send"])).await;
    let served = Served::start(stage.clone()).await;
    let host: &'static str = served.address.to_string().leak();
    let url = served.url("/v1/handoffs?");
    let draft = crate::support::Draft {
        host,
        ..crate::support::Draft::post("/v1/handoffs?", &planner.offering("coder", json!({})))
    };
    let draft = planner.shown(draft);
    let post = async |body: Vec<u8>| {
        let mut request = served.http.post(&url).header("content-type", "application/json");
        for (name, value) in &draft.headers {
            request = request.header(*name, value);
        }
        in_time(send(request.body(body))).await
    };
    post(draft.body.clone()).await.done();
    post(draft.body.clone()).await.refused(401, "signature_replayed");
    served.end().await;
}
