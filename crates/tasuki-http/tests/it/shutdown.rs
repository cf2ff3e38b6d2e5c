// SPDX-License-Identifier: Apache-2.0
//! The end of a broker: what is under way is answered, nothing new is taken, and everything that
//! was acknowledged is there when it comes back.

use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::support::{Backend, Held, SECOND, Served, Stage, client, in_time, offer, send, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_under_way_are_answered_and_all_is_there_afterwards() {
    let served = Served::start(Stage::open(Backend::Sqlite).await).await;
    let address = served.address;
    let before = served.stage.store.stats().commands;
    let wish = json!({ "agent": "nobody", "wait_ms": 60 * SECOND });
    let claim = served.http.post(served.url("/v1/claims")).json(&wish);
    let claim = tokio::spawn(send(claim));
    let offered = served.post("/v1/handoffs", &offer("coder", json!({}))).await.done();
    let id = text(&offered["handoff_id"]);
    let show = served.http.get(served.url(&format!("/v1/handoffs/{id}?wait_ms=60000")));
    let show = tokio::spawn(send(show));
    let held: Value =
        served.post(&format!("/v1/handoffs/{id}/claim"), &json!({ "agent": "coder" })).await.done();
    // The waiting claim looks twice before it waits.
    in_time(async {
        while served.stage.store.stats().commands < before + 4 {
            tokio::task::yield_now().await;
        }
    })
    .await;

    let stage = served.end().await;
    assert_eq!(claim.await.unwrap().done(), json!({ "claims": [] }));
    assert_eq!(show.await.unwrap().done()["state"], "claimed");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");

    let stage = stage.reopened().await;
    assert_eq!(stage.is(&id).await.0, "claimed");
    let held = Held::of(&held);
    assert_eq!(stage.completed(&held).await["state"], "completed");
    assert_eq!(stage.story(&id).await, ["transfer_offered", "claimed", "completed"]);
    assert_eq!(stage.get("/v1/audit/verify").await.done()["intact"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reply_of_a_busy_broker_that_ends_is_kept() {
    let served = Served::start(Stage::open(Backend::Sqlite).await).await;
    let workers: Vec<_> = (0..8)
        .map(|number| {
            let (http, url) = (client(), served.url("/v1/handoffs"));
            tokio::spawn(async move {
                let mut stored = Vec::new();
                for count in 0.. {
                    let key = json!({ "idempotency_key": format!("{number}-{count}") });
                    let Ok(response) = http.post(&url).json(&offer("coder", key)).send().await
                    else {
                        break;
                    };
                    let Ok(reply) = response.json::<Value>().await else { break };
                    stored.extend(reply["handoff_id"].as_str().map(str::to_owned));
                }
                stored
            })
        })
        .collect();
    in_time(async {
        while served.stage.store.head().0 < 100 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let stage = served.end().await.reopened().await;
    let mut stored = Vec::new();
    for worker in workers {
        stored.extend(in_time(worker).await.unwrap());
    }
    assert!(stored.len() >= 100);
    for id in &stored {
        assert_eq!(stage.is(id).await.0, "pending");
    }
    // At most one for each worker was stored without its reply getting through.
    let head = usize::try_from(stage.store.head().0).unwrap();
    assert!((stored.len()..=stored.len() + 8).contains(&head));
}
