// SPDX-License-Identifier: Apache-2.0
//! A thousand agents at once, over real sockets.

use futures::future::join_all;
use serde_json::json;

use crate::support::{Held, SECOND, Served, Stage, client, in_time, offer, send, text};

const AGENTS: usize = 1000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_agents_polling_at_once_each_get_their_own_handoff() {
    let served = Served::start(Stage::volatile().await).await;
    let polls = (0..AGENTS).map(|number| {
        // A client of its own, so that every agent has a connection of its own.
        let (http, url) = (client(), served.url("/v1/claims"));
        tokio::spawn(async move {
            let agent = format!("agent-{number}");
            let wish = json!({ "agent": agent, "wait_ms": 60 * SECOND });
            let reply = send(http.post(url).json(&wish)).await;
            (agent, reply.done())
        })
    });
    let polls: Vec<_> = polls.collect();
    let stats = served.stage.store.clone();
    in_time(async {
        while stats.stats().commands < 2 * AGENTS as u64 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(polls.iter().all(|poll| !poll.is_finished()), "all of them wait");

    let offers: Vec<_> = (0..AGENTS).map(|n| offer(&format!("agent-{n}"), json!({}))).collect();
    served.post("/v1/handoffs/batch", &json!({ "offers": offers })).await.done();
    let mut held = Vec::new();
    for (agent, claims) in in_time(join_all(polls)).await.into_iter().map(Result::unwrap) {
        let claims = claims["claims"].as_array().unwrap();
        assert_eq!(claims.len(), 1);
        assert_eq!(claims[0]["envelope"]["to"]["agent"], agent);
        held.push(Held::of(&claims[0]));
    }
    held.sort_by(|a, b| a.handoff.cmp(&b.handoff));
    held.dedup_by(|a, b| a.handoff == b.handoff);
    assert_eq!(held.len(), AGENTS);

    let completions: Vec<_> = held
        .iter()
        .map(|held| held.with(json!({ "handoff_id": held.handoff, "payload": { "type": "done" } })))
        .collect();
    let done = served.post("/v1/completions", &json!({ "completions": completions })).await.done();
    let states = done["results"].as_array().unwrap();
    assert!(states.iter().all(|part| text(&part["state"]) == "completed"));
}
