// SPDX-License-Identifier: Apache-2.0
//! A worker of the real program that panics: the broker does not stay behind without it.

use std::process::Command;

use crate::broker::Broker;

#[tokio::test]
async fn a_worker_that_panics_ends_the_broker_and_is_named() {
    for worker in ["writer", "sweeper", "follower", "observer and wake-ups", "sharing of presence"]
    {
        let data = tempfile::tempdir().unwrap();
        let planned = |binary: &str| {
            let mut command = Command::new(binary);
            command.env("TASUKI_TEST_PANIC", worker);
            command
        };
        let mut broker = Broker::start_with(data.path(), planned, &[]);
        // Gives each of them something to do. It may be gone before it can answer.
        let client = broker.client();
        let _ = client.offer("first", "x").await;
        let _ = client.claim("worker", "only", 0).await;
        let status = broker.ended();
        let said = broker.stderr();
        assert_eq!(status.code(), Some(74), "{worker}: {said}");
        assert!(
            said.contains(&format!("the {worker} ended although nothing asked it to")),
            "{said}"
        );
        // What it said is what it did: the data is whole.
        Broker::start(data.path());
    }
}
