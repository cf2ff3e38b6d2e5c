// SPDX-License-Identifier: Apache-2.0
//! A wall clock that jumps an hour must not expire a lease, and must not keep one alive.

use std::process::Command;

use serde_json::json;

use crate::broker::Broker;

#[tokio::test]
async fn a_wall_clock_that_jumps_an_hour_expires_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let shift = scratch.path().join("shift");
    std::fs::write(&shift, "+0").unwrap();
    let library = faketime_library();
    let faked = |binary: &str| {
        let mut command = Command::new(binary);
        command
            .env("LD_PRELOAD", &library)
            .env("FAKETIME_TIMESTAMP_FILE", &shift)
            .env("FAKETIME_NO_CACHE", "1")
            .env("DONT_FAKE_MONOTONIC", "1");
        command
    };
    let broker = Broker::start_with(&scratch.path().join("data"), faked, &[]);
    let client = broker.client();
    client.offer("one", "x").await.unwrap();
    client.offer_on("two", "x", json!({ "lease_ms": 600_000 })).await.unwrap();
    let (_, one) = client.claim("worker", "one", 0).await.unwrap();
    let (_, two) = client.claim("worker", "two", 0).await.unwrap();
    for jump in ["+1h", "-1h", "+1h"] {
        std::fs::write(&shift, jump).unwrap();
        // Each of these makes the writer look at the time and publish what is due.
        for number in 0..20 {
            client.offer(&format!("{jump}-{number}"), "x").await.unwrap();
        }
        assert_eq!(client.heartbeat(&one["claims"][0]).await.unwrap().0, 200);
    }
    assert_eq!(client.complete(&one["claims"][0], "done").await.unwrap().0, 200);
    assert_eq!(client.complete(&two["claims"][0], "done").await.unwrap().0, 200);
    let lost = client
        .log()
        .await
        .iter()
        .filter(|line| line["event"]["record"]["kind"] == "lease_lost")
        .count();
    assert_eq!(lost, 0);
}

fn faketime_library() -> String {
    let found = ["x86_64", "aarch64"]
        .map(|cpu| format!("/usr/lib/{cpu}-linux-gnu/faketime/libfaketime.so.1"))
        .into_iter()
        .find(|path| std::path::Path::new(path).exists());
    found.expect("the package faketime is installed; ./test does that")
}
