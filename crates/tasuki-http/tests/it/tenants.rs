// SPDX-License-Identifier: Apache-2.0
//! Tenants: each has names, agents and work of its own, and what one of them does disturbs no other.
//! What becomes of requests across tenants is in `borders.rs`.

use axum::http::header;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::events::Follower;
use crate::samples::Samples;
use crate::support::{
    Client, Draft, Held, Stage, everything, failure, may, new_key, on_both_stores, segment, text,
};

on_both_stores! { closed:
    the_same_name_in_two_tenants_is_two_agents
    lists_show_only_what_is_ones_own
    a_reader_of_one_tenant_hears_nothing_of_another
    an_administrator_looks_after_its_tenant_and_that_of_the_default_one_after_all
    a_tenant_that_asks_too_often_is_told_to_wait_and_others_are_not
}

pub(crate) struct Tenant {
    pub(crate) boss: Client,
    pub(crate) worker: Client,
    pub(crate) samples: Samples,
}

/// A tenant with one of each thing; all of it is its boss's doing.
pub(crate) async fn tenant(admin: &Client, name: &str) -> Tenant {
    let qualified = |agent: &str| match name {
        "default" => agent.to_owned(),
        _ => format!("{name}/{agent}"),
    };
    let boss = admin.enroll(&qualified("boss"), everything()).await;
    let worker = admin.enroll(&qualified("coder"), everything()).await;
    let held = worker.claimed(&boss.offer("coder", json!({})).await).await;
    let dead = boss.offer("coder", json!({})).await;
    let dying = worker.claimed(&dead).await;
    worker.act(&dying, "fail", failure("permanent")).await.done();
    let task = text(&boss.get(&format!("/v1/handoffs/{}", held.handoff)).await.done()["task_id"]);
    let (token, _) = boss.token("bearer", "coder", everything()).await;
    let (_, join) = boss.token("join", "coder", everything()).await;
    let memory = json!({ "by": boss.name, "scope": { "project": "web" }, "text": "words" });
    let memory = text(&boss.post("/v1/memories", memory).await.done()["memory_id"]);
    let samples = Samples {
        sender: boss.name.clone(),
        worker: boss.name.clone(),
        judge: boss.name.clone(),
        held,
        dead,
        task,
        agent: worker.name.clone(),
        key: worker.key_id(),
        token,
        join,
        tenant: name.into(),
        memory,
    };
    Tenant { boss, worker, samples }
}

async fn the_same_name_in_two_tenants_is_two_agents(stage: Stage) {
    let admin = stage.administrator().await;
    let coders = [
        admin.enroll("acme/coder", everything()).await,
        admin.enroll("umbra/coder", everything()).await,
        admin.enroll("coder", everything()).await,
    ];
    let mut offered = Vec::new();
    for coder in &coders {
        // Each to its own self, by the name that all three go by.
        let change = json!({ "from_agent": "coder", "idempotency_key": "same" });
        let change =
            if coder.name == "coder" { json!({ "idempotency_key": "same" }) } else { change };
        offered.push(coder.offer("coder", change).await);
    }
    offered.dedup();
    assert_eq!(offered.len(), 3);
    for (coder, id) in coders.iter().zip(&offered) {
        let wish = json!({ "agent": "coder", "max": 10, "request_id": "same" });
        let claims = coder.post("/v1/claims", wish).await.done();
        assert_eq!(claims["claims"].as_array().unwrap().len(), 1);
        let held = Held::of(&claims["claims"][0]);
        assert_eq!(held.handoff, *id);
        coder.completed(&held).await;
        let shown = coder.get(&format!("/v1/handoffs/{id}")).await.done();
        assert_eq!(
            (&shown["from_agent"], &shown["state"]),
            (&json!(coder.name), &json!("completed"))
        );
        let me = coder.get("/v1/agents/coder").await.done();
        assert_eq!(
            (&me["agent_id"], &me["keys"][0]["key_id"]),
            (&json!(coder.name), &json!(coder.key_id()))
        );
    }
}

async fn lists_show_only_what_is_ones_own(stage: Stage) {
    let admin = stage.administrator().await;
    let tenants = [
        tenant(&admin, "acme").await,
        tenant(&admin, "umbra").await,
        tenant(&admin, "default").await,
    ];
    for Tenant { boss, samples, .. } in &tenants {
        let listed = boss.get("/v1/handoffs").await.done();
        let mut ids: Vec<_> = listed["handoffs"].as_array().unwrap().iter().collect();
        ids.sort_by_key(|handoff| text(&handoff["handoff_id"]));
        let ids: Vec<_> = ids.iter().map(|handoff| text(&handoff["handoff_id"])).collect();
        assert_eq!(ids, [samples.held.handoff.clone(), samples.dead.clone()]);
        let tasks = boss.get("/v1/tasks").await.done();
        let tasks = tasks["tasks"].as_array().unwrap();
        let own = |task: &&Value| text(&task["opened_by"]) == boss.name;
        assert_eq!((tasks.len(), tasks.iter().filter(own).count()), (2, 2));
        let dead = boss.get("/v1/dead-letters").await.done();
        assert_eq!(dead["handoffs"].as_array().unwrap().len(), 1);
        // A page that is cut must not skip what comes after.
        let page = boss.get("/v1/handoffs?limit=1").await.done();
        let next = format!("/v1/handoffs?limit=1&before={}", text(&page["next"]));
        assert_eq!(boss.get(&next).await.done()["handoffs"].as_array().unwrap().len(), 1);
        if samples.tenant != "default" {
            let agents = boss.get("/v1/agents").await.done();
            let agents = agents["agents"].as_array().unwrap().iter();
            let agents: Vec<_> = agents.map(|agent| text(&agent["agent_id"])).collect();
            assert_eq!(agents, [&*boss.name, &samples.agent]);
        }
        let tokens = boss.get("/v1/tokens").await.done();
        let coder = |token: &&Value| token["agent_id"] == *samples.agent;
        let tokens = tokens["tokens"].as_array().unwrap();
        assert_eq!(tokens.iter().filter(coder).count(), 2);
        if samples.tenant != "default" {
            assert_eq!(tokens.len(), 2);
        }
    }
}

async fn a_reader_of_one_tenant_hears_nothing_of_another(stage: Stage) {
    let admin = stage.administrator().await;
    let acme = tenant(&admin, "acme").await;
    let umbra = tenant(&admin, "umbra").await;
    let reader = admin.enroll("acme/reader", may(&["read"])).await;
    for who in [&reader, &acme.boss] {
        for path in ["/v1/audit/export", "/v1/audit/verify", "/v1/tenants", "/v1/security"] {
            who.get(path).await.refused(403, "not_permitted");
        }
    }
    let streams = [
        "/v1/events?after=0".to_owned(),
        format!("/v1/events?after=0&task={}", umbra.samples.task),
        format!("/v1/events?after=0&handoff={}", umbra.samples.dead),
    ];
    let mut followers = Vec::new();
    for path in streams {
        let request = reader.getting(&path).request();
        let response = stage.router.clone().oneshot(request).await.unwrap();
        followers.push(Follower::of(response.into_body().into_data_stream()));
    }
    // Two offers, two claims and what became of one of them.
    for _ in 0..5 {
        let heard = followers[0].next().await.expect("the stream goes on");
        let actor = text(&heard.data["record"]["actor"]);
        assert!(actor.starts_with("agent:acme/") || actor == "broker", "{actor}");
    }
    let last = acme.boss.offer("coder", json!({})).await;
    umbra.boss.offer("coder", json!({})).await;
    loop {
        let heard = followers[0].next().await.expect("the stream goes on");
        let handoff = &heard.data["record"]["handoff_id"];
        assert_ne!(*handoff, json!(umbra.samples.dead));
        if *handoff == *last {
            break;
        }
    }
    stage.engine.end_waits();
    for follower in &mut followers {
        assert!(follower.next().await.is_none());
    }
}

async fn an_administrator_looks_after_its_tenant_and_that_of_the_default_one_after_all(
    stage: Stage,
) {
    let admin = stage.administrator().await;
    let boss = admin.enroll("acme/admin", everything()).await;
    let other = admin.enroll("umbra/admin", everything()).await;
    boss.enroll("coder", may(&["send"])).await;
    other.enroll("umbra/coder", may(&["send"])).await;
    for name in ["acme/coder", "umbra/coder", "acme/admin", "admin"] {
        let shown = admin.get(&format!("/v1/agents/{}", segment(name))).await.done();
        assert_eq!(shown["agent_id"], name);
        assert!(shown["rules"].is_array(), "{name}");
    }
    assert_eq!(boss.get("/v1/agents/coder").await.done()["agent_id"], "acme/coder");
    // By a bare name an agent of one's own is meant, so the default tenant's cannot be named.
    assert_eq!(boss.get("/v1/agents/admin").await.done()["agent_id"], "acme/admin");
    let head = stage.store.head();
    let path = "/v1/agents/umbra%2Fcoder";
    boss.get(path).await.refused(404, "agent_not_found");
    let enroll = json!({ "key": new_key().public(), "rules": everything() });
    for (act, body) in [
        ("keys", enroll),
        ("rules", json!({ "rules": [] })),
        ("drain", json!({})),
        ("deregister", json!({})),
    ] {
        let reply = boss.post(&format!("{path}/{act}"), body).await;
        reply.refused(404, "agent_not_found");
    }
    boss.post("/v1/tenants/acme", json!({})).await.refused(403, "not_permitted");
    stage.unmoved_since(head).await;
    admin.post(&format!("{path}/drain"), json!({})).await.done();
    let tenants = admin.get("/v1/tenants").await.done();
    let names: Vec<_> =
        tenants["tenants"].as_array().unwrap().iter().map(|t| text(&t["tenant_id"])).collect();
    assert_eq!(names, ["acme", "default", "umbra"]);
    // Its word about agents is not a way into their work.
    let id = boss.offer("coder", json!({})).await;
    admin.get(&format!("/v1/handoffs/{id}")).await.refused(404, "handoff_not_found");
}

async fn a_tenant_that_asks_too_often_is_told_to_wait_and_others_are_not(stage: Stage) {
    let admin = stage.administrator().await;
    let acme = admin.enroll("acme/coder", everything()).await;
    let mate = admin.enroll("acme/tester", everything()).await;
    let umbra = admin.enroll("umbra/coder", everything()).await;
    let set = admin.post("/v1/tenants/acme", json!({ "requests_per_second": 3 })).await.done();
    assert_eq!(set["quotas"]["requests_per_second"], 3);
    // Whoever only says that it is of the tenant uses nothing up.
    for _ in 0..20 {
        let forged =
            acme.getting("/v1/stats").with("signature", format!("tasuki=:{}==:", "A".repeat(86)));
        stage.send(&forged).await.refused(401, "signature_wrong");
    }
    for who in [&acme, &mate, &acme] {
        who.offer("coder", json!({})).await;
    }
    let head = stage.store.head();
    let refused = async |who: &Client| {
        let body = who.offering("coder", json!({}));
        let reply = who.post("/v1/handoffs", body).await;
        assert_eq!(reply.headers[header::RETRY_AFTER], "1");
        let problem = reply.refused(429, "quota_exceeded");
        assert_eq!(
            (&problem["retryable"], &problem["details"]["retry_after_ms"]),
            (&json!(true), &json!(334))
        );
    };
    for who in [&acme, &mate] {
        refused(who).await;
    }
    assert_eq!(stage.store.head(), head);
    for _ in 0..10 {
        umbra.get("/v1/handoffs").await.done();
        admin.get("/v1/stats").await.done();
    }
    stage.send(&Draft::get("/healthz")).await.done();
    stage.pass(334).await;
    acme.offer("coder", json!({})).await;
    stage.pass(10_000).await;
    for _ in 0..3 {
        acme.get("/v1/handoffs").await.done();
    }
    let body = acme.offering("coder", json!({}));
    acme.post("/v1/handoffs", body).await.refused(429, "quota_exceeded");
    admin.post("/v1/tenants/acme", json!({})).await.done();
    acme.offer("coder", json!({})).await;
}
