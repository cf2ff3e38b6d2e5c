// SPDX-License-Identifier: Apache-2.0
//! Ten thousand are told something, and the broker is killed in the middle of it.

use serde_json::json;

use crate::broker::{Broker, Client};

const RECEIVERS: usize = 10_000;
/// How many requests go by before the broker is killed, in one round after the other: before the
/// publication is there, while it is being written, and when it is done.
const MOMENTS: [usize; 4] = [0, 2, 40, 400];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_receiver_has_one_handoff_however_often_the_broker_is_killed() {
    let data = tempfile::tempdir().unwrap();
    let receivers: Vec<_> = (0..RECEIVERS).map(|number| format!("agent-{number}")).collect();
    let body = json!({
        "from_agent": "planner",
        "intent": "Read the news.",
        "payload": { "type": "news" },
        "receivers": receivers,
        "idempotency_key": "news of today",
    });
    for moment in MOMENTS {
        let mut broker = Broker::start(data.path());
        let client = broker.client();
        let telling = {
            let (client, body) = (broker.client(), body.clone());
            tokio::spawn(async move { client.post("/v1/channels/news/publish", &body).await })
        };
        for _ in 0..moment {
            client.get("/v1/stats").await.unwrap();
        }
        broker.kill();
        let told = telling.await.unwrap();
        // All of them or none: there is no moment at which some have it.
        let after = Broker::start(data.path());
        let count = live(&after.client()).await;
        assert!(count == 0 || count == RECEIVERS as u64, "{count} of {RECEIVERS} after a crash");
        if told.is_ok_and(|(status, _)| status == 201) {
            assert_eq!(count, RECEIVERS as u64, "what was acknowledged is there");
        }
    }
    let broker = Broker::start(data.path());
    let client = broker.client();
    let (status, told) = client.post("/v1/channels/news/publish", &body).await.unwrap();
    assert!(status == 200 || status == 201, "{told}");
    assert_eq!(told["handoffs"].as_array().unwrap().len(), RECEIVERS);
    assert_eq!(live(&client).await, RECEIVERS as u64, "each of them has one");
    for number in [0, 1, 4711, RECEIVERS - 1] {
        let path = format!("/v1/handoffs?to_agent=agent-{number}");
        let (_, mine) = client.get(&path).await.unwrap();
        assert_eq!(mine["handoffs"].as_array().unwrap().len(), 1, "agent-{number}");
    }
    let (_, messages) = client.get("/v1/channels/news/messages").await.unwrap();
    assert_eq!(messages["messages"].as_array().unwrap().len(), 1, "it was told once");
}

async fn live(client: &Client) -> u64 {
    let (_, stats) = client.get("/v1/stats").await.unwrap();
    stats["live_handoffs"].as_u64().unwrap()
}
