// SPDX-License-Identifier: Apache-2.0
//! What a caller learns and may do follows the rules as they are now, and stays within its tenant
//! and its projects: counts, waits, streams, long chains, projects of tasks.

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::ServiceExt;

use crate::events::Follower;
use crate::support::{
    Client, Held, Reply, SECOND, Stage, everything, failure, in_time, may, on_both_stores, segment,
    text, towards,
};
use crate::tenants::tenant;

on_both_stores! { closed:
    a_tenant_counts_its_own_and_an_operator_counts_all
    a_claim_that_waits_ends_with_the_rule_that_allowed_it
    a_wait_shows_nothing_that_may_no_longer_be_read
    a_stream_follows_the_rules_as_they_change
    who_was_drained_by_an_administrator_is_resumed_by_one
    an_operator_finds_the_agents_of_another_tenant_by_its_name
    a_task_belongs_to_a_project_and_so_do_those_below_it
    rules_of_a_project_decide_who_sends_and_who_reads_there
}

mod long {
    use crate::support::{Backend, Stage, in_time};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_chain_longer_than_a_page_hides_what_its_first_hop_hides() {
        let stage = Stage::closed(Backend::Volatile).await;
        in_time(super::a_chain_longer_than_a_page_hides_what_its_first_hop_hides(stage)).await;
    }
}

async fn a_tenant_counts_its_own_and_an_operator_counts_all(stage: Stage) {
    let admin = stage.administrator().await;
    let acme = tenant(&admin, "acme").await;
    let before = acme.boss.get("/v1/stats").await.done();
    assert_eq!((&before["tenant"], &before["live_handoffs"]), (&json!("acme"), &json!(1)));
    assert!(before["stored_bytes"].as_u64().unwrap() > 0);
    let umbra = tenant(&admin, "umbra").await;
    umbra.boss.offer("coder", json!({})).await;
    assert_eq!(acme.boss.get("/v1/stats").await.done(), before);
    let told = [
        "version",
        "now",
        "tenant",
        "live_handoffs",
        "stored_bytes",
        "disk_full",
        "handoffs",
        "tasks",
    ];
    let mut members: Vec<_> = before.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_by_key(|name| told.iter().position(|known| known == name));
    assert_eq!(members, told);
    assert_eq!(umbra.boss.get("/v1/stats").await.done()["live_handoffs"], 2);
    let live = |stats: &Value| -> u64 {
        let states = stats["handoffs"].as_array().unwrap();
        let live = states.iter().filter(|count| count["state"] != "dead_lettered");
        live.map(|count| count["count"].as_u64().unwrap()).sum()
    };
    assert_eq!(live(&before), 1, "of its own tenant and no other");
    assert_eq!(live(&umbra.boss.get("/v1/stats").await.done()), 2);
    assert_eq!(live(&admin.get("/v1/stats").await.done()), 3);
    let all = admin.get("/v1/stats").await.done();
    assert_eq!(
        (&all["live_handoffs"], &all["head"]),
        (&json!(3), &json!(format!("1-{}", stage.store.head())))
    );
    assert_eq!(all["tenant"], Value::Null);
    // Not even how far the log has come is told by way of an error.
    let refused = acme.boss.get("/v1/events?after=1000000").await.refused(400, "invalid_request");
    assert!(!refused.to_string().contains(&stage.store.head().to_string()), "{refused}");
    // Of the default tenant, too, only who administers all of it counts all.
    let local = admin.enroll("local", may(&["read"])).await;
    assert_eq!(local.get("/v1/stats").await.done()["live_handoffs"], 0);
}

/// Waits for work in the background; returns when it has looked and waits.
async fn waiting(who: &Client, wish: Value) -> JoinHandle<Reply> {
    let stage = &who.stage;
    let before = stage.store.stats().commands;
    let client = who.clone();
    let waiting = tokio::spawn(async move { client.post("/v1/claims", wish).await });
    // It looks twice before it waits.
    in_time(async {
        while stage.store.stats().commands < before + 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    waiting
}

async fn a_claim_that_waits_ends_with_the_rule_that_allowed_it(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(&["send", "read"])).await;
    let coder = admin.enroll("coder", may(&["claim", "complete"])).await;
    let wish = json!({ "agent": "coder", "wait_ms": 60 * SECOND });
    let waits = waiting(&coder, wish.clone()).await;
    // Other changes do not end it.
    admin.enroll("tester", may(&["claim"])).await;
    admin.set_rules("coder", json!([])).await;
    in_time(waits).await.unwrap().refused(403, "not_permitted");
    let id = planner.offer("coder", json!({})).await;
    assert_eq!(planner.state_of(&id).await, "pending");

    // To lose one of the capabilities that are asked for is enough.
    admin.set_rules("coder", may(&["claim"])).await;
    let held = coder.claimed(&id).await;
    coder.declares(&["review"]).await;
    let able = json!({ "agent": "coder", "capabilities": ["review"], "wait_ms": 60 * SECOND });
    let waits = waiting(&coder, able).await;
    admin.set_rules("coder", towards(&["claim"], &["coder"])).await;
    in_time(waits).await.unwrap().refused(403, "not_permitted");
    let review = planner.offer("*review", json!({})).await;
    assert_eq!(planner.state_of(&review).await, "pending");

    // What still may be claimed still comes.
    let waits = waiting(&coder, wish).await;
    admin.set_rules("coder", may(&["claim", "complete"])).await;
    let next = planner.offer("coder", json!({})).await;
    let claims = in_time(waits).await.unwrap().done();
    assert_eq!(Held::of(&claims["claims"][0]).handoff, next);
    coder.completed(&held).await;
}

async fn a_wait_shows_nothing_that_may_no_longer_be_read(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(&["send", "read"])).await;
    let coder = admin.enroll("coder", may(&["claim", "complete"])).await;
    let reader = admin.enroll("reader", may(&["read"])).await;
    let id = planner.offer("coder", json!({})).await;
    let held = coder.claimed(&id).await;
    let wish = json!({ "handoffs": [id], "timeout_ms": 60 * SECOND });
    let draft = reader.posting("/v1/wait", &wish);
    admin.set_rules("reader", json!([])).await;
    coder.completed(&held).await;
    stage.send(&draft).await.refused(404, "handoff_not_found");
}

async fn follow(stage: &Stage, who: &Client) -> Follower {
    let request = who.getting("/v1/events").request();
    let response = stage.router.clone().oneshot(request).await.unwrap();
    Follower::of(response.into_body().into_data_stream())
}

async fn a_stream_follows_the_rules_as_they_change(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(&["send", "read"])).await;
    let reader = admin.enroll("reader", may(&["read"])).await;
    let mut follower = follow(&stage, &reader).await;
    let first = planner.offer("coder", json!({})).await;
    let mut heard = async || {
        let heard = follower.next().await?;
        Some(text(&heard.data["record"]["handoff_id"]))
    };
    assert_eq!(heard().await, Some(first));
    admin.set_rules("reader", towards(&["read"], &["tester"])).await;
    planner.offer("coder", json!({})).await;
    let third = planner.offer("tester", json!({})).await;
    assert_eq!(heard().await, Some(third));
    admin.set_rules("reader", towards(&["claim"], &["*"])).await;
    // The change itself ends the stream: nothing else has to happen.
    assert_eq!(heard().await, None);
}

async fn who_was_drained_by_an_administrator_is_resumed_by_one(stage: Stage) {
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", may(&["claim"])).await;
    let standing = async |who: &Client, act: &str| {
        who.post(&format!("/v1/agents/coder/{act}"), json!({})).await
    };
    let done = async |who: &Client, act: &str| text(&standing(who, act).await.done()["standing"]);
    // Who drains itself may think better of it.
    assert_eq!(done(&coder, "drain").await, "draining");
    assert_eq!(done(&coder, "resume").await, "active");
    assert_eq!(done(&admin, "drain").await, "draining");
    standing(&coder, "resume").await.refused(403, "not_permitted");
    // Saying it again oneself does not make it one's own word.
    assert_eq!(done(&coder, "drain").await, "draining");
    standing(&coder, "resume").await.refused(403, "not_permitted");
    assert_eq!(done(&admin, "resume").await, "active");
    // An administrator may take over what an agent began.
    assert_eq!(done(&coder, "drain").await, "draining");
    assert_eq!(done(&admin, "drain").await, "draining");
    standing(&coder, "resume").await.refused(403, "not_permitted");
}

async fn an_operator_finds_the_agents_of_another_tenant_by_its_name(stage: Stage) {
    let admin = stage.administrator().await;
    let boss = admin.enroll("acme/boss", everything()).await;
    admin.enroll("umbra/coder", may(&["claim"])).await;
    let names = async |who: &Client, query: &str| {
        let found = who.get(&format!("/v1/agents{query}")).await.done();
        let agents = found["agents"].as_array().unwrap();
        agents.iter().map(|agent| text(&agent["agent_id"])).collect::<Vec<_>>()
    };
    assert_eq!(names(&admin, "").await, ["admin"]);
    assert_eq!(names(&admin, "?tenant=default").await, ["admin"]);
    assert_eq!(names(&admin, "?tenant=umbra").await, ["umbra/coder"]);
    assert_eq!(names(&admin, "?tenant=nobody").await, [""; 0]);
    assert_eq!(names(&boss, "?tenant=acme").await, ["acme/boss"]);
    boss.get("/v1/agents?tenant=umbra").await.refused(403, "not_permitted");
    let local = admin.enroll("local", may(&["read"])).await;
    local.get("/v1/agents?tenant=umbra").await.refused(403, "not_permitted");
    let manifest = json!({
        "agent_id": "acme/boss", "capabilities": [{ "name": "review", "version": "1.0.0" }],
    });
    let key = boss.key();
    let body = tasuki_core::Body::of(&manifest);
    let signature = key.sign(&tasuki_core::identity::statement::manifest(body.hash));
    let signed = json!({ "key_id": boss.key_id(), "signature": signature });
    let published = json!({ "manifest": manifest, "signed": signed });
    boss.post("/v1/agents", published).await.done();
    assert_eq!(names(&admin, "?tenant=acme&capability=review").await, ["acme/boss"]);
    assert_eq!(names(&admin, "?capability=review").await, [""; 0]);
}

async fn a_chain_longer_than_a_page_hides_what_its_first_hop_hides(stage: Stage) {
    let admin = stage.administrator().await;
    let boss = admin.enroll("boss", everything()).await;
    let coder = admin.enroll("coder", may(&["claim", "complete"])).await;
    let reader = admin.enroll("reader", towards(&["read"], &["coder"])).await;
    let open = json!({ "from_agent": "boss", "intent": "Go on." });
    let task = text(&boss.post("/v1/tasks", open).await.done()["task_id"]);
    let hop = |to: &str| {
        let to = json!({ "agent": to });
        json!({ "from_agent": "boss", "task_id": task, "to": to, "payload": { "type": "x" } })
    };
    let offer =
        async |body: Value| text(&boss.post("/v1/handoffs", body).await.done()["handoff_id"]);
    let vault = offer(hop("vault")).await;
    let cancel = json!({ "by": "boss" });
    boss.post(&format!("/v1/handoffs/{vault}/cancel"), cancel).await.done();
    let mut id = offer(hop("coder")).await;
    for _ in 0..1000 {
        let held = coder.claimed(&id).await;
        coder.act(&held, "fail", failure("permanent")).await.done();
        let path = format!("/v1/dead-letters/{id}/redrive");
        id = text(&boss.post(&path, json!({ "by": "boss" })).await.done()["handoff_id"]);
    }
    // Of a thousand and two, only the very first is not the reader's business.
    reader.get(&format!("/v1/handoffs/{id}")).await.done();
    reader.get(&format!("/v1/tasks/{task}")).await.refused(404, "task_not_found");
    admin.set_rules("reader", towards(&["read"], &["coder", "vault"])).await;
    reader.get(&format!("/v1/tasks/{task}")).await.done();
}

fn in_project(permissions: &[&str], project: &str) -> Value {
    json!([{ "permissions": permissions, "projects": [project] }])
}

async fn a_task_belongs_to_a_project_and_so_do_those_below_it(stage: Stage) {
    let admin = stage.administrator().await;
    let boss = admin.enroll("boss", everything()).await;
    let open = |more: Value| {
        let open = json!({ "from_agent": "boss", "intent": "Sell more." });
        crate::support::merged(open, more)
    };
    let web = boss.post("/v1/tasks", open(json!({ "project": "web" }))).await.done();
    assert_eq!(web["project"], "web");
    let below = json!({ "parent_task_id": web["task_id"] });
    let child = boss.post("/v1/tasks", open(below)).await.done();
    assert_eq!(child["project"], "web");
    let astray = json!({ "parent_task_id": web["task_id"], "project": "ledger" });
    let refused = boss.post("/v1/tasks", open(astray)).await.refused(400, "invalid_request");
    assert!(text(&refused["message"]).contains("project web"), "{refused}");
    let task_of = async |handoff: &str| {
        let shown = boss.get(&format!("/v1/handoffs/{handoff}")).await.done();
        boss.get(&format!("/v1/tasks/{}", text(&shown["task_id"]))).await.done()
    };
    let offered = boss.offer("coder", json!({ "project": "web" })).await;
    assert_eq!(task_of(&offered).await["project"], "web");
    // What is called for below a task belongs where the task belongs.
    let call = json!({ "task_id": child["task_id"], "intent": null, "control": "awaited" });
    let called = task_of(&boss.offer("coder", call).await).await;
    assert_eq!((&called["project"], &called["parent_task_id"]), (&json!("web"), &child["task_id"]));
    boss.offer("coder", json!({})).await;
    boss.offer("coder", json!({ "project": "ledger" })).await;
    let listed = boss.get("/v1/tasks?project=web").await.done();
    let listed = listed["tasks"].as_array().unwrap();
    assert_eq!(listed.len(), 4);
    assert!(listed.iter().all(|task| task["project"] == "web"));
    // The shared context shows the open tasks of its own project.
    let queue = boss.get("/v1/projects/web/context").await.done();
    let mut queued: Vec<_> = queue["task_queue"].as_array().unwrap().iter().map(task_id).collect();
    let mut expected: Vec<_> = listed.iter().map(task_id).collect();
    queued.sort();
    expected.sort();
    assert_eq!(queued, expected, "{queue}");
}

fn task_id(task: &Value) -> String {
    text(task.get("task_id").or_else(|| task["task"].get("task_id")).unwrap())
}

async fn rules_of_a_project_decide_who_sends_and_who_reads_there(stage: Stage) {
    let admin = stage.administrator().await;
    let boss = admin.enroll("boss", everything()).await;
    let sender = admin.enroll("sender", in_project(&["send"], "web-*")).await;
    let reader = admin.enroll("reader", in_project(&["read"], "web-*")).await;
    let open = |who: &Client, project: Value| {
        let open = json!({ "from_agent": who.name, "intent": "Sell more." });
        crate::support::merged(open, json!({ "project": project }))
    };
    for project in [json!("ledger"), Value::Null] {
        let body = open(&sender, project.clone());
        sender.post("/v1/tasks", body).await.refused(403, "not_permitted");
        let body = sender.offering("coder", json!({ "project": project }));
        sender.post("/v1/handoffs", body).await.refused(403, "not_permitted");
    }
    let own = sender.post("/v1/tasks", open(&sender, json!("web-shop"))).await.done();
    let on = json!({ "task_id": own["task_id"], "intent": null });
    let handed = sender.offer("coder", on).await;
    let fresh = sender.offer("coder", json!({ "project": "web-shop" })).await;
    let hidden = boss.offer("coder", json!({ "project": "ledger" })).await;
    let loose = boss.offer("coder", json!({})).await;
    for id in [&handed, &fresh] {
        reader.get(&format!("/v1/handoffs/{id}")).await.done();
    }
    for id in [&hidden, &loose] {
        reader.get(&format!("/v1/handoffs/{id}")).await.refused(404, "handoff_not_found");
    }
    let waiting = boss.post("/v1/tasks", open(&boss, json!("web-blog"))).await.done();
    reader.get(&format!("/v1/tasks/{}", segment(&task_id(&waiting)))).await.done();
    let tasks = reader.get("/v1/tasks").await.done();
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 3);
    let handoffs = reader.get("/v1/handoffs").await.done();
    assert_eq!(handoffs["handoffs"].as_array().unwrap().len(), 2);
    // A denial counts in its project only.
    let rules = json!([
        { "permissions": ["send", "read"] },
        { "effect": "deny", "permissions": ["send", "read"], "projects": ["ledger"] },
    ]);
    let careful = admin.enroll("careful", rules).await;
    careful.get(&format!("/v1/handoffs/{hidden}")).await.refused(404, "handoff_not_found");
    careful.get(&format!("/v1/handoffs/{loose}")).await.done();
    let body = careful.offering("coder", json!({ "project": "ledger" }));
    careful.post("/v1/handoffs", body).await.refused(403, "not_permitted");
    careful.offer("coder", json!({ "project": "web-shop" })).await;
}
