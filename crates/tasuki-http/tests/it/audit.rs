// SPDX-License-Identifier: Apache-2.0
//! The audit log: checked as a whole, and exported to be checked elsewhere.

use serde_json::{Value, json};
use tasuki_store::audit;

use crate::support::{Stage, on_both_stores};

on_both_stores! {
    the_log_of_a_busy_broker_verifies
    an_export_has_every_event_and_goes_on_where_it_was_told
}

async fn busy(stage: &Stage) {
    for _ in 0..10 {
        stage.dead_letter().await;
        let id = stage.offer("coder", json!({})).await;
        let held = stage.claimed(&id, "coder").await;
        stage.completed(&held).await;
    }
}

async fn the_log_of_a_busy_broker_verifies(stage: Stage) {
    busy(&stage).await;
    let verdict = stage.get("/v1/audit/verify").await.done();
    assert_eq!(
        (&verdict["intact"], &verdict["events"]),
        (&json!(true), &json!(stage.store.head().0))
    );
    assert_eq!(verdict["tasks"], 20);
    assert!(verdict.get("first_bad").is_none());
}

async fn an_export_has_every_event_and_goes_on_where_it_was_told(stage: Stage) {
    busy(&stage).await;
    let export = async |query: &str| -> Vec<String> {
        let reply = stage.get(&format!("/v1/audit/export{query}")).await;
        assert_eq!(reply.headers["content-type"], "application/jsonl");
        reply.text().lines().map(str::to_owned).collect()
    };
    let positions = async |query: &str| -> Vec<u64> {
        let lines = export(query).await;
        let lines = lines.iter().map(|line| serde_json::from_str(line).unwrap());
        // Checkpoints stand between the events.
        lines.filter_map(|line: Value| line["event"]["position"].as_u64()).collect()
    };
    let head = stage.store.head().0;
    let verdict = audit::verify_lines(export("").await.into_iter().map(Ok));
    assert_eq!((verdict.events, verdict.first_bad), (head, None));
    assert_eq!(positions("").await, (1..=head).collect::<Vec<_>>());
    let lines = export("").await;
    let lines = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let cursor =
        lines.filter_map(|line| line["event"]["cursor"].as_str().map(str::to_owned)).nth(32);
    for after in [cursor.unwrap(), "33".to_owned()] {
        assert_eq!(positions(&format!("?after={after}")).await, (34..=head).collect::<Vec<_>>());
    }
    assert_eq!(positions("?after=99999999").await, [0; 0]);
    stage.get("/v1/audit/export?after=-1").await.refused(400, "invalid_request");
}
