// SPDX-License-Identifier: Apache-2.0
//! Waits: what ends them, what is told meanwhile, and what becomes of work that comes too late.

use futures::StreamExt;
use serde_json::json;

use crate::support::{Stage, in_time, work};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_waits_for_work_and_a_status_for_its_end() {
    let stage = Stage::open().await;
    let coder = stage.agent("coder");
    let claiming =
        tokio::spawn(async move { coder.call("claim", json!({ "wait_ms": 50_000 })).await });
    let sent = stage.agent("planner").call("send", work()).await;
    let held = in_time(claiming).await.unwrap();
    assert_eq!(held["handoff_id"], sent["handoff_id"]);
    let planner = stage.agent("planner");
    let about = json!({ "handoff_id": sent["handoff_id"], "wait_ms": 50_000 });
    let waiting = tokio::spawn(async move { planner.call("status", about).await });
    let done = json!({ "claim": held["claim"], "payload": { "type": "done" } });
    stage.agent("coder").call("complete", done).await;
    assert_eq!(in_time(waiting).await.unwrap()["finished"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_whose_time_is_up_says_so() {
    let stage = Stage::open().await;
    let coder = stage.agent("coder");
    let claiming =
        tokio::spawn(async move { coder.call("claim", json!({ "wait_ms": 50_000 })).await });
    let moving = async {
        while !claiming.is_finished() {
            stage.clock.advance_ms(60_000);
            tokio::task::yield_now().await;
        }
    };
    in_time(moving).await;
    let nothing = claiming.await.unwrap();
    assert_eq!(nothing["claimed"], false);
    assert!(nothing["next"].as_str().unwrap().contains("claim"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_gives_a_token_is_told_that_it_still_waits() {
    let stage = Stage::open().await;
    let params = json!({
        "name": "claim", "arguments": { "wait_ms": 50_000 }, "_meta": { "progressToken": "p" },
    });
    let (status, body) = {
        let request = stage.agent("coder").request("tools/call", params);
        let asking = tokio::spawn({
            let stage = stage.clone();
            async move { stage.stream(request).await }
        });
        let moving = async {
            while !asking.is_finished() {
                stage.clock.advance_ms(5_000);
                tokio::task::yield_now().await;
            }
        };
        in_time(moving).await;
        asking.await.unwrap()
    };
    assert_eq!(status, 200);
    let mut pieces = body.into_data_stream();
    let mut text = String::new();
    stage.agent("planner").call("send", work()).await;
    in_time(async {
        while let Some(piece) = pieces.next().await {
            text += std::str::from_utf8(&piece.unwrap()).unwrap();
        }
    })
    .await;
    assert!(text.contains("notifications/progress") && text.contains("still waiting"), "{text}");
    assert!(text.contains("structuredContent"), "the answer comes at the end: {text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_comes_for_somebody_who_has_gone_away_is_for_the_next_one() {
    let stage = Stage::open().await;
    let coder = stage.agent("coder");
    for _ in 0..20 {
        let request = coder
            .request("tools/call", json!({ "name": "claim", "arguments": { "wait_ms": 50_000 } }));
        let waiting = tokio::spawn({
            let stage = stage.clone();
            async move { stage.stream(request).await }
        });
        tokio::task::yield_now().await;
        let sending = stage.agent("planner");
        let sent = tokio::spawn(async move { sending.call("send", work()).await });
        tokio::task::yield_now().await;
        waiting.abort();
        // Even if it was quicker this time: nobody has read the answer.
        drop(waiting.await);
        let sent = sent.await.unwrap();
        let id = json!({ "handoff_id": sent["handoff_id"] });
        let pending = async {
            loop {
                let seen = stage.agent("planner").call("status", id.clone()).await;
                if seen["state"] == "pending" {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        in_time(pending).await;
        let next = coder.call("claim", json!({ "handoff_id": sent["handoff_id"] })).await;
        coder
            .call("complete", json!({ "claim": next["claim"], "payload": { "type": "done" } }))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_goes_away_ends_its_waits() {
    let stage = Stage::open().await;
    let coder = stage.agent("coder");
    let claiming =
        tokio::spawn(async move { coder.tool("claim", json!({ "wait_ms": 50_000 })).await });
    tokio::task::yield_now().await;
    stage.engine.end_waits();
    in_time(claiming).await.unwrap();
}
