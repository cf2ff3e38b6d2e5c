// SPDX-License-Identifier: Apache-2.0
//! The wall around what exists: every operation of the table is tried with ids of another tenant, and
//! with ids of work that the caller has no part in. What is answered is the same as for ids that were
//! made up, word for word.

use serde_json::{Value, json};
use tasuki_engine::Settings;
use tasuki_engine::operations::{self, Kind};

use crate::contract;
use crate::samples::{Samples, samples};
use crate::support::{
    Backend, Client, Held, Reply, Stage, everything, in_time, may, merged, offer, text,
};

/// What ids of nobody look like.
const NONE: &str = "01m7gv2ryye8za1ax4v4yrwjvg";

struct Scene {
    real: Samples,
    invented: Samples,
    other_tenant: Client,
    stranger: Client,
}

/// Work under way and known agents, on a broker that asked nobody who it was and now does.
async fn scene(backend: Backend) -> (Stage, Scene) {
    let open = Stage::with(backend, Settings::default()).await;
    let real = samples(&open).await;
    let closed = Stage::closed(Backend::Volatile).await.settings();
    open.engine.close().await;
    let stage = open.reopened_with(closed).await;
    let admin = stage.administrator().await;
    let other_tenant = admin.enroll("umbra/thief", everything()).await;
    let stranger = admin.enroll("thief", may(&["send", "claim", "complete"])).await;
    let thief = || "thief".to_owned();
    let real = Samples { sender: thief(), worker: thief(), judge: thief(), ..real };
    let held = |id: &str| Held {
        handoff: id.to_owned(),
        claim_id: format!("claim_{NONE}"),
        fence: (1 << 32) | 1,
    };
    let invented = Samples {
        held: held(&format!("handoff_{NONE}")),
        dead: format!("handoff_{NONE}"),
        task: format!("task_{NONE}"),
        token: format!("token_{NONE}"),
        memory: "ms-987654321".into(),
        ..real.clone()
    };
    // The claim is made up in both: it is the handoff that is real.
    let real = Samples { held: held(&real.held.handoff), ..real };
    (stage, Scene { real, invented, other_tenant, stranger })
}

impl Scene {
    /// What was said, with the ids of what exists replaced by those that do not.
    fn said(&self, reply: &Reply) -> (u16, String) {
        let mut body = reply.body.clone();
        if let Some(body) = body.as_object_mut() {
            body.remove("request_id");
        }
        let (real, none) = (&self.real, &self.invented);
        let pairs = [
            (&real.held.handoff, &none.held.handoff),
            (&real.dead, &none.dead),
            (&real.task, &none.task),
            (&real.token, &none.token),
            (&real.memory, &none.memory),
        ];
        let said = pairs.into_iter().fold(body.to_string(), |it, (a, b)| it.replace(a, b));
        (reply.status, said)
    }

    async fn tried(&self, who: &Client, method: &str, template: &str, of: &Samples) -> Reply {
        let path = of.path(template);
        match method {
            "get" => who.get(&path).await,
            _ => who.ask(method, &path, of.body_of(method, template)).await,
        }
    }
}

/// Whether a path names something by an id that could be anybody's.
fn names_something(template: &str) -> bool {
    let noun = template.split('/').nth(2).unwrap_or_default();
    let by_id = template.contains("{id}")
        && ["handoffs", "tasks", "dead-letters", "memories", "tokens"].contains(&noun);
    by_id || ["/v1/wait", "/v1/completions"].contains(&template)
}

async fn every_operation_says_the_same_of_what_exists_and_of_what_does_not(backend: Backend) {
    let (stage, scene) = scene(backend).await;
    let mut tried = 0;
    let mut told = Vec::new();
    for (method, template, id) in contract::table() {
        let entry = operations::named(&id).unwrap();
        if !names_something(&template) || entry.is_streamed() {
            continue;
        }
        for who in [&scene.other_tenant, &scene.stranger] {
            let real = scene.tried(who, &method, &template, &scene.real).await;
            let none = scene.tried(who, &method, &template, &scene.invented).await;
            tried += 1;
            if scene.said(&real) != scene.said(&none) {
                told.push(format!(
                    "{id} to {}: {} {} and {} {}",
                    who.name, real.status, real.body, none.status, none.body
                ));
            }
            let harmless = entry.facts.kind == Kind::Reads || template.starts_with("/v1/wait");
            assert!(real.status >= 400 || harmless || real.status < 300, "{id}");
        }
    }
    assert!(tried > 60, "{tried}");
    assert!(told.is_empty(), "{told:#?}");
    stage.engine.close().await;
}

async fn after_does_not_reach_another_tenant_nor_tell_what_is_there(backend: Backend) {
    let (stage, scene) = scene(backend).await;
    let thief = &scene.other_tenant;
    let head = stage.store.head();
    let offered = async |task: &str| {
        let after = json!({ "after": { "tasks": [task], "need": 1 } });
        let body = merged(offer("coder", json!({ "from_agent": thief.name })), after);
        thief.post("/v1/handoffs", body).await
    };
    let real = offered(&scene.real.task).await;
    let none = offered(&scene.invented.task).await;
    assert_eq!(scene.said(&real), scene.said(&none));
    none.refused(404, "task_not_found");
    stage.unmoved_since(head).await;
    // That it was tried is in the log.
    let log = stage.log_after(head).await;
    let denied = |record: &&Value| record["change"] == "access_denied";
    assert_eq!(text(&log.iter().find(denied).unwrap()["code"]), "task_not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_says_the_same_of_what_exists_and_of_what_does_not() {
    in_time(every_operation_says_the_same_of_what_exists_and_of_what_does_not(Backend::Sqlite))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_says_the_same_of_what_exists_and_of_what_does_not() {
    in_time(every_operation_says_the_same_of_what_exists_and_of_what_does_not(Backend::Postgres))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_after_does_not_reach_another_tenant() {
    in_time(after_does_not_reach_another_tenant_nor_tell_what_is_there(Backend::Sqlite)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_after_does_not_reach_another_tenant() {
    in_time(after_does_not_reach_another_tenant_nor_tell_what_is_there(Backend::Postgres)).await;
}
