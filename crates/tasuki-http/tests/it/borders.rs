// SPDX-License-Identifier: Apache-2.0
//! Between tenants: what one of them has is not there for another, whichever way it is asked for.

use axum::http::header;
use serde_json::{Value, json};

use crate::contract;
use crate::manifests::{publish, signed};
use crate::samples::Samples;
use crate::support::{Client, Held, Reply, Stage, everything, merged, on_both_stores, segment};
use crate::tenants::tenant;

on_both_stores! { closed:
    what_belongs_to_another_tenant_is_refused_as_if_it_had_never_been
    nothing_in_a_request_tells_whether_another_tenant_has_something
    a_capability_of_another_tenant_gives_no_work
    a_manifest_that_names_a_capability_of_another_tenant_attracts_no_work
    work_stays_within_its_tenant
}

/// Things that were never there, for somebody to ask about.
fn nothing(me: &str, tenant: &str) -> Samples {
    let id = |kind: &str| format!("{kind}_00000000000000000000000abc");
    Samples {
        sender: me.into(),
        worker: me.into(),
        judge: me.into(),
        held: Held { handoff: id("handoff"), claim_id: id("claim"), fence: 1 },
        dead: format!("{}d", &id("handoff")[..33]),
        task: id("task"),
        agent: if tenant == "default" { "nobody".into() } else { format!("{tenant}/nobody") },
        key: id("key"),
        token: id("token"),
        join: String::new(),
        tenant: tenant.into(),
        memory: if tenant == "default" { "ms-x".into() } else { format!("{tenant}/ms-x") },
    }
}

/// A reply without what may differ: the ids that were asked for, and the request's own.
fn bare(reply: &Reply, asked: &Samples) -> String {
    let mut bytes = reply.text().to_owned();
    if let Some(request) = reply.body["request_id"].as_str() {
        bytes = bytes.replace(request, "REQUEST");
    }
    for (id, word) in [
        (&asked.held.handoff, "HANDOFF"),
        (&asked.dead, "HANDOFF"),
        (&asked.task, "TASK"),
        (&asked.agent, "AGENT"),
        (&asked.key, "KEY"),
        (&asked.token, "TOKEN"),
        // Seen from the tenant who asks.
        (&format!("acme/{}", asked.memory), "MEMORY"),
        (&asked.memory, "MEMORY"),
    ] {
        bytes = bytes.replace(&**id, word);
    }
    let known = |name: &&header::HeaderName| *name != "x-request-id";
    let mut headers: Vec<_> = reply.headers.keys().filter(known).map(ToString::to_string).collect();
    headers.sort();
    format!("{} {headers:?} {bytes}", reply.status)
}

async fn what_belongs_to_another_tenant_is_refused_as_if_it_had_never_been(stage: Stage) {
    let admin = stage.administrator().await;
    let acme = tenant(&admin, "acme").await;
    for name in ["umbra", "default"] {
        let theirs = tenant(&admin, name).await;
        let me = &acme.boss.name;
        let theirs =
            Samples { sender: me.clone(), worker: me.clone(), judge: me.clone(), ..theirs.samples };
        let never = nothing(me, name);
        let head = stage.store.head();
        let mut compared = 0;
        let mut told = Vec::new();
        for (method, template, id) in contract::table() {
            let in_body = matches!(&*id, "handoff_wait" | "handoff_complete_batch");
            // Agents of the default tenant have no name in another one.
            let nameless = name == "default" && template.starts_with("/v1/agents");
            if nameless || !(in_body || template.contains("{id}")) {
                continue;
            }
            let mut found = Vec::new();
            for asked in [&theirs, &never] {
                let path = asked.path(&template);
                let reply = match &*method {
                    "get" => acme.boss.get(&path).await,
                    "post" => acme.boss.post(&path, asked.body(&template)).await,
                    other => acme.boss.ask(other, &path, asked.body_of(other, &template)).await,
                };
                if reply.status < 400 && id != "handoff_complete_batch" {
                    told.push(format!("{id} is done to what {name} has"));
                }
                found.push(bare(&reply, asked));
            }
            if found[0] != found[1] {
                told.push(format!("{id} tells what {name} has\n {}\n {}", found[0], found[1]));
            }
            compared += 1;
        }
        assert!(compared > 20, "{compared}");
        assert!(told.is_empty(), "{}", told.join("\n"));
        stage.unmoved_since(head).await;
    }
}

/// What another tenant has, or what was never there: one who can do something, and a handoff whose
/// result must have a form.
struct Asked<'s> {
    samples: &'s Samples,
    capability: &'s str,
    contracted: Held,
}

impl Asked<'_> {
    /// Requests whose parts lead to what somebody else has.
    fn requests(&self, me: &Client) -> Vec<(String, Value)> {
        let (task, held) = (json!(self.samples.task), &self.samples.held);
        let hop = |change: Value| {
            let hop = json!({ "to": { "agent": "tester" }, "payload": { "type": "t" } });
            json!({ "payload": { "type": "d" }, "follow_ups": [merged(hop, change)] })
        };
        let offers = [
            json!({ "task_id": task }),
            json!({ "task_id": task, "intent": null }),
            json!({ "task_id": task, "intent": "another" }),
            json!({ "task_id": task, "intent": null, "control": "awaited" }),
            json!({ "task_id": task, "intent": null, "expires_in_ms": 0 }),
            json!({ "task_id": task, "intent": null, "priority": 10 }),
            json!({ "task_id": task, "intent": null, "to": { "agent": "umbra/x" } }),
            json!({ "to": { "agent": self.samples.agent } }),
            json!({ "to": { "agent": self.samples.agent }, "capability": "review" }),
            json!({ "to": { "agent": self.samples.agent }, "capability": self.capability }),
            json!({ "to": { "capability": self.capability } }),
            json!({ "to": { "capability": self.capability }, "route": { "policy": "least_loaded" } }),
        ];
        let offers = offers.map(|change| me.offering("coder", change));
        let batch = json!({ "offers": offers });
        let below = json!({ "from_agent": me.name, "intent": "i", "parent_task_id": task });
        let hops = [
            json!({}),
            json!({ "expires_in_ms": 0 }),
            json!({ "priority": 10 }),
            json!({ "to": { "agent": self.samples.agent } }),
        ];
        let complete = |held: &Held| format!("/v1/handoffs/{}/complete", held.handoff);
        let mut all: Vec<(String, Value)> = Vec::new();
        all.extend(offers.map(|offer| ("/v1/handoffs".into(), offer)));
        all.extend(hops.map(|change| (complete(held), held.with(hop(change)))));
        let done = self.contracted.with(json!({ "payload": { "type": "d" } }));
        all.push((complete(&self.contracted), done));
        all.push(("/v1/handoffs/batch".into(), batch));
        all.push(("/v1/tasks".into(), below));
        all.push(("/v1/wait".into(), json!({ "tasks": [task], "timeout_ms": 0 })));
        all.push(("/v1/discover".into(), json!({ "capability": self.capability })));
        all
    }

    fn lists(&self) -> Vec<String> {
        let (task, agent) = (&self.samples.task, segment(&self.samples.agent));
        vec![
            format!("/v1/handoffs?task={task}"),
            format!("/v1/tasks?parent={task}"),
            format!("/v1/handoffs?to_agent={agent}"),
            format!("/v1/handoffs?from_agent={agent}"),
            format!("/v1/handoffs?to_capability={}", segment(self.capability)),
            format!("/v1/tasks?owner={agent}"),
            format!("/v1/agents?capability={}", segment(self.capability)),
        ]
    }

    fn bare(&self, reply: &Reply) -> String {
        let bare = bare(reply, self.samples).replace(self.capability, "CAPABILITY");
        bare.replace(&self.contracted.handoff, "HANDOFF")
    }
}

async fn nothing_in_a_request_tells_whether_another_tenant_has_something(stage: Stage) {
    let admin = stage.administrator().await;
    let acme = tenant(&admin, "acme").await.boss;
    let umbra = tenant(&admin, "umbra").await;
    let form = json!({ "type": "object", "required": ["secret_field"] });
    let capability = json!({ "name": "review", "input_schema": form });
    let manifest = json!({ "agent_id": "coder", "capabilities": [capability] });
    let by_coder = Some(signed(umbra.worker.key(), &manifest));
    publish(&umbra.worker, &manifest, by_coder).await.done();
    let contracted = umbra.boss.offer("coder", json!({ "output_schema": form })).await;
    let theirs = Asked {
        contracted: umbra.worker.claimed(&contracted).await,
        samples: &umbra.samples,
        capability: "umbra/review",
    };
    let never = nothing(&acme.name, "umbra");
    let never = Asked {
        contracted: never.held.clone(),
        samples: &never,
        capability: "umbra/no-such-thing",
    };
    let head = stage.store.head();
    let mut told = Vec::new();
    let asked = theirs.requests(&acme).into_iter().zip(never.requests(&acme));
    for ((path, there), (other, not)) in asked {
        let one = acme.post(&path, there.clone()).await;
        let two = acme.post(&other, not).await;
        if theirs.bare(&one) != never.bare(&two) {
            told.push(format!("POST {path} {there}\n {}\n {}", one.text(), two.text()));
        }
    }
    for (there, not) in theirs.lists().into_iter().zip(never.lists()) {
        let (one, two) = (acme.get(&there).await, acme.get(&not).await);
        if theirs.bare(&one) != never.bare(&two) {
            told.push(format!("GET {there}\n {}\n {}", one.text(), two.text()));
        }
    }
    assert!(told.is_empty(), "{} requests tell:\n{}", told.len(), told.join("\n"));
    stage.unmoved_since(head).await;
}

async fn a_capability_of_another_tenant_gives_no_work(stage: Stage) {
    let admin = stage.administrator().await;
    let acme = admin.enroll("acme/coder", everything()).await;
    let umbra = admin.enroll("umbra/coder", everything()).await;
    let default = admin.enroll("coder", everything()).await;
    for agent in [&acme, &umbra, &default] {
        agent.declares(&["review"]).await;
    }
    let theirs = umbra.offer("*review", json!({})).await;
    let head = stage.store.head();
    for thief in [&acme, &default] {
        for path in ["/v1/claims", "/v1/claims/peek"] {
            let wish = json!({ "agent": thief.name, "capabilities": ["umbra/review", "review"] });
            let reply = thief.post(path, wish).await;
            let got =
                ["claims", "waiting"].map(|name| reply.body[name].as_array().map_or(0, Vec::len));
            assert_eq!(got, [0, 0], "{} got {}", thief.name, reply.body);
        }
        let wish = json!({ "agent": thief.name, "capabilities": ["umbra/review"] });
        let one = thief.post(&format!("/v1/handoffs/{theirs}/claim"), wish).await;
        assert!(matches!(one.status, 403 | 404 | 422), "{}", one.body);
    }
    stage.unmoved_since(head).await;
    let wish = json!({ "agent": "coder", "capabilities": ["review"] });
    let claims = umbra.post("/v1/claims", wish).await.done();
    assert_eq!(claims["claims"][0]["handoff_id"], theirs);
}

async fn a_manifest_that_names_a_capability_of_another_tenant_attracts_no_work(stage: Stage) {
    let admin = stage.administrator().await;
    let [boss, coder, thief] = [
        admin.enroll("umbra/boss", everything()).await,
        admin.enroll("umbra/coder", everything()).await,
        admin.enroll("acme/thief", everything()).await,
    ];
    for (who, capability) in [(&coder, "review"), (&thief, "umbra/review")] {
        let manifest = json!({ "agent_id": who.name, "capabilities": [{ "name": capability }] });
        // It may be refused, or it may say what it likes without effect.
        let reply = publish(who, &manifest, Some(signed(who.key(), &manifest))).await;
        assert!(reply.status < 300 || who.name == "acme/thief", "{}", reply.body);
        // Only who is there is chosen.
        who.post("/v1/claims/peek", json!({ "agent": who.name })).await.done();
    }
    for path in ["/v1/agents?capability=review", "/.well-known/agents.json"] {
        let found = boss.get(path).await.done();
        let found = found["agents"].as_array().unwrap();
        assert_eq!((found.len(), &found[0]["agent_id"]), (1, &json!("umbra/coder")), "{path}");
    }
    for policy in ["least_loaded", "most_reliable", "round_robin", "round_robin"] {
        let change = json!({ "route": { "policy": policy } });
        let offer = boss.offering("*review", change);
        let offered = boss.post("/v1/handoffs", offer).await.done();
        assert_eq!(offered["to"]["agent"], "umbra/coder");
        assert_eq!(offered["routed"]["candidates"], 1);
    }
}

async fn work_stays_within_its_tenant(stage: Stage) {
    let admin = stage.administrator().await;
    let acme = admin.enroll("acme/coder", everything()).await;
    let default = admin.enroll("coder", everything()).await;
    let held = acme.claimed(&acme.offer("coder", json!({})).await).await;
    let head = stage.store.head();
    for (who, to) in [
        (&acme, json!({ "agent": "umbra/coder" })),
        (&acme, json!({ "capability": "umbra/review" })),
        (&default, json!({ "agent": "acme/coder" })),
        (&default, json!({ "capability": "acme/review" })),
        (&admin, json!({ "agent": "acme/coder" })),
    ] {
        let body = who.offering("x", json!({ "to": to }));
        who.post("/v1/handoffs", body).await.refused(422, "other_tenant");
    }
    let hop = json!({ "to": { "agent": "umbra/coder" }, "payload": { "type": "next" } });
    let done = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
    acme.act(&held, "complete", done).await.refused(422, "other_tenant");
    stage.unmoved_since(head).await;
    acme.completed(&held).await;
}
